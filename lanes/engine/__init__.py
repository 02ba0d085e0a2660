"""The engine: one thread that owns the model, one desk where every other thread leaves its wishes."""

from lanes.engine.facade import Engine
from lanes.engine.handles import Pending, Stream

__all__ = ["Engine", "Pending", "Stream"]
