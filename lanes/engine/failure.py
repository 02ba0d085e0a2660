"""From whatever went wrong inside to the error that a caller gets."""

import logging

from lanes.errors import EngineFailed

log = logging.getLogger("lanes")
log.addHandler(logging.NullHandler())  # silent until somebody asks: a print would land in whatever cell runs


def failure(what: str, error: BaseException) -> EngineFailed:
    """An EngineFailed that says what failed and why; the traceback goes to the log named "lanes".

    The error keeps no frames: they would hold the model and its arrays for as long as somebody keeps the error.
    """
    log.warning("%s", what, exc_info=error)
    failed = EngineFailed(f"{what}: {type(error).__name__}: {error}")
    failed.__cause__ = error.with_traceback(None)
    error.__context__ = None
    return failed
