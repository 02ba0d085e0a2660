"""What every widget is made on: live with ipywidgets and anywidget, a picture that stands still without them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lanes_widgets.view import View
else:
    try:
        from lanes_widgets.view import View
    except ModuleNotFoundError as error:
        if error.name not in ("anywidget", "ipywidgets", "traitlets"):
            raise
        from lanes_widgets.still import Still as View

__all__ = ["View"]
