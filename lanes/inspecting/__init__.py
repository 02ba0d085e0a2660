"""The label inspector: tokens, faults and likelier spellings of labels after a prompt, and what to change."""

from lanes.inspecting.advice import Suggestion
from lanes.inspecting.inspector import inspect_labels
from lanes.inspecting.report import Label, LabelReport, Token
from lanes.inspecting.spellings import Spelling, Verdict

__all__ = ["Label", "LabelReport", "Spelling", "Suggestion", "Token", "Verdict", "inspect_labels"]
