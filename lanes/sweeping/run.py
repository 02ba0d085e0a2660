"""`lanes.sweep`: rows in, a frame out; what a file has already is read back, the rest is asked and written in order."""

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd
from tqdm import tqdm

from lanes import checks
from lanes.decisions.priors import Prior
from lanes.decisions.questions import Question
from lanes.engine import Engine
from lanes.errors import InvalidRequest
from lanes.sweeping.frame import check_names, to_frame
from lanes.sweeping.journal import Journal, opened
from lanes.sweeping.lines import Line
from lanes.sweeping.rows import Row, Rows, StateOf, read_rows
from lanes.sweeping.terms import Maker, Terms
from lanes.sweeping.window import PER_SLOT, Window

if TYPE_CHECKING:
    from distributed import Client

    from lanes.evaluation import Calibration

Answering: TypeAlias = Callable[[Iterable[Row]], Generator[Line, None, None]]
"""Gives rows' lines as they come, in any order; closing it cancels what is asked."""


def sweep(
    engine: Engine | Mapping[str, Any],
    rows: Rows,
    questions: Mapping[str, Question],
    *,
    state: StateOf = None,
    path: str | os.PathLike[str] | None = None,
    client: "Client | None" = None,
    in_flight: int | None = None,
    progress: bool = True,
    method: str = "codes",
    orders: int | str = 1,
    prior: Prior | str | None = None,
    abstain: bool = False,
    calibration: "Calibration | None" = None,
    deadline: float | None = None,
) -> pd.DataFrame:
    """Ask the same questions about every row; returns a frame with one row for each, in their order.

    rows: a DataFrame, a Series, or an iterable of texts or objects. state: what of a row is judged: a column or key, a
    callable (a frame's row comes to it as a dict), or None: the row itself, the cell of a one-column frame.
    path: a file of JSON lines that grows with the sweep. A run that was killed goes on where it was, and the file ends
    as one of a single run would. A whole file is only read back, and rows may be added at the end. A file of other
    questions, options, model or rows is refused. client: a `dask.distributed` Client, whose workers answer the rows,
    with one engine in each worker's process; `engine` may then be a dict of `Engine`'s arguments, and no model is
    loaded here. in_flight: rows asked at a time (of each task of a client), twice the slots by default. progress: a bar
    on stderr. The rest is as for `lanes.ask`; `deadline` counts for each row, from the moment that it is asked.

    Columns: a frame's own, then for each question `q` the choice `q`, and `q.value`, `q.confidence` (NaN for yes or
    no), `q.probabilities`, `q.logs` (log-probabilities at temperature 1) in the order of `q.keys`, `q.type`,
    `q.label_mass`, `q.margin`, `q.abstain` (NaN where it was not offered), `q.orders`, `q.flips`, `q.temperature` and
    `q.warnings`; at last `model` (its fingerprint), `seconds` (of the ask; NaN for rows read back or failed), `error`.

    A row's error is recorded in that row (`error`, None elsewhere) and disturbs no other. A resumed run keeps errors
    that the row itself is the cause of (InvalidRequest), and asks the others again. EngineClosed, DeviceStalled and
    Ctrl-C end the sweep: what is asked is cancelled, and the file can be resumed. The call blocks, also where an event
    loop runs: `await asyncio.to_thread(lanes.sweep, ...)` does not hold the loop up.

    Raises InvalidRequest for questions, options, rows or files that cannot work, before anything is asked.
    """
    terms = Terms.read(questions, method, orders, prior, abstain, calibration, deadline)
    checks.flag("progress", progress)
    source = read_rows(rows, state)
    check_names(source, terms)
    size = None if in_flight is None else checks.whole("in_flight", in_flight, 1, 4096)
    maker, answering = _here(engine, terms, size) if client is None else _there(client, engine, terms, size)
    with ExitStack() as stack:
        journal = None if path is None else stack.enter_context(opened(path, terms, maker))
        bar = stack.enter_context(tqdm(total=source.total, unit="row", disable=not progress))
        lines = _lines(iter(source), answering, journal, bar)
    return to_frame(source, terms, maker.fingerprint, lines)


def _here(engine: Any, terms: Terms, size: int | None) -> tuple[Maker, Answering]:
    if not isinstance(engine, Engine):
        raise InvalidRequest(f"engine must be a lanes.Engine, not {type(engine).__name__}: only a client takes a dict")
    terms.check(engine)
    places = size or PER_SLOT * engine.options["slots"]
    return Maker.of(engine), lambda rows: Window(engine, terms, places).lines(rows)


def _there(client: "Client", engine: Any, terms: Terms, size: int | None) -> tuple[Maker, Answering]:
    from lanes.sweeping.cluster import Cluster

    cluster = Cluster.of(client, engine, terms, size)
    return cluster.maker, cluster.lines


def _lines(rows: Iterator[Row], answering: Answering, journal: Journal | None, bar: "tqdm[Any]") -> list[Line]:
    lines = _read_back(rows, answering, journal) if journal else []
    bar.initial = bar.n = len(lines)  # no part of this run's pace
    bar.refresh()
    with closing(answering(rows)) as coming:
        for line in _in_order(coming, len(lines)):
            if journal:
                journal.add(line)
            lines.append(line)
            bar.update()
    return lines


def _read_back(rows: Iterator[Row], answering: Answering, journal: Journal) -> list[Line]:
    """The lines that the file has; those with an error that may have passed are asked again first."""
    known = [(line, _row_of(line, rows, journal)) for line in journal.lines]
    again = [row for line, row in known if not line.stays or line.digest != row.digest]
    if not again:
        return list(journal.lines)
    with closing(answering(again)) as coming:
        fresh = {line.number: line for line in coming}
    lines = [fresh.get(line.number, line) for line in journal.lines]
    journal.rewrite(lines)
    return lines


def _row_of(line: Line, rows: Iterator[Row], journal: Journal) -> Row:
    """The row that a line belongs to. InvalidRequest where it is another one; a line without a state fits any."""
    row = next(rows, None)
    if row is None:
        raise InvalidRequest(f"{journal.path} has more rows than there are here: pass another path")
    if line.digest is not None and line.digest != row.digest:
        raise InvalidRequest(
            f"row {row.number} is not the one that {journal.path} has an answer for (its state differs): "
            "pass another path, or delete the file"
        )
    return row


def _in_order(lines: Iterable[Line], first: int) -> Iterator[Line]:
    """The lines in the order of their rows, the first of which has this number."""
    early: dict[int, Line] = {}
    for line in lines:
        early[line.number] = line
        while first in early:
            yield early.pop(first)
            first += 1
