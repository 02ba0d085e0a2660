"""Load on `lanes serve`: 64 clients at once, half of them with decisions, a tenth of all requests left at random.

    python benchmarks/serve_load.py [--minutes 5] [--model tiny:llama] [--clients 64] [--seed 0] [--json]

The server is a process of its own. Before the load every request is asked alone, once; under load every answer must be
that one, to the last digit. Ends with 1 where an answer was lost or another one's, or where a slot stayed taken.
"""

import argparse
import asyncio
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import httpx
import numpy as np
import psutil

CHAT, DECIDE = "/v1/chat/completions", "/v1/systemone"
LOST_S = 120.0
"""Seconds after which an answer counts as lost."""
SETTLE_S = 30.0
"""Seconds after the last answer in which every slot must be free."""
EVERY_S = 1.0
"""Seconds between two looks at the server's memory."""
LEAVE = 0.1
"""Share of requests whose client leaves before the end."""
MiB = 1 << 20
TOPICS = ("the sea", "a night train", "bread", "an old clock", "rain", "chess", "a lighthouse", "snow", "bees", "maps")


@dataclass(frozen=True)
class Question:
    """A request, and what it gives when nobody else is there."""

    path: str
    body: dict[str, Any]
    answer: Any = None


@dataclass
class Count:
    """What came of the requests of one kind; `seconds` are those of answers that were right."""

    answered: int = 0
    left: int = 0
    wrong: int = 0
    lost: int = 0
    refused: int = 0
    seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Kind:
    """One kind of request in figures; times in seconds, None where there was no answer."""

    answered: int
    left: int
    wrong: int
    lost: int
    refused: int
    p50: float | None
    p95: float | None
    worst: float | None

    @classmethod
    def of(cls, count: Count) -> "Kind":
        """The figures of what was counted."""
        p50, p95, worst = np.percentile(count.seconds, (50, 95, 100)).tolist() if count.seconds else (None, None, None)
        return cls(count.answered, count.left, count.wrong, count.lost, count.refused, p50, p95, worst)


