"""What a verification found: what does not hold, and what nothing here can confirm."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from lanes.receipts.audit import Finding
from lanes.receipts.fields import one_line
from lanes.record.show import html_page


@dataclass(frozen=True, repr=False)
class Verdict:
    """`findings` are what does not hold, field by field; `words` what is only the author's word, or worth knowing."""

    name: str
    findings: tuple[Finding, ...]
    words: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether everything holds that can be checked here."""
        return not self.findings

    def plus(self, other: "Verdict") -> "Verdict":
        """Both verdicts on one receipt as one."""
        return Verdict(self.name, (*self.findings, *other.findings), (*self.words, *other.words))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: {"name", "ok", "findings": [{"field", "says"}], "words": [...]}."""
        findings = [finding._asdict() for finding in self.findings]
        return {"name": self.name, "ok": self.ok, "findings": findings, "words": list(self.words)}

    def __repr__(self) -> str:
        lines = [f"{self.name}: {self._says}"]
        lines += [f"  !! {finding}" for finding in self.findings]
        lines += [f"  -- {word}" for word in self.words]
        return "\n".join(map(one_line, lines))  # a file that lies may also try to hide what is said of it

    def _repr_html_(self) -> str:
        findings = _items("what does not hold", map(str, self.findings))
        return html_page(f"{self.name}: {self._says}", findings, _items("not confirmed here", self.words))

    @property
    def _says(self) -> str:
        return "holds" if self.ok else "does not hold"


def _items(title: str, texts: Any) -> str:
    lines: Sequence[str] = [f"<li>{escape(one_line(text))}</li>" for text in texts]
    return f"<div>{escape(title)}<ul>{''.join(lines)}</ul></div>" if lines else ""
