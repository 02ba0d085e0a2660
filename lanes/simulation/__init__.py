"""The planner against a cost model: what a workload would meet under other rules, with no device and no model."""

from lanes.simulation.cost import Cost
from lanes.simulation.result import Occupancy, Outcome, Simulation, Spread
from lanes.simulation.run import simulate
from lanes.simulation.workload import Arrival, Workload, every, poisson

__all__ = [
    "Arrival",
    "Cost",
    "Occupancy",
    "Outcome",
    "Simulation",
    "Spread",
    "Workload",
    "every",
    "poisson",
    "simulate",
]
