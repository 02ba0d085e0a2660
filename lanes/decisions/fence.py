"""The marks around a state: a name that nothing in the state can be read to close, not even by a look-alike."""

import unicodedata
from itertools import count

_BLANK = "\u115f\u1160\u2800"  # letters and a sign that show nothing


class _Seen(dict[int, str]):
    """What is left of a character where only its look counts, by code point; filled as characters come up."""

    def __missing__(self, code: int) -> str:
        plain = unicodedata.normalize("NFKD", chr(code)).casefold()
        # Spaces, control and format characters (zero-width ones too) and marks upon letters are passed over.
        self[code] = "".join(one for one in plain if unicodedata.category(one)[0] not in "ZCM" and one not in _BLANK)
        return self[code]


_SEEN = _Seen()


def mark(state: str) -> str:
    """The first of "data", "data-1", "data-2", ... that the state neither opens nor closes.

    A closing mark counts in whatever case, width or accents its letters are, and with spaces, line ends or characters
    that do not show between them.
    """
    seen = state.translate(_SEEN)
    names = (f"data-{number}" if number else "data" for number in count())
    return next(name for name in names if f"<{name}>" not in state and f"</{name}>" not in seen)
