"""Typed questions over a data set: every row asked, all slots busy, one frame out, one file that survives a kill."""

from lanes.sweeping.run import sweep

__all__ = ["sweep"]
