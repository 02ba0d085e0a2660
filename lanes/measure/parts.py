"""Where the time of one forward goes, by kind of part: each is evaluated by itself while a clock is switched to it.

Every moment belongs to exactly one kind, so the kinds add up to the whole as it ran. To evaluate between parts costs
something, and nothing overlaps: compare with the whole as an engine runs it. For the thread that loaded the model.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import mlx.core as mx
import mlx.nn as nn

Kind: TypeAlias = Literal[
    "embedding", "norms", "projections", "attention", "recurrence", "MLP", "route", "experts", "head", "between"
]
"""projections: the products before and after attention; attention: positions, cache and the rows over their keys;
recurrence: layers with a state in place of keys; route: which experts, experts: their products; between: residual
sums and whatever else lies between the parts."""
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass
class Clock:
    """Seconds by kind, and how often something was evaluated."""

    seconds: dict[Kind, float] = field(default_factory=lambda: defaultdict(float))
    evaluations: int = 0
    _kind: Kind = "between"
    _since: float = 0.0

    def run(self, work: Callable[[], Any]) -> None:
        """Run and evaluate a piece of work under this clock; `seconds` then holds this run's alone."""
        self.seconds, self.evaluations, self._kind = defaultdict(float), 0, "between"
        self._since = time.perf_counter()
        self.settle(work())
        self.switch("between")

    def switch(self, kind: Kind) -> Kind:
        """Time goes to this kind from now on; returns the kind that it went to."""
        now = time.perf_counter()
        self.seconds[self._kind] += now - self._since
        before, self._kind, self._since = self._kind, kind, now
        return before

    def settle(self, value: Any) -> None:
        """Compute what is still to be computed of a value."""
        mx.eval(value)
        self.evaluations += 1


class Timed(nn.Module):
    """Stands for a part of a model, and switches the clock to its kind while it computes."""

    def __init__(self, original: Any, kind: Kind, clock: Clock, call: Callable[..., Any] | None = None) -> None:
        super().__init__()
        self._original = original
        self._kind: Kind = kind
        self._clock = clock
        self._call = call or original

    def __call__(self, *args: Any, **options: Any) -> Any:
        self._clock.settle([value for value in args if isinstance(value, mx.array)])
        before = self._clock.switch(self._kind)
        out = self._call(*args, **options)
        self._clock.settle(out)
        self._clock.switch(before)
        return out

    @property
    def as_linear(self) -> "Timed":
        """An embedding in its other use: the head of a model with tied weights."""
        return Timed(self._original, "head", self._clock, self._original.as_linear)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("_"):  # its own, asked for before it is set
                raise
            return getattr(self._original, name)


@contextmanager
def timed(model: Any) -> Iterator[Clock]:
    """The model with every part under a clock, until the block is left."""
    clock = Clock()
    places = list(parts(model))
    for parent, name, original, kind in places:
        parent[name] = Timed(original, kind, clock)
    try:
        yield clock
    finally:
        for parent, name, original, _ in places:
            parent[name] = original


def parts(model: Any) -> Iterator[tuple[Any, str, Any, Kind]]:
    """Every part that has a kind: the module it is in, its name there, itself, its kind."""
    for path, parent in model.named_modules():
        for name, child in parent.children().items():
            if isinstance(child, nn.Module) and (kind := kind_of(path, name, child)):
                yield parent, name, child, kind


def kind_of(path: str, name: str, part: Any) -> Kind | None:
    """The kind of a part by where it stands; None for one that is only made of others, or belongs to what it is in."""
    inside = path.split(".")
    if "norm" in type(part).__name__.lower():
        return "norms"
    if isinstance(part, nn.Embedding | nn.QuantizedEmbedding):
        return "embedding"
    if name == "lm_head":
        return "head"
    if name in ("self_attn", "attention"):
        return "attention"
    if name == "linear_attn":
        return "recurrence"
    if "self_attn" in inside or "attention" in inside:
        return "projections" if hasattr(part, "weight") else None
    if name == "switch_mlp":
        return "experts"
    if hasattr(part, "switch_mlp"):
        return "route"
    return "MLP" if name in ("mlp", "feed_forward", "shared_expert") else None


@dataclass(frozen=True)
class Product:
    """A matrix that rows are multiplied with, [outputs, inputs] float, and the kind it belongs to."""

    kind: Kind
    weight: Any


def products(model: Any) -> list[Product]:
    """The dense matrices that every row meets in one forward, in order; not experts, of which a row meets a few."""
    found: list[Product] = []
    for path, part in model.named_modules():
        if type(part) is nn.Linear:
            kind = _product_kind(path.split("."))
            found += [Product(kind, part.weight)] if kind else []
    if not any(product.kind == "head" for product in found):
        embeddings = [part for _, part in model.named_modules() if type(part) is nn.Embedding]
        found += [Product("head", embeddings[0].weight)] if embeddings else []
    return found


def _product_kind(path: Sequence[str]) -> Kind | None:
    if path[-1] == "lm_head":
        return "head"
    if "self_attn" in path:
        return "projections"
    if "linear_attn" in path:
        return "recurrence"
    if path[-1] == "gate" and "mlp" in path:
        return "route"
    return "MLP" if "mlp" in path else None
