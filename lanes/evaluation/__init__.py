"""The statistics of typed decisions: how good answers are, temperatures, thresholds, prediction sets, drift."""

from lanes.evaluation.bootstrap import Figure
from lanes.evaluation.calibration import Calibration, Fit, calibrate
from lanes.evaluation.comparison import Change, Drift, drift
from lanes.evaluation.measures import Bin, Curve, Evaluation, evaluate
from lanes.evaluation.prediction_sets import Conformal, conformal
from lanes.evaluation.thresholds import Threshold, threshold

__all__ = [
    "Bin",
    "Calibration",
    "Change",
    "Conformal",
    "Curve",
    "Drift",
    "Evaluation",
    "Figure",
    "Fit",
    "Threshold",
    "calibrate",
    "conformal",
    "drift",
    "evaluate",
    "threshold",
]
