"""A workbench's front end without a page: what it would show, put together from the frames that were sent alone."""

from collections.abc import Iterable
from typing import Any

from live_kernel import Heard


class Front:
    """Takes every frame in turn, and keeps each list that grows as the page does."""

    def __init__(self, heard: Iterable[Heard]) -> None:
        self.frame: dict[str, Any] = {}
        self.tokens: dict[str, list[Any]] = {}
        """[id, text that it added] of every stream's tokens."""
        self.rounds = 0
        """Rounds on the timeline, counted without a hole from the first one on."""
        for one in heard:
            state = one.content["data"].get("state", {})
            if "frame" in state:
                self._take(state["frame"])

    def _take(self, frame: dict[str, Any]) -> None:
        self.frame = frame
        for stream in frame["streams"]["streams"]:
            known, cut = self.tokens.setdefault(str(stream["id"]), []), stream["tape"]
            if cut["from"] <= len(known):
                fresh = cut["items"][len(known) - cut["from"] :]
                known += [[item[0], item[1]] for item in fresh]
        for first, _, steps, *_ in frame["timeline"]["rounds"]["items"]:
            if first == self.rounds:
                self.rounds += (len(steps) + 1) // 2  # lengths and pauses in turn

    def faults(self, truth: dict[str, Any]) -> list[str]:
        """Where the last frame and what came before it differ from what `workbench_cells.truth` says."""
        board, streams = self.frame["board"], self.frame["streams"]["streams"]
        shown = {str(one["id"]): one["count"] for one in streams}
        pairs = {
            "tokens in all": (board["tokens"], truth["tokens"]),
            "rounds in all": (board["round"], truth["rounds"]),
            "rounds on the timeline": (self.rounds, truth["rounds"]),
            "tokens of each stream": (shown, {id: len(tokens) for id, tokens in truth["streams"].items()}),
        }
        found = [f"{name}: {said} shown, {so} so" for name, (said, so) in pairs.items() if said != so]
        if self.frame["trouble"]:
            found.append(self.frame["trouble"])
        return found + [
            f"stream {id}: other tokens" for id, so in truth["streams"].items() if self.tokens.get(id) != so
        ]
