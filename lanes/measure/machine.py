"""What the figures were measured on."""


def device_name() -> str:
    """The device that MLX computes on, e.g. "cpu x86_64" or "gpu Apple M5 Max"."""
    import platform

    import mlx.core as mx

    described = mx.device_info()
    name = described.get("device_name") or described.get("architecture") or platform.machine()
    return f"{mx.default_device().type.name} {name}"
