"""What a receipt holds: frozen shapes, every key of which has to be there, and no other.

Read from JSON strictly: no text for a number, no 1 for true. Times are seconds, memory is bytes, hashes are lower hex.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

FORMAT = "lanes.receipt/1"
"""The version of these shapes: another one is another text."""

Sha256: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Sha1: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Name: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Sentence: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
Identifier: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)]
Count: TypeAlias = Annotated[int, Field(ge=0)]
LARGEST = 10**100
"""The largest number: beyond it sums and ratios of floats would overflow."""
Number: TypeAlias = (
    Annotated[int, Field(ge=-LARGEST, le=LARGEST)] | Annotated[float, Field(ge=-float(LARGEST), le=float(LARGEST))]
)


class Shape(BaseModel):
    """Strict, frozen, closed: no field has a default, so that none can be left out."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


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

    A failed one keeps its error and has no values; any other has `seconds` at least.
    """

    position: Count
    arm: Name
    repeat: Count
    warmup: bool
    ok: bool
    error: Sentence | None
    values: dict[Name, Number]


class Figures(Shape):
    """One value of one arm over its samples: `n` have it, `failed` attempts of the arm have none.

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


class ModelFacts(Shape):
    """A model: where it came from, the sha256 of its files and of its tokenizer, and the engine's fingerprint of it."""

    name: Name
    arch: Name
    source: Name
    dtype: Name
    quantization: Name | None
    files: dict[Name, Sha256]
    tokenizer_sha256: Sha256
    fingerprint: Sha256


class EngineFacts(Shape):
    """An engine: its model, what it was made with, and what it found to be exact."""

    model: ModelFacts
    settings: dict[Name, JsonValue]
    exactness: dict[Name, JsonValue]


class BlasFacts(Shape):
    """The linear algebra library: where it came from, its kernels, its threads."""

    source: Name
    core: Name | None
    threads: Count | None


class Load(Shape):
    """How busy the machine was: its load average before and after (None: the system tells none).

    `others` are the cores that other programs used on average, over `seconds`. `main_thread` is the share of a core
    that the thread which awaited the samples used meanwhile: near 0 where it was idle; None where nothing was measured.
    """

    before: float | None
    after: float | None
    others: float
    seconds: float
    main_thread: float | None


class Environment(Shape):
    """The machine and what ran on it. `installed_sha256` covers every installed package with its version."""

    machine: Name
    cpu: Name
    cores: Count
    threads: Count
    memory_bytes: Count
    device: Name
    system: Name
    python: Name
    versions: dict[Name, Name]
    installed_sha256: Sha256
    blas: BlasFacts
    load: Load


class Project(Shape):
    """The code: version, commit, whether `lanes/` was changed from it, its tree's hash there, sha256 of the sources.

    Commit, dirty and tree are None where there is no git checkout.
    """

    version: Name
    commit: Sha1 | None
    dirty: bool | None
    tree: Sha1 | None
    sources_sha256: Sha256


class Made(Shape):
    """When it was sealed (UTC), and the seconds from its beginning."""

    at: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
    seconds: float


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
