"""The calibration that a caller passes, checked at the door."""

from typing import TYPE_CHECKING, Any

from lanes.errors import InvalidRequest

if TYPE_CHECKING:
    from lanes.evaluation import Calibration


def read_calibration(calibration: Any) -> "Calibration | None":
    """The calibration itself, or None for none; InvalidRequest for anything else."""
    if calibration is None:
        return None
    from lanes.evaluation import Calibration  # whoever has one has loaded this already

    if not isinstance(calibration, Calibration):
        raise InvalidRequest(
            f"calibration must be None, or what lanes.calibrate or lanes.Calibration.load gave, not {calibration!r:.80}"
        )
    return calibration
