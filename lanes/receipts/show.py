"""A receipt in words and as HTML without scripts, in light and dark, and the one call that shows both."""

import sys
from collections.abc import Iterator
from html import escape

from lanes.receipts import picture
from lanes.receipts.evidence import range_words
from lanes.receipts.fields import one_line
from lanes.receipts.shapes import Check, Digests, Figures, Range, Record
from lanes.record.show import html_page, html_table, many, text_table

_FAINT = "color:var(--jp-ui-font-color2, #757575)"
_FILE = "max-height:20em;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere"
WHOLE = 256 * 1024
"""Bytes of a file that a page repeats."""
_GOOD, _BAD = "var(--jp-success-color1, #2e7d32)", "var(--jp-error-color1, #c62828)"
CHECKS = ("", "check", "expected", "observed")
FIGURES = ("arm", "value", "n", "failed", "median", "p95", "min", "max")
RATIOS = ("ratio", "value", "n", "least", "greatest")
REPLIES = ("reply", "prompt tokens", "tokens", "ended by", "token_sha", "logits")


def display(text: str, html: str) -> None:
    """Show both forms as one output where a notebook runs, the text elsewhere."""
    ipython = sys.modules.get("IPython")
    if ipython is None or ipython.get_ipython() is None:
        print(text)
        return
    ipython.display.display({"text/plain": text, "text/html": html}, raw=True)


def facts(record: Record) -> str:
    """The checks in words. Of one that passed, only what every machine sees alike: what was expected."""
    lines = [f"{record.topic}: {record.claim}"]
    width = max((len(check.name) for check in record.checks), default=0)
    lines += [f"{_mark(check)}  {check.name:<{width}}  {_fact(check)}" for check in record.checks]
    return "\n".join(lines)


def text(record: Record, sha256: str | None) -> str:
    """All of it in words; the same receipt always gives the same text."""
    parts = [f"{record.topic}: {record.claim}", f"{_sealed(sha256)}; {verdict(record)}"]
    for head, rows in _tables(record):
        if rows:
            parts.append(text_table(head, rows))
    parts += ["\n".join(["not run:", *(f"- {sentence}" for sentence in record.not_run)])] if record.not_run else []
    parts.append("\n".join(f"{name}: {value}" for name, value in made_of(record)))
    return "\n\n".join(parts)


def html(record: Record, sha256: str | None, file: bytes = b"") -> str:
    """The same as a page's part: tables, the samples as a picture; folded away what it was made on, and the file.

    A saved page then holds the whole receipt. A file of more than 256 KiB is not repeated there.
    """
    colour = _GOOD if passed(record) else _BAD
    counted = f'<b style="color:{colour}">{escape(verdict(record))}</b>'
    parts = [
        f"<div>{escape(record.claim)}</div>",
        f'<div style="{_FAINT}">{escape(_sealed(sha256))}; {counted}</div>',
    ]
    parts += [_spaced(html_table(head, rows)) for head, rows in _tables(record) if rows]
    if record.samples:
        parts.append(_spaced(picture.samples(record.arms, record.samples)))
    if record.not_run:
        left = "".join(f"<li>{escape(sentence)}</li>" for sentence in record.not_run)
        parts.append(_spaced(f"not run:<ul>{left}</ul>"))
    made = html_table(("", ""), made_of(record))
    parts.append(_spaced(f"<details><summary>machine, code and model</summary>{made}</details>"))
    if 0 < len(file) <= WHOLE:
        own = f'<pre style="{_FILE}">{escape(file.decode(), quote=False)}</pre>'
        parts.append(f"<details><summary>the file, {many(len(file), 'byte')}</summary>{own}</details>")
    return html_page(record.topic, *parts)


def passed(record: Record) -> bool:
    """Whether every check passed."""
    return all(check.passed for check in record.checks)


def passed_of(record: Record) -> str:
    """How many checks passed."""
    return f"{sum(check.passed for check in record.checks)} of {many(len(record.checks), 'check')} passed"


def verdict(record: Record) -> str:
    """The checks counted, and the attempts that failed."""
    failed = sum(not sample.ok for sample in record.samples)
    tried = f", {failed} of {many(len(record.samples), 'attempt')} failed" if failed else ""
    return passed_of(record) + tried


def figures_of(record: Record) -> Iterator[tuple[str, str, Figures]]:
    """Arm, value and figures, in the order in which the arms were given: a file sorts them."""
    for arm in record.arms:
        for value, own in sorted(record.aggregates.get(arm.name, {}).items()):
            yield arm.name, value, own


