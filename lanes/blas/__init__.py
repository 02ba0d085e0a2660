"""Find a fast cblas and load it before `mlx.core`."""


def preload() -> None:
    """Load a fast cblas into the global symbol scope."""
