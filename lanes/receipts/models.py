"""What a receipt says of an engine: its model down to the files, what it was made with, what it found to be exact."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanes.models import DEFAULT, TinySpec
from lanes.receipts.canonical import encode, plain, sha256
from lanes.receipts.circumstances import EngineFacts, ModelFacts

if TYPE_CHECKING:
    from lanes.engine import Engine

NOT_SETTINGS = ("model", "progress")


def engine_facts(engine: "Engine") -> EngineFacts:
    """What an engine is and runs. Reads every file of its model."""
    options = engine.options
    settings = {name: value for name, value in options.items() if name not in NOT_SETTINGS}
    return EngineFacts(
        model=_model(engine, options["model"]),
        settings=plain("settings", settings),
        exactness=plain("exactness", engine.exactness.to_dict()),
    )


def _model(engine: "Engine", asked: Any) -> ModelFacts:
    info = engine.info
    folder = not isinstance(asked, TinySpec) and Path(asked).expanduser().is_dir()
    return ModelFacts(
        name=info.name,
        arch=info.arch,
        source=f"a folder: {Path(info.source).name}" if folder else info.source,
        dtype=info.dtype,
        quantization=info.quantization,
        files={path.name: _file_hash(path) for path in _files(asked)},
        tokenizer_sha256=engine.use_tokenizer(tokenizer_hash),
        fingerprint=info.fingerprint,
    )


def tokenizer_hash(tokenizer: Any) -> str:
    """The sha256 of a tokenizer's whole description and chat template; of its vocabulary where it has no more."""
    inner = getattr(tokenizer, "_tokenizer", tokenizer)
    backend = getattr(inner, "backend_tokenizer", None)
    words = backend.to_str() if backend is not None else encode(inner.get_vocab()).decode()
    return sha256(f"{words}\0{getattr(inner, 'chat_template', None) or ''}")


def _files(asked: Any) -> Iterator[Path]:
    """The files that a model was read from; none for random weights."""
    if isinstance(asked, TinySpec):
        return
    if asked == DEFAULT:
        from lanes.models.default import PARCEL, model_folder

        yield model_folder() / Path(PARCEL.member).name
        return
    folder = Path(asked).expanduser()
    if not folder.is_dir():
        from huggingface_hub import snapshot_download

        folder = Path(snapshot_download(os.fspath(asked), local_files_only=True))
    yield from sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


def _file_hash(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
