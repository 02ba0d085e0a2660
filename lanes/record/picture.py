"""What every still picture of rounds can do: be shown as the last value of a cell, and be written to a file."""

from pathlib import Path


class Picture:
    """A picture as SVG.

    There is no HTML form on purpose: front ends prefer it to the image, and some then strip the drawing from it.
    """

    __slots__ = ()

    def svg(self) -> str:
        """The picture as one SVG element, 960 units wide, without scripts or anything from outside."""
        raise NotImplementedError

    def save(self, path: str | Path) -> Path:
        """Write the SVG to a file; returns its path."""
        path = Path(path)
        path.write_text(self.svg() + "\n", encoding="utf-8")
        return path

    def _repr_svg_(self) -> str:
        return self.svg()
