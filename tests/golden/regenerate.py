"""Play the golden cases, show what is not as it was frozen, and freeze it anew where that is asked for.

`python tests/golden/regenerate.py [TOPIC ...] [--write]`: exits with 1 where something differs that may not.
"""

import difflib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

sys.path.insert(0, str(Path(__file__).parents[1]))

import lanes  # isort: skip - before anything that imports mlx
from golden import store
from golden.differences import allowed, differences
from golden.machine import here
from golden.play import ENGINE, play_all
from golden.shapes import Machine, Topic


def replay(topic: Topic, engine: lanes.Engine, machine: Machine) -> Topic:
    """The topic as it would be frozen here and now."""
    cases = tuple(case.model_copy(update={"gave": gave}) for case, gave in play_all(topic.cases, engine))
    return topic.model_copy(update={"cases": cases, "model": engine.info.fingerprint, "machine": machine})


def faults(frozen: Topic, now: Topic) -> Iterator[str]:
    """What may not be as it is, a line for each place."""
    if frozen.model != now.model:
        yield f"the model: frozen {frozen.model}, now {now.model}"
    rule = allowed(frozen.machine, now.machine)
    for old, new in zip(frozen.cases, now.cases, strict=True):
        yield from (f"{old.name}: {one}" for one in differences(old.gave, new.gave or {}, rule))


def verdict(frozen: Topic, now: Topic) -> str:
    """In a line, by which rule they were compared and what came of it."""
    rule = "as on another machine class" if allowed(frozen.machine, now.machine) else "bit for bit"
    count = len(list(faults(frozen, now)))
    return f"{len(now.cases)} cases, compared {rule}: {count or 'no'} places differ that may not"


def shown(name: str, frozen: str, now: str) -> str:
    """The two texts of a topic's file as a unified difference; empty where they are equal."""
    lines = difflib.unified_diff(
        frozen.splitlines(), now.splitlines(), f"{name}.json, frozen", f"{name}.json, now", n=2, lineterm=""
    )
    return "\n".join(lines)


def main(
    topics: Annotated[list[str] | None, typer.Argument(help="Which topics: all of them by default.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Freeze what came out.")] = False,
) -> None:
    """Play the golden cases, show what is not as it was frozen, and freeze it anew with --write."""
    if unknown := set(topics or ()) - set(store.names()):
        raise typer.BadParameter(f"no topic {', '.join(sorted(unknown))}: choose from {', '.join(store.names())}")
    wrong = False
    with lanes.Engine(**ENGINE) as engine:
        machine = here(engine)
        for name in topics or store.names():
            frozen = store.read(name)
            now = replay(frozen, engine, machine)
            if difference := shown(name, store.source(name), store.dump(now)):
                print(difference)
            print(f"{name}: {verdict(frozen, now)}")
            wrong |= any(faults(frozen, now))
            if write:
                store.path_of(name).write_text(store.dump(now), encoding="utf-8")
    raise typer.Exit(int(wrong and not write))


if __name__ == "__main__":
    typer.run(main)
