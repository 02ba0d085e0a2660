"""HTTP, opt-in: `lanes.serve(engine)` answers clients of OpenAI and System One from a background thread.

Nothing here touches MLX. A request is read and checked, handed to the engine, and awaited.
"""

try:
    from lanes.serving.server import Server, serve
except ModuleNotFoundError as error:
    if str(error.name).startswith("lanes"):
        raise
    said = f'{error.name} is not installed, which serving over HTTP needs: run `pip install "mlx-lanes[serve]"`'
    raise ModuleNotFoundError(said, name=error.name) from error

__all__ = ["Server", "serve"]
