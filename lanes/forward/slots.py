"""A slot's KV cache: one buffer of keys and one of values a layer, addressed by position."""

import mlx.core as mx

STEP = 64
PAST = 8  # a capacity is never a multiple of 256: some CUDA attention kernels taken at such sizes do not repeat


class SlotKV:
    """Keys and values of one sequence, [1, kv heads, capacity, head size] a layer.

    Whoever writes a position makes everything after it void, so going back in a sequence takes no work.
    """

    def __init__(self, layers: int) -> None:
        self.layers = layers
        self.capacity = 0
        self.keys: list[mx.array] = []
        self.values: list[mx.array] = []

    def reserve(self, tokens: int) -> None:
        """Make room for `tokens` positions; what was written stays. Room much larger than asked is given back."""
        capacity = (tokens + STEP - 1) // STEP * STEP + PAST
        if self.capacity and not capacity <= self.capacity <= 4 * capacity:
            self.clear()
        self.capacity = max(self.capacity, capacity)

    def clear(self) -> None:
        """Give the buffers back; the next write makes new ones."""
        self.capacity = 0
        self.keys, self.values = [], []

    def write(self, layer: int, position: int, keys: mx.array, values: mx.array) -> None:
        """Put [1, kv heads, tokens, head size] at consecutive positions from `position` on."""
        if layer == len(self.keys):
            self.keys.append(self._room(keys))
            self.values.append(self._room(values))
        end = position + keys.shape[2]
        self.keys[layer][:, :, position:end] = keys
        self.values[layer][:, :, position:end] = values

    def _room(self, like: mx.array) -> mx.array:
        return mx.zeros((1, like.shape[1], self.capacity, like.shape[3]), like.dtype)

    def copy(self, tokens: int) -> list[mx.array]:
        """The first `tokens` positions of every layer, keys and values in turn, in memory of their own."""
        return [
            mx.contiguous(array[:, :, :tokens]) for pair in zip(self.keys, self.values, strict=True) for array in pair
        ]

    def paste(self, saved: list[mx.array], tokens: int) -> None:
        """Write the first `tokens` positions of what `copy` returned."""
        if not self.keys:
            self.keys = [self._room(array) for array in saved[0::2]]
            self.values = [self._room(array) for array in saved[1::2]]
        for layer in range(self.layers):
            self.keys[layer][:, :, :tokens] = saved[2 * layer][:, :, :tokens]
            self.values[layer][:, :, :tokens] = saved[2 * layer + 1][:, :, :tokens]

    @property
    def arrays(self) -> list[mx.array]:
        """What must be evaluated after a write."""
        return [*self.keys, *self.values]
