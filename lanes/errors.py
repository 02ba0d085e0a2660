"""The kinds of errors that Lanes raises: one base class, one kind for each thing a caller may want to catch."""


class LanesError(Exception):
    """The base of every error that Lanes raises on purpose."""


class InvalidRequest(LanesError, ValueError):
    """A request that can never be served as it is written: bad text, labels, numbers or length."""


class PromptTooLong(InvalidRequest):
    """A prompt that does not fit the model's context, with what is to follow it: a shorter one does."""


class Busy(LanesError):
    """No slot is free now, or the queue is full: the same request may succeed later."""


class DeadlineExceeded(LanesError, TimeoutError):
    """The deadline that the request carried has passed before its result was there."""


class Cancelled(LanesError):
    """The request was cancelled before its result was there."""


class EngineClosed(LanesError):
    """The engine is closed or closing and takes or finishes no request any more."""


class EngineFailed(LanesError):
    """A forward of the model failed: the requests that shared it fail with this, its cause attached."""


class DeviceStalled(LanesError):
    """The device has not answered a round for longer than the watchdog allows."""


class ModelError(LanesError):
    """A model cannot be found, fetched, read or understood."""
