"""Decisions: which of these labels follows the prompt, and how likely, without drawing a token."""
