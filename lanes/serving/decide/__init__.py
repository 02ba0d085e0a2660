"""Decisions over HTTP: three dialects of one thing. Each is read into questions, and answered in its own words."""
