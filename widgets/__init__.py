"""Jupyter widgets that show an engine's slots, tokens and decisions as they happen."""
