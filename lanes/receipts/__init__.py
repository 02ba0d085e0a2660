"""Receipts: a notebook measures a claim and seals it into one file; a stranger verifies the file and runs it again."""

from lanes.receipts.audit import Finding
from lanes.receipts.draft import Draft, begin
from lanes.receipts.folder import Comparison, compare
from lanes.receipts.receipt import Receipt, read
from lanes.receipts.rerun import rerun
from lanes.receipts.said import digest, token_sha
from lanes.receipts.verdict import Verdict
from lanes.receipts.verify import verify

__all__ = [
    "Comparison",
    "Draft",
    "Finding",
    "Receipt",
    "Verdict",
    "begin",
    "compare",
    "digest",
    "read",
    "rerun",
    "token_sha",
    "verify",
]
