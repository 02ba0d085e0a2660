"""mlx-lm as it is, on a thread of its own: BatchGenerator step by step, and a plain prefill piece by piece."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any, TypeVar

from lanes.errors import EngineFailed
from lanes.measure.replies import Reply
from lanes.models import load

Result = TypeVar("Result")


class MlxLm:
    """A second copy of a model, driven by mlx-lm alone. A context manager: leaving it ends the thread.

    MLX's streams belong to threads, so the copy is loaded and run on one thread. Every call returns when the device
    has nothing left to do: no two arms of a comparison compute at once.
    """

    def __init__(self, model: Any) -> None:
        self._thread = ThreadPoolExecutor(1, "mlx-lm")
        self._generator: Any = None
        self._uids: list[int] = []
        try:
            self._model: Any = self._on_thread(lambda: load(model, progress=False).model)
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> "MlxLm":
        return self

    def __exit__(self, *_: object) -> None:
        import mlx.core as mx

        self._generator = self._model = None
        self._thread.submit(mx.clear_streams)  # a thread that keeps its streams can crash the interpreter when it ends
        self._thread.shutdown()

    def _on_thread(self, work: Callable[[], Result]) -> Result:
        return self._thread.submit(work).result()

    def begin(self, prompts: Sequence[Sequence[int]], tokens: int) -> None:
        """Fill the prompts and draw the first token of each; every stream ends after `tokens` tokens."""
        self._on_thread(lambda: self._begin(prompts, tokens))

    def _begin(self, prompts: Sequence[Sequence[int]], tokens: int) -> None:
        self._insert(prompts, tokens)
        seen: set[int] = set()
        while len(seen) < len(prompts):
            seen |= {response.uid for response in self._generator.next_generated()}
        self._settle()

    def _insert(self, prompts: Sequence[Sequence[int]], tokens: int) -> list[int]:
        """A new generator with room for all prompts at once; the prompts' numbers in it."""
        self._generator = import_module("mlx_lm.generate").BatchGenerator(
            self._model, max_tokens=tokens, completion_batch_size=len(prompts), prefill_batch_size=len(prompts)
        )
        return self._generator.insert([list(prompt) for prompt in prompts])

    def decode(self, steps: int) -> float:
        """Seconds of `steps` steps, a token for each stream in every one.

        One more step runs before the clock starts: BatchGenerator computes one step ahead, and the first step after a
        rest would find its result ready.
        """
        return self._on_thread(lambda: self._decode(steps))

    def _decode(self, steps: int) -> float:
        self._generator.next_generated()
        start = time.perf_counter()
        for _ in range(steps):
            self._generator.next_generated()
        seconds = time.perf_counter() - start
        self._settle()
        return seconds

    def _settle(self) -> None:
        """Wait for the step that was computed ahead."""
        import mlx.core as mx

        mx.synchronize(import_module("mlx_lm.generate").generation_stream)

    def end(self) -> None:
        """Drop the streams."""

        self._on_thread(self._drop)

    def _drop(self) -> None:
        self._generator.close()
        self._generator = None

    def at_once(self, prompts: Sequence[Sequence[int]], tokens: int) -> tuple[Reply, ...]:
        """A reply of `tokens` tokens to each prompt, all of them in one BatchGenerator."""
        return self._on_thread(lambda: self._at_once(prompts, tokens))

    def _at_once(self, prompts: Sequence[Sequence[int]], tokens: int) -> tuple[Reply, ...]:
        start = time.perf_counter()
        got: dict[int, list[tuple[int, float]]] = {uid: [] for uid in self._insert(prompts, tokens)}
        while any(len(own) < tokens for own in got.values()):
            responses = self._generator.next_generated()
            if not responses:
                raise EngineFailed(f"mlx-lm ended before every reply had its {tokens} tokens: ask for fewer")
            for response in responses:
                got[response.uid].append((response.token, time.perf_counter() - start))
        self._settle()
        self._drop()
        return tuple(_reply(own) for own in got.values())

    def one_by_one(self, prompts: Sequence[Sequence[int]], tokens: int) -> tuple[Reply, ...]:
        """The same replies one after the other, by mlx-lm's plain loop for one sequence; all prompts came at once."""
        return self._on_thread(lambda: self._one_by_one(prompts, tokens))

    def _one_by_one(self, prompts: Sequence[Sequence[int]], tokens: int) -> tuple[Reply, ...]:
        import mlx.core as mx

        step = import_module("mlx_lm.generate").generate_step
        start = time.perf_counter()
        found: list[Reply] = []
        for prompt in prompts:
            steps = step(mx.array(list(prompt)), self._model, max_tokens=tokens)
            found.append(_reply([(int(token), time.perf_counter() - start) for token, _ in steps]))
        self._settle()
        return tuple(found)

    def fill(self, prompt: Sequence[int], piece: int) -> float:
        """Seconds of one plain prefill: the model over a new cache, `piece` tokens at a time, as mlx-lm's own does."""
        return self._on_thread(lambda: self._fill(prompt, piece))

    def _fill(self, prompt: Sequence[int], piece: int) -> float:
        import mlx.core as mx
        from mlx_lm.models.cache import make_prompt_cache

        cache = make_prompt_cache(self._model)
        start = time.perf_counter()
        for first in range(0, len(prompt), piece):
            self._model(mx.array([prompt[first : first + piece]]), cache=cache)
            mx.eval([layer.state for layer in cache])
        return time.perf_counter() - start


def _reply(got: Sequence[tuple[int, float]]) -> Reply:
    tokens, times = zip(*got, strict=True)
    return Reply(tokens, times)
