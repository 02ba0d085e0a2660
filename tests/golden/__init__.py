"""Frozen cases of the default model: what was asked, and what it gave on the machine that is named beside it."""
