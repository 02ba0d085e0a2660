"""How a server behaves, checked at the door."""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lanes import checks
from lanes.errors import InvalidRequest

MiB = 1 << 20
ANY = "*"
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True)
class Settings:
    """What `lanes.serve` was asked for; its docstring says what each one is."""

    host: str = "127.0.0.1"
    port: int = 8000
    decisions: bool = False
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    show_prompts: bool = False
    deadline: float | None = None
    body_bytes: int = 8 * MiB
    requests: int = 256
    patience: float = 30.0
    grace: float = 5.0

    @classmethod
    def read(cls, **given: Any) -> "Settings":
        """Settings as a caller writes them. Raises InvalidRequest, with what to change, for what cannot work."""
        plain = cls(**given)
        checked = cls(
            host=_text("host", plain.host),
            port=checks.whole("port", plain.port, 0, 65535),
            decisions=checks.flag("decisions", plain.decisions),
            api_keys=_texts("api_keys", plain.api_keys),
            hosts=_texts("hosts", plain.hosts),
            origins=_texts("origins", plain.origins),
            show_prompts=checks.flag("show_prompts", plain.show_prompts),
            deadline=None if plain.deadline is None else checks.seconds("deadline", plain.deadline),
            body_bytes=checks.whole("body_bytes", plain.body_bytes, 1),
            requests=checks.whole("requests", plain.requests, 1, 100_000),
            patience=checks.seconds("patience", plain.patience),
            grace=checks.seconds("grace", plain.grace),
        )
        if not checked.local and not checked.api_keys:
            raise InvalidRequest(
                f"a server on {checked.host} can be reached from other machines: give api_keys, or keep host 127.0.0.1"
            )
        return checked

    @property
    def local(self) -> bool:
        """Whether only programs on this machine can connect."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def known_hosts(self) -> frozenset[str]:
        """Names, lower case and without a port, that a request may be addressed to; "*" stands for all of them."""
        own = f"[{self.host}]" if ":" in self.host else self.host
        return frozenset(name.lower() for name in (*LOCAL_NAMES, own, *self.hosts))


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value or not value.isascii() or any(sign.isspace() for sign in value):
        raise InvalidRequest(f"{name} must be a text of ASCII characters without spaces, not {value!r:.40}")
    return value


def _texts(name: str, values: Any) -> tuple[str, ...]:
    """A list of texts; one text alone is a list of one. Keys are never repeated in a message."""
    values = (values,) if isinstance(values, str) else values
    if not isinstance(values, Iterable):
        raise InvalidRequest(f"{name} must be a list of texts, not {type(values).__name__}")
    items = tuple(values)
    for place, item in enumerate(items):
        if not isinstance(item, str) or not item or not item.isascii() or any(sign.isspace() for sign in item):
            raise InvalidRequest(f"{name}[{place}] must be a text of ASCII characters without spaces")
    return items