@dataclass(frozen=True)
class Report:
    """What the load came to; memory in bytes: after the first tenth of the time, and at the end."""

    model: str
    clients: int
    seconds: float
    decisions: Kind
    streams: Kind
    stuck: int
    memory_early: int
    memory_late: int

    @property
    def ok(self) -> bool:
        """Whether every answer came, was right, and left its slot."""
        return not (
            self.stuck or any(kind.wrong or kind.lost or kind.refused for kind in (self.decisions, self.streams))
        )

    def __str__(self) -> str:
        lines = [
            f"{self.model}, {self.clients} clients, {self.seconds:.0f} s",
            "",
            "| | answered | left | wrong | lost | refused | p50, s | p95, s | worst, s |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
        for name, kind in (("decisions beside streams", self.decisions), ("streams", self.streams)):
            cells = [
                "-" if one is None else f"{one:.3f}" if isinstance(one, float) else str(one) for one in astuple(kind)
            ]
            lines.append(f"| {' | '.join([name, *cells])} |")
        early, late = self.memory_early / MiB, self.memory_late / MiB
        lines += ["", f"slots that stayed taken: {self.stuck}", f"memory: {early:.0f} MiB early, {late:.0f} MiB late"]
        return "\n".join(lines)


def astuple(kind: Kind) -> tuple[Any, ...]:
    """The fields in order."""
    return tuple(asdict(kind).values())


def questions(seed: int) -> list[Question]:
    """Half of them chats with draws of their own, half decisions; no two are alike."""
    draw = random.Random(seed)
    chats = [
        {
            "model": "default",
            "messages": [{"role": "user", "content": f"Tell me about {topic}, in tone {draw.randrange(100)}."}],
            "max_tokens": draw.randint(8, 96),
            "temperature": 0.9,
            "seed": draw.randrange(2**32),
            "ignore_eos": True,
            "stream": True,
        }
        for topic in TOPICS
    ]
    asked = [
        {
            "model": "jev-latest",
            "state": f"Message {draw.randrange(1000)} about {topic}: " + "I was charged twice. " * draw.randint(1, 6),
            "questions": {
                "team": {"type": "choice", "instructions": "Which team?", "criteria": {topic: None, "other": None}},
                "angry": {"type": "noul", "instructions": "Is the writer angry?"},
            },
        }
        for topic in TOPICS
    ]
    return [Question(CHAT, body) for body in chats] + [Question(DECIDE, body) for body in asked]


async def ask(client: httpx.AsyncClient, question: Question, leave_after: float | None = None) -> Any:
    """The answer: a chat's whole text, a decision's answers. TimeoutError where the client leaves before that."""

    async def answer() -> Any:
        async with client.stream("POST", question.path, json=question.body) as got:
            await _check(got)
            if question.path == DECIDE:
                return json.loads(await got.aread())["answers"]
            return [text async for line in got.aiter_lines() if (text := _said(line)) is not None]

    return await asyncio.wait_for(answer(), leave_after)


async def _check(got: httpx.Response) -> None:
    if got.status_code != 200:
        raise ConnectionRefusedError(got.status_code, (await got.aread()).decode())


def _said(line: str) -> str | None:
    """The text in one line of a stream; the end of it must have come too, or the answer is another one."""
    data = line.removeprefix("data: ")
    if data == line or data == "[DONE]":
        return data or None
    told = json.loads(data)
    return told["choices"][0]["delta"].get("content") or "" if "choices" in told else data


def whole(answer: Any) -> Any:
    """An answer that can be compared: how a text was cut into events depends on who reads it."""
    return "".join(answer) if isinstance(answer, list) else answer


@dataclass
class Load:
    """Clients that ask until the time is up."""

    client: httpx.AsyncClient
    questions: list[Question]
    until: float
    counts: dict[str, Count] = field(default_factory=lambda: {CHAT: Count(), DECIDE: Count()})

    async def run(self, number: int, seed: int) -> None:
        """One client: with decisions where its number is even, with chats otherwise."""
        draw = random.Random(f"{seed} {number}")
        own = [one for one in self.questions if one.path == (CHAT if number % 2 else DECIDE)]
        while time.monotonic() < self.until:
            leave = draw.random() < LEAVE
            await self._one(draw.choice(own), draw.uniform(0.0, 0.3) if leave else None)

    async def _one(self, question: Question, leave_after: float | None) -> None:
        count, began = self.counts[question.path], time.monotonic()
        try:
            got = whole(await ask(self.client, question, LOST_S if leave_after is None else leave_after))
        except asyncio.TimeoutError:
            count.lost += leave_after is None
            count.left += leave_after is not None
        except ConnectionRefusedError:
            count.refused += 1
        except httpx.HTTPError:
            count.lost += 1
        else:
            count.answered += 1
            count.wrong += got != question.answer
            count.seconds.append(time.monotonic() - began)


async def load(url: str, process: psutil.Process, clients: int, seconds: float, seed: int) -> Report:
    """Ask everything alone, then put the load on, then see what is left of it."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=clients)
    async with httpx.AsyncClient(base_url=url, timeout=None, limits=limits) as client:
        asked = [Question(one.path, one.body, whole(await ask(client, one))) for one in questions(seed)]
        began = time.monotonic()
        under = Load(client, asked, began + seconds)
        watching = asyncio.ensure_future(_memory(process))
        await asyncio.gather(*(under.run(number, seed) for number in range(clients)))
        watching.cancel()
        spent, stuck = time.monotonic() - began, await _stuck(client)
        sizes = await asyncio.gather(watching, return_exceptions=True)
        model = (await client.get("/health")).json()["model"]
    [sizes] = sizes
    assert isinstance(sizes, list)
    early = max(sizes[: max(1, len(sizes) // 10)])
    decisions, streams = (Kind.of(under.counts[path]) for path in (DECIDE, CHAT))
    return Report(model, clients, spent, decisions, streams, stuck, early, sizes[-1])


async def _memory(process: psutil.Process) -> list[int]:
    """The server's resident memory, in bytes, second by second until this is cancelled."""
    sizes: list[int] = []
    try:
        while True:
            sizes.append(process.memory_info().rss)
            await asyncio.sleep(EVERY_S)
    except asyncio.CancelledError:
        return [*sizes, process.memory_info().rss]


async def _stuck(client: httpx.AsyncClient) -> int:
    """How many requests still hold a slot or wait although nobody wants them any more."""
    end = time.monotonic() + SETTLE_S
    while True:
        seen = (await client.get("/slots")).json()["snapshot"]
        taken = sum(slot["state"] != "free" for slot in seen["slots"]) + len(seen["waiting"])
        if not taken or time.monotonic() > end:
            return taken
        await asyncio.sleep(0.1)


@contextmanager
def serving(model: str) -> Iterator[tuple[str, psutil.Process]]:
    """`lanes serve` on a free port: where it is, and its process."""
    command = [sys.executable, "-m", "lanes", "serve", "--model", model, "--port", "0", "--decisions", "--json"]
    one = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert one.stdout
        yield json.loads(one.stdout.readline())["url"], psutil.Process(one.pid)
    finally:
        one.terminate()
        one.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="Put load on lanes serve.")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--model", default="tiny:llama", help='"default", a folder, a hub id, or "tiny:llama"')
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0, help="of who asks what, and when they leave")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with serving(asked.model) as (url, process):
        report = asyncio.run(load(url, process, asked.clients, 60 * asked.minutes, asked.seed))
    print(json.dumps({**asdict(report), "ok": report.ok}, indent=2) if asked.json else report)
    sys.exit(not report.ok)


if __name__ == "__main__":
    main()
