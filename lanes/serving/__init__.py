"""HTTP, opt-in: `lanes.serve(engine)` answers clients of OpenAI and System One from a background thread.

Nothing here touches MLX. A request is read and checked, handed to the engine, and awaited.
"""

from lanes.serving.server import Server, serve

__all__ = ["Server", "serve"]
