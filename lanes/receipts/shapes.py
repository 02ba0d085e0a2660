"""What a receipt holds: frozen shapes, every key of which has to be there, and no other.

Read from JSON strictly: no text for a number, no 1 for true.
"""

from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from lanes.receipts.circumstances import EngineFacts, Environment, Made, Project
from lanes.receipts.fields import Count, Identifier, Name, Number, Numbers, Sentence, Sha256, Shape

FORMAT = "lanes.receipt/1"
"""The version of these shapes: another one is another text."""


class Notebook(Shape):
    """The notebook that made the receipt: its file's name, and the sha256 of its code cells' sources."""

    name: Annotated[str, StringConstraints(pattern=r"^\w[\w.-]*\.ipynb$", max_length=200)]
    sha256: Sha256


class Same(Shape):
    """Evidence of a plain check: what was expected and what was observed are all there is."""

    kind: Literal["value"]


class Digests(Shape):
    """Evidence that two rows of digests (or other texts) are equal: both."""

    kind: Literal["digests"]
    first: tuple[Name, ...]
    second: tuple[Name, ...]


class Range(Shape):
    """Evidence that a figure lies in a range, ends included; None is an open end.

    `figure` is the name of a ratio, or an arm, a value and a figure of it: ("idle", "seconds", "p95").
    """

    kind: Literal["range"]
    figure: tuple[Name, ...]
    low: Number | None
    high: Number | None


class Check(Shape):
    """One check: all of it follows from its evidence (and, of a plain one, from what is expected and observed)."""

    name: Name
    expected: JsonValue
    observed: JsonValue
    passed: bool
    evidence: Annotated[Same | Digests | Range, Field(discriminator="kind")]


class Arm(Shape):
    """One way of doing something that was measured. Arms of one group took turns, `repeats` times after `warmups`."""

    name: Name
    group: Count
    repeats: Annotated[int, Field(ge=1)]
    warmups: Count


class Sample(Shape):
    """One attempt. `position` counts through the receipt, `repeat` through the group, warm-ups included.

    A failed one keeps its error and has no values; any other has `seconds` at least. A value is one number or many.
    """

    position: Count
    arm: Name
    repeat: Count
    warmup: bool
    ok: bool
    error: Sentence | None
    values: dict[Name, Number | Numbers]

    @property
    def seconds(self) -> int | float:
        """How long it took; 0 where it does not say so in one number."""
        found = self.values.get("seconds", 0)
        return 0 if isinstance(found, tuple) else found


class Figures(Shape):
    """One value of one arm over its samples: `n` numbers in all, `failed` attempts of the arm have none.

    `median` is the middle, or the mean of the two middles; p50, p95 and p99 are nearest ranks, samples themselves.
    """

    n: Annotated[int, Field(ge=1)]
    failed: Count
    median: Number
    p50: Number
    p95: Number
    p99: Number
    min: Number
    max: Number


class Ratio(Shape):
    """One value over another, each named by arm and value.

    pairs: the median of the `n` ratios within a repeat, with the least and the greatest of them. medians: the ratio of
    the two medians, of `n` samples at least on either side.
    """

    name: Name
    kind: Literal["pairs", "medians"]
    numerator: tuple[Name, Name]
    denominator: tuple[Name, Name]
    n: Annotated[int, Field(ge=1)]
    value: Number
    min: Number | None
    max: Number | None


class PromptFacts(Shape):
    """A prompt: sha256 of its text (of chat messages: of their canonical JSON) and its lengths."""

    name: Name
    sha256: Sha256
    tokens: Count | None
    characters: Count
    text: str | None


class Reply(Shape):
    """What a stream said. `token_sha`: the first 12 hex digits of the sha256 of the ids, joined by commas.

    `logits_sha256`: over the digests of the logits behind the tokens, one a line; None where none were kept.
    """

    name: Name
    prompt_sha256: Sha256
    prompt_tokens: Count
    tokens: Count
    finish_reason: Name
    token_sha: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{12}$")]
    logits_sha256: Sha256 | None
    text: str | None


class Record(Shape):
    """A whole receipt: a claim, the checks that carry it, and everything that they rest on."""

    format: Literal["lanes.receipt/1"]
    topic: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]+$", max_length=100)]
    claim: Sentence
    notebook: Notebook | None
    parameters: dict[Identifier, JsonValue]
    seeds: dict[Identifier, int]
    checks: tuple[Check, ...]
    arms: tuple[Arm, ...]
    samples: tuple[Sample, ...]
    aggregates: dict[Name, dict[Name, Figures]]
    ratios: tuple[Ratio, ...]
    prompts: tuple[PromptFacts, ...]
    replies: tuple[Reply, ...]
    not_run: tuple[Sentence, ...]
    engines: dict[Name, EngineFacts]
    environment: Environment
    project: Project
    made: Made
