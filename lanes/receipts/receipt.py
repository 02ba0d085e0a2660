"""A sealed receipt: its record, its canonical text, and the sha256 that is its name."""

from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from lanes.errors import InvalidRequest
from lanes.paths import replaced
from lanes.receipts import door, show
from lanes.receipts.canonical import LARGEST, Malformed, decode, encode, sha256
from lanes.receipts.shapes import Record


@dataclass(frozen=True, repr=False)
class Receipt:
    """A receipt that cannot change any more. `data` is its file, byte for byte."""

    record: Record
    data: bytes = field(repr=False)

    @classmethod
    def seal(cls, record: Record) -> "Receipt":
        """The receipt of a record. Raises InvalidRequest where its file would be too large, or is no text."""
        try:
            data = encode(record.model_dump(mode="json"))
        except ValueError as error:
            raise InvalidRequest(f"the receipt holds what JSON does not know: {error}") from None
        if len(data) > LARGEST:
            raise InvalidRequest(
                f"the receipt would have {len(data)} bytes, {LARGEST} are allowed: give `equal` one digest of many "
                "(receipts.digest), or leave texts out"
            )
        return cls(record, data)

    @property
    def sha256(self) -> str:
        """The name of its file, without the ending."""
        return sha256(self.data)

    def save(self, folder: str | Path) -> Path:
        """Write it into a folder, whole or not at all; its path. Raises InvalidRequest where that takes no file."""
        path = door.path(folder) / f"{self.sha256}.json"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replaced(path) as part:
                part.write_bytes(self.data)
        except OSError as error:
            raise InvalidRequest(
                f"the folder {path.parent.name} takes no file: {error.strerror or error}; give another one"
            ) from None
        return path

    def facts(self) -> str:
        """The checks in words, and nothing that another run or machine may change as long as they pass."""
        return show.facts(self.record)

    def show(self) -> None:
        """Show all of it: as text and as HTML without scripts in a notebook, as text elsewhere."""
        show.display(repr(self), self._repr_html_())

    def __repr__(self) -> str:
        return show.text(self.record, self.sha256)

    def _repr_html_(self) -> str:
        return show.html(self.record, self.sha256, self.data)


def load(path: str | Path) -> bytes:
    """The bytes of a receipt's file; InvalidRequest where there is none, or it is too large to be one."""
    path = door.path(path)
    if path.exists() and not path.is_file():
        raise InvalidRequest(f"{path.name} cannot be read: it is no file")  # a pipe would be waited for without end
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise InvalidRequest(f"{path.name} cannot be read: {error.strerror or error}") from None
    if len(data) > LARGEST:
        raise InvalidRequest(f"{path.name} is larger than the {LARGEST} bytes that a receipt may have")
    return data


def read(path: str | Path) -> Receipt:
    """A receipt from its file, which must be canonical and have every key, but is not verified otherwise.

    Raises InvalidRequest for anything else; `verify` tells all that is wrong with it.
    """
    data = load(path)
    try:
        decode(data)
        return Receipt(Record.model_validate_json(data), data)
    except Malformed as error:
        raise InvalidRequest(f"{Path(path).name} is no receipt: {error.field}: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidRequest(f"{Path(path).name} is no receipt of this version: {where}: {first['msg']}") from None
