"""What a receipt was made on and with: engine and model, machine and load, code and time.

Times are seconds, memory is bytes, hashes are lower hex.
"""

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, JsonValue, StringConstraints

from lanes.receipts.fields import Amount, Count, Name, Sha1, Sha256, Shape


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

    before: Amount | None
    after: Amount | None
    others: Amount
    seconds: Amount
    main_thread: Amount | None


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


def _moment(text: str) -> str:
    datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")  # raises ValueError for a day or an hour that no calendar has
    return text


class Made(Shape):
    """When it was sealed (UTC), and the seconds from its beginning."""

    at: Annotated[
        str, StringConstraints(pattern=r"^[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}Z$"), AfterValidator(_moment)
    ]
    seconds: Amount
