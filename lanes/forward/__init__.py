"""The forward: packed rows and pieces over per-slot caches, and the probe that says what is exact here.

Everything in this package is for the engine's thread alone, or for whoever plays its part in a test.
"""

from lanes.forward.packed import Packed, Row
from lanes.forward.probe import Exactness, Forward, prepare
from lanes.forward.single import Single

__all__ = ["Exactness", "Forward", "Packed", "Row", "Single", "prepare"]
