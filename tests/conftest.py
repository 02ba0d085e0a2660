"""Settings that every test shares."""

import lanes  # isort: skip - before anything that imports mlx, so that the fast BLAS is in place

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings
from rigs import WAIT, check_record
from serving import serving

from lanes.models.loaded import Loaded
from lanes.serving import Server

# A shell's background jobs ignore Ctrl-C, and so would the programs that tests start to interrupt them.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No test depends on speed: the machine may be busy with something else.
# The same examples on every run: a failure belongs to the change at hand. `--hypothesis-profile=search` looks further.
settings.register_profile("lanes", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile("lanes")


@pytest.fixture(scope="session")
def default_loaded() -> Loaded:
    """The embedded model on the test's own thread, loaded once; fetched where this machine does not have it yet."""
    return lanes.load("default", progress=False)


@pytest.fixture(scope="module")
def engine() -> Iterator[lanes.Engine]:
    """A module's own small engine; its whole record must add up when the module is through."""
    with lanes.Engine(lanes.tiny("llama"), keep_rounds=200_000) as engine:
        yield engine
        assert engine.wait(WAIT)
        check_record(engine)


@pytest.fixture(scope="module")
def server(engine: lanes.Engine) -> Iterator[Server]:
    """A module's own server, decisions included, over its engine."""
    with serving(engine) as server:
        yield server
