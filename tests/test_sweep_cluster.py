"""Sweeps on a local cluster of two processes: the file and the frame of one engine, whatever becomes of a worker."""

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rigs import until

import lanes
from lanes.sweeping import cluster as clusters
from lanes.sweeping import sweep, workers
from lanes.sweeping.rows import read_rows
from lanes.sweeping.terms import Terms
from lanes.sweeping.workers import Shared

distributed = pytest.importorskip("distributed")

TEAM = {"team": lanes.Choice("Which team?", {"billing": "Payments", "other": None})}
ROWS = [*(f"Message number {number}" for number in range(80)), "", "the last"]
OPTIONS = {"model": lanes.tiny("llama"), "slots": 2}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    local = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0")
    with local, distributed.Client(local) as client:
        yield client


@pytest.fixture(scope="module")
def engine() -> Iterator[lanes.Engine]:
    with lanes.Engine(**OPTIONS) as engine:
        yield engine


@pytest.fixture(scope="module")
def here(engine: lanes.Engine, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, bytes]:
    """What one engine gives for all rows: frame and file."""
    path = tmp_path_factory.mktemp("here") / "sweep.jsonl"
    return sweep(engine, ROWS, TEAM, path=path, progress=False), path.read_bytes()


def engines() -> int:
    """How many engines live in this process; runs on a worker."""
    return sum(thread.name == "lanes-engine" for thread in threading.enumerate())


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "CHUNK", 8)


def test_a_killed_worker_costs_only_time(client: Any, here: tuple[Any, bytes], tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    pids = client.run(os.getpid)

    def kill() -> None:
        until(lambda: path.exists() and path.read_bytes().count(b"\n") > 8)
        os.kill(min(pids.values()), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = sweep(OPTIONS, ROWS, TEAM, path=path, client=client, progress=False)
    killer.join()
    assert path.read_bytes() == here[1]
    assert found.drop(columns="seconds").equals(here[0].drop(columns="seconds"))
    client.wait_for_workers(2, timeout=60)
    assert len(set(client.run(os.getpid).values()) & set(pids.values())) == 1, "one was killed amid the sweep"


def test_workers_keep_one_engine_each_for_all_sweeps(
    client: Any, engine: lanes.Engine, here: tuple[Any, bytes]
) -> None:
    for given in (engine, OPTIONS, engine):
        found = sweep(given, ROWS[:24], TEAM, client=client, progress=False)
        assert found["team.logs"].tolist() == here[0]["team.logs"].tolist()[:24]
        assert (found["seconds"] > 0).all()
        assert max(client.run(engines).values()) == 1


def test_a_cluster_goes_on_where_one_engine_was_killed(client: Any, here: tuple[Any, bytes], tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    path.write_bytes(here[1][: len(here[1]) * 2 // 3])
    sweep(OPTIONS, ROWS, TEAM, path=path, client=client, progress=False)
    assert path.read_bytes() == here[1]


def test_an_engine_that_is_not_the_headers_is_refused(client: Any) -> None:
    terms = Terms.read(TEAM, "codes", 1, None, False, None, None)
    usual = clusters.Cluster.of(client, OPTIONS, terms, None)
    stranger = replace(usual, maker=replace(usual.maker, fingerprint="0" * 64))
    with pytest.raises(lanes.InvalidRequest, match="not the one that this sweep began with"):
        list(stranger.lines(read_rows(ROWS[:3], None)))


def test_rows_that_kill_every_worker_end_the_sweep(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 0)
    monkeypatch.setattr(workers, "answer", lambda *_: os._exit(1))
    with pytest.raises(lanes.EngineFailed, match="every worker that took these rows died"):
        sweep(OPTIONS, ROWS[:3], TEAM, client=client, progress=False)
    client.wait_for_workers(2, timeout=60)


def test_a_worker_that_goes_closes_its_engine() -> None:
    before = engines()
    local = distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0")
    with local, distributed.Client(local) as client:
        assert sweep(OPTIONS, ROWS[:20], TEAM, client=client, progress=False)["error"].isna().all()
        assert engines() == before + 1
    until(lambda: engines() == before)


@pytest.mark.parametrize(
    ("engine", "questions", "said"),
    [
        ("default", TEAM, "dict of its arguments"),
        ({**OPTIONS, "policy": "off"}, TEAM, "policy"),
        ({**OPTIONS, "slots": 0}, TEAM, "slots"),
    ],
)
def test_what_no_worker_can_do_is_said(client: Any, engine: Any, questions: Any, said: str) -> None:
    with pytest.raises(lanes.InvalidRequest, match=said):
        sweep(engine, ROWS, questions, client=client, progress=False)


def test_something_else_is_no_client() -> None:
    with pytest.raises(lanes.InvalidRequest, match=r"dask\.distributed"):
        sweep(OPTIONS, ROWS, TEAM, client="tcp://somewhere", progress=False)  # pyright: ignore[reportArgumentType]


def test_a_shared_engine_is_made_again_once_it_is_closed_and_gives_way_to_another() -> None:
    shared = Shared()
    with shared.use(OPTIONS) as first:
        with shared.use(dict(OPTIONS)) as same:
            assert same is first
        shared.close()
        with shared.use(OPTIONS) as again:
            assert again is not first and not again.closed
    other: list[lanes.Engine] = []

    def use() -> None:
        with shared.use({**OPTIONS, "slots": 1}) as engine:
            other.append(engine)

    waiting = threading.Thread(target=use)
    with shared.use(OPTIONS) as held:
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive() and held is again and not held.closed
    waiting.join()
    assert held.closed and other[0].options["slots"] == 1
    shared.close()
    assert other[0].closed
