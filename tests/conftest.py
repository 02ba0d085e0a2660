"""Settings that every test shares."""

import os

import lanes  # isort: skip - before anything that imports mlx, so that the fast BLAS is in place

import pytest
from hypothesis import settings

from lanes.models.loaded import Loaded

# No test depends on speed: the machine may be busy with something else.
settings.register_profile("lanes", deadline=None)
settings.load_profile("lanes")


@pytest.fixture(scope="session")
def default_loaded() -> Loaded:
    """The embedded model on the test's own thread, loaded once; fetched where this machine does not have it yet."""
    return lanes.load("default", progress=False)

# These start interpreters and kernels by the dozen and need a machine at rest: run them by hand, without CI set.
collect_ignore = ["test_kernel.py", "test_lifecycle.py"] if os.environ.get("CI") else []
