"""What the machine can do at most: products and memory, measured by themselves. Best of some tries, in SI units."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import mlx.core as mx
import numpy as np

from lanes import blas
from lanes.measure.parts import Kind, Product

SIDE = 1024
"""Of the square product whose speed is taken for the peak: 12 MB in all, so memory has no part in it."""


@dataclass(frozen=True)
class Ceilings:
    """flops: float32 operations a second of a large square product. bandwidth: bytes read a second, of large arrays."""

    flops: float
    bandwidth: float

    def seconds(self, flops: float, read: float) -> float:
        """The least time that work of so many operations, on so many bytes out of memory, can take (the roofline)."""
        return max(flops / self.flops, read / self.bandwidth)


def ceilings(megabytes: int = 256, tries: int = 5) -> Ceilings:
    """Measure both; the arrays should be several times as large as the processor's caches."""
    return Ceilings(peak_flops(tries), max(read_bandwidth(megabytes, tries), copy_bandwidth(megabytes, tries)))


def peak_flops(tries: int = 5) -> float:
    """Operations a second of a float32 product of two square matrices."""
    a = mx.random.normal((SIDE, SIDE), key=mx.random.key(0))
    return 2 * SIDE**3 / best(lambda: mx.eval(a @ a), tries)


def read_bandwidth(megabytes: int, tries: int = 5) -> float:
    """Bytes a second of a matrix of so many megabytes times a vector (on one row nothing but reading takes time)."""
    matrix = mx.ones((megabytes * 1_000_000 // 4 // 4096, 4096))
    vector = mx.ones((1, 4096))
    mx.eval(matrix, vector)
    return matrix.nbytes / best(lambda: mx.eval(vector @ matrix.T), tries)


def copy_bandwidth(megabytes: int, tries: int = 5) -> float:
    """Bytes a second, read and written together, of a copy by as many threads as the BLAS has; of host memory."""
    source = np.ones(megabytes * 1_000_000 // 4, np.float32)
    target = np.zeros_like(source)
    threads = blas.status().threads or 1
    cuts = np.linspace(0, len(source), threads + 1).astype(int)
    with ThreadPoolExecutor(threads) as pool:

        def copy() -> None:
            parts = [slice(*ends) for ends in pairwise(cuts)]
            list(pool.map(lambda part: np.copyto(target[part], source[part]), parts))

        return 2 * source.nbytes / best(copy, tries)


def bare(products: Sequence[Product], rows: int, tries: int = 5) -> dict[Kind, float]:
    """Seconds that each kind's products take alone: `rows` rows times every matrix in turn, each out of memory.

    Nothing else is done between them, so this is the ceiling at these very shapes.
    """
    found: dict[Kind, float] = {}
    kinds: list[Kind] = [product.kind for product in products]
    for kind in dict.fromkeys(kinds):
        weights = [product.weight for product in products if product.kind == kind]
        inputs = {size: mx.ones((rows, size)) for size in {weight.shape[1] for weight in weights}}
        mx.eval(inputs)

        def run(weights: Sequence[Any] = weights, inputs: dict[int, Any] = inputs) -> None:
            mx.eval([inputs[weight.shape[1]] @ weight.T for weight in weights])

        found[kind] = best(run, tries)
    return found


def evaluation_seconds(tries: int = 200) -> float:
    """What it costs to evaluate one tiny array: the median, which the clock of `parts` pays at every part."""
    one = mx.array(1.0)
    taken = []
    for _ in range(tries):
        start = time.perf_counter()
        mx.eval(one + 1)
        taken.append(time.perf_counter() - start)
    return float(np.median(taken))


def best(work: Callable[[], Any], tries: int) -> float:
    """The least of some times, in seconds; the first run is not counted."""
    work()
    taken = []
    for _ in range(tries):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)