def made_of(record: Record) -> list[tuple[str, str]]:
    """What it was made on and with, a name and a value each."""
    there, load, code = record.environment, record.environment.load, record.project
    idle = "" if load.main_thread is None else f"; the main thread used {load.main_thread:.1%} of a core"
    blas = ", ".join(str(part) for part in (there.blas.source, there.blas.core, there.blas.threads) if part)
    changed = " and changes that are in no commit" if code.dirty else ""
    rows = [
        ("made", f"{record.made.at}, in {record.made.seconds:.1f} s"),
        ("machine", f"{there.cpu}, {there.cores} cores, {there.memory_bytes / 2**30:.1f} GiB, {there.system}"),
        ("device", f"{there.device}; BLAS {blas}"),
        ("versions", ", ".join([there.python, *(" ".join(pair) for pair in sorted(there.versions.items()))])),
        (
            "load",
            f"{_or_dash(load.before)} before, {_or_dash(load.after)} after; others used {load.others} cores{idle}",
        ),
        ("code", f"lanes {code.version}, commit {(code.commit or 'unknown')[:12]}{changed}"),
        ("sources", code.sources_sha256),
    ]
    for name, engine in sorted(record.engines.items()):
        settings = ", ".join(f"{key} {one_line(str(value))}" for key, value in sorted(engine.settings.items()))
        rows += [(name, f"{engine.model.name}, fingerprint {engine.model.fingerprint[:12]}; {settings}")]
    if record.notebook:
        rows.append(("notebook", f"{record.notebook.name}, code {record.notebook.sha256[:12]}"))
    if record.parameters:
        rows.append(
            ("parameters", ", ".join(f"{name} = {value!r}" for name, value in sorted(record.parameters.items())))
        )
    return rows


def _tables(record: Record) -> Iterator[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    yield CHECKS, [(_mark(check), check.name, *_sides(check)) for check in record.checks]
    yield (
        FIGURES,
        [
            (
                arm,
                value,
                str(own.n),
                str(own.failed),
                *(digits(part) for part in (own.median, own.p95, own.min, own.max)),
            )
            for arm, value, own in figures_of(record)
        ],
    )
    yield (
        RATIOS,
        [(own.name, digits(own.value), str(own.n), digits(own.min), digits(own.max)) for own in record.ratios],
    )
    yield (
        REPLIES,
        [
            (
                own.name,
                str(own.prompt_tokens),
                str(own.tokens),
                own.finish_reason,
                own.token_sha,
                _hash(own.logits_sha256),
            )
            for own in record.replies
        ],
    )


def _fact(check: Check) -> str:
    expected, observed = _sides(check)
    if not check.passed:
        return f"expected {expected}, observed {observed}"
    if isinstance(check.evidence, Digests):
        return f"equal: {many(len(check.evidence.first), 'digest')}"
    return expected


def _sides(check: Check) -> tuple[str, str]:
    """What was expected and what was observed, in short."""
    evidence = check.evidence
    if isinstance(evidence, Range):
        seen = check.observed
        words = (
            digits(seen) if isinstance(seen, int | float) else _short(seen)
        )  # of a file that lies it may be anything
        return range_words(evidence.low, evidence.high), words
    if isinstance(evidence, Digests):
        first, second = evidence.first, evidence.second
        if check.passed:
            return many(len(first), "digest"), "the same"
        at = next((at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)
        return many(len(first), "digest"), f"{many(len(second), 'digest')}" + (
            "" if at is None else f", other from {at} on"
        )
    return _short(check.expected), _short(check.observed)


def _mark(check: Check) -> str:
    return "ok" if check.passed else "!!"


def _sealed(sha256: str | None) -> str:
    return "not sealed yet" if sha256 is None else f"sha256 {sha256}"


def _short(value: object) -> str:
    words = one_line(str(value))
    return words if len(words) <= 60 else f"{words[:57]}..."


def digits(value: float | None) -> str:
    """A figure with four digits; a dash for None."""
    return "-" if value is None else f"{value:.4g}" if abs(value) < 1e4 else f"{value:.6g}"


def _or_dash(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _hash(value: str | None) -> str:
    return "-" if value is None else value[:12]


def _spaced(part: str) -> str:
    return f'<div style="margin-top:8px">{part}</div>'
