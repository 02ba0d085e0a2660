"""Receipts: a notebook measures a claim and seals it into one file; a stranger verifies the file and runs it again."""

from lanes.receipts.draft import Draft, begin
from lanes.receipts.receipt import Receipt, read
from lanes.receipts.said import digest, token_sha
from lanes.receipts.verify import Finding, Verdict, verify

__all__ = ["Draft", "Finding", "Receipt", "Verdict", "begin", "digest", "read", "token_sha", "verify"]
