"""The command `lanes`, also as `python -m lanes`: Ctrl-C ends it without a traceback, even while it still imports."""

import os
import sys
import threading

INTERRUPTED = 130


def main() -> None:
    """Run the command line, and end with its exit code."""
    try:
        from lanes.cli import app

        app()
        code = 0
    except KeyboardInterrupt:
        print("lanes: interrupted", file=sys.stderr)
        code = INTERRUPTED
    except SystemExit as end:
        code = end.code
    if any(thread.name == "lanes-engine" for thread in threading.enumerate()):
        # An engine that could not be stopped: an interpreter that ends while a thread works in MLX would be aborted.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)
    sys.exit(code)


if __name__ == "__main__":
    main()
