"""`lanes.ask`: typed questions about one state, answered as branches on one trunk, in as many stages as they need."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lanes import checks, deadlines
from lanes.asking.calibrations import read_calibration
from lanes.asking.call import Call
from lanes.decisions.answers import Answers
from lanes.decisions.inquiry import Inquiry, Manner
from lanes.decisions.priors import Prior, read_prior
from lanes.decisions.questions import Question, Value, checked_questions, shown
from lanes.engine.handles import Pending

if TYPE_CHECKING:
    from lanes.engine import Engine
    from lanes.evaluation import Calibration


def ask(
    engine: "Engine",
    state: Value,
    questions: Mapping[str, Question],
    *,
    method: str = "codes",
    orders: int | str = 1,
    prior: Prior | str | None = None,
    abstain: bool = False,
    calibration: "Calibration | None" = None,
    deadline: float | None = None,
    wait: bool = True,
) -> Pending[Answers]:
    """Ask questions about one state; returns a pending result (an `Answers`) at once.

    state: what is judged, a text, an object or an array. questions: by name; names never reach the model, and no answer
    depends on another question. method: "codes" lists the options under letters and reads those, "labels" reads the
    options' own words. orders: in how many orders of the options each question is asked, or "auto": the given one and
    its reverse, and more until the choice is steady. prior: what to take out of the answers, None, "contextual" or a
    `lanes.Prior`. abstain: offer none-of-these as well; its mass stands outside the options' probabilities.
    calibration: temperatures fitted by `lanes.calibrate`. deadline: seconds from now. wait: False raises Busy where no
    slot is free now.

    Raises InvalidRequest for what cannot be asked, and what `Engine.decide` raises.
    """
    checks.flag("wait", wait)
    call = prepare(
        engine,
        state,
        questions,
        method=method,
        orders=orders,
        prior=prior,
        abstain=abstain,
        calibration=calibration,
        deadline=deadline,
    )
    return call.start(wait)


def prepare(
    engine: "Engine",
    state: Value,
    questions: Mapping[str, Question],
    *,
    method: str = "codes",
    orders: int | str = 1,
    prior: Prior | str | None = None,
    abstain: bool = False,
    calibration: "Calibration | None" = None,
    deadline: float | None = None,
) -> Call:
    """What `ask` does before it takes time: a call that can be cancelled while its `start(wait)` still tokenizes."""
    if (fitted := read_calibration(calibration)) is not None:
        fitted.check(engine.info.fingerprint)
    manner = Manner.read(method, orders, abstain)
    end = deadlines.end_of(deadline)
    inquiries = {name: Inquiry(question, manner) for name, question in checked_questions(questions).items()}
    return Call(engine, shown(state, "the state"), inquiries, read_prior(prior), fitted, end)
