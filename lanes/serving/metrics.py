"""Figures for Prometheus, drawn from the record of rounds; under vLLM's names where they mean the same.

Counters and gauges are the engine's own totals, right at any time. Histograms are fed with the rounds since the last
look: where nobody looks for longer than the record reaches back, they miss what was forgotten, and nothing else does.
"""

from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder

from lanes.serving.times import Times

if TYPE_CHECKING:
    from lanes.engine import Engine
    from lanes.record import Snapshot
    from lanes.record.totals import Counts, Totals
    from lanes.serving.context import Counters

Figure: TypeAlias = tuple[str, float]
"""What it says, and the value."""
SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 10.0)
LONG = (0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 240.0, 480.0)
HISTOGRAMS = {
    "ttft": ("vllm:time_to_first_token_seconds", "From submit to the first token of a stream.", SHORT),
    "gap": ("vllm:inter_token_latency_seconds", "Between two tokens of a stream.", SHORT),
    "stream": ("vllm:e2e_request_latency_seconds", "From submit to the end of a stream.", LONG),
    "queue": ("vllm:request_queue_time_seconds", "From submit to the first slot of a stream.", LONG),
    "decision": ("lanes:decision_seconds", "From submit to the answer of a decision.", SHORT),
}
REASONS = ("stop", "length", "answered", "cancelled", "deadline", "error", "closed")


class Metrics:
    """The figures of one engine and of the server before it. `render` may be called on any thread."""

    def __init__(self, engine: "Engine", counters: "Counters") -> None:
        self._engine, self._counters = engine, counters
        self._labels = {"model_name": engine.model}
        self._lock = Lock()
        self._place = engine.rounds.next_index
        self._times = Times()
        self._registry = CollectorRegistry()
        self._histograms = {key: self._histogram(*rest) for key, rest in HISTOGRAMS.items()}
        self._registry.register(self)  # pyright: ignore[reportArgumentType]

    def _histogram(self, name: str, said: str, buckets: Iterable[float]) -> Any:
        return Histogram(name, said, list(self._labels), registry=self._registry, buckets=tuple(buckets)).labels(
            **self._labels
        )

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """The figures now, and their media type."""
        encode, kind = choose_encoder(accept)
        with self._lock:
            self._catch_up()
            return encode(self._registry), kind

    def _catch_up(self) -> None:
        found = self._engine.rounds.since(self._place)
        self._place = found.next
        if found.lost:
            self._times = Times()
        for done in found.rounds:
            for key, seconds in self._times.hear(done):
                self._histograms[key].observe(seconds)

    def describe(self) -> list[Metric]:
        """Nothing to hold against other names in the registry."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Counters and gauges as they stand."""
        seen = self._engine.snapshot()
        yield from self._plain(GaugeMetricFamily, self._gauges(seen))
        yield from self._plain(CounterMetricFamily, self._counts(seen.totals))
        yield self._ended(seen.totals)
        yield self._succeeded(seen.totals.streams)
        yield self._answers()

    def _plain(self, kind: Any, figures: Mapping[str, Figure]) -> Iterator[Metric]:
        for name, (said, value) in figures.items():
            family = kind(name, said, labels=tuple(self._labels))
            family.add_metric(tuple(self._labels.values()), value)
            yield family

    def _gauges(self, seen: "Snapshot") -> dict[str, Figure]:
        used = sum(slot.context_fill for slot in seen.slots) / len(seen.slots)
        return {
            "vllm:num_requests_running": ("Requests in a slot.", sum(slot.state != "free" for slot in seen.slots)),
            "vllm:num_requests_waiting": ("Requests in the queue.", len(seen.waiting)),
            "vllm:kv_cache_usage_perc": ("Used share of all slots' context, 0 to 1.", used),
            "lanes:slots": ("Slots.", len(seen.slots)),
            "lanes:http_open": ("HTTP requests that are being answered.", self._counters.open),
        }

    def _counts(self, totals: "Totals") -> dict[str, Figure]:
        wanted = totals.prompt_tokens + totals.cached_tokens
        return {
            "vllm:prompt_tokens": ("Prompt tokens filled.", totals.prompt_tokens),
            "vllm:generation_tokens": ("Tokens drawn.", totals.tokens),
            "vllm:prefix_cache_queries": ("Prompt tokens wanted.", wanted),
            "vllm:prefix_cache_hits": ("Prompt tokens that were kept from before.", totals.cached_tokens),
            "lanes:rounds": ("Rounds.", totals.rounds),
            "lanes:failed_rounds": ("Rounds that failed.", totals.errors),
            "lanes:busy_seconds": ("Seconds that rounds took.", totals.busy_s),
            "lanes:evictions": ("Decisions that gave their slot back.", totals.decisions.evicted),
            "lanes:http_clients_gone": ("Clients that left before their answer.", self._counters.gone),
        }

    def _ended(self, totals: "Totals") -> Metric:
        family = CounterMetricFamily("lanes:requests", "Requests by how they ended.", labels=("kind", "reason"))
        for kind, counts in (("stream", totals.streams), ("decision", totals.decisions)):
            for reason in REASONS:
                family.add_metric((kind, reason), getattr(counts, reason))
        return family

    def _succeeded(self, streams: "Counts") -> Metric:
        labels = (*self._labels, "finished_reason")
        family = CounterMetricFamily("vllm:request_success", "Streams that came to their end.", labels=labels)
        for reason in ("stop", "length"):
            family.add_metric((*self._labels.values(), reason), getattr(streams, reason))
        return family

    def _answers(self) -> Metric:
        family = CounterMetricFamily("lanes:http_requests", "HTTP answers.", labels=("path", "status"))
        for (path, status), count in list(self._counters.requests.items()):
            family.add_metric((path, str(status)), count)
        return family
