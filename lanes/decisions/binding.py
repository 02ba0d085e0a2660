"""A question in one order of its options, made into a prompt and labels that the model's tokenizer keeps apart."""

from dataclasses import dataclass

import numpy as np

from lanes.decisions.codes import code_sets
from lanes.decisions.inquiry import Heard, Inquiry
from lanes.decisions.labels import BoundLabels, bind
from lanes.decisions.orders import Order
from lanes.decisions.render import Frame, Line, branch, harmless, named, prompt, spoken, trunk
from lanes.decisions.results import Scored
from lanes.errors import InvalidRequest, PromptTooLong
from lanes.prompts import Prompt, Tokenizer


@dataclass(frozen=True)
class Branch:
    """One branch: an inquiry's question on one state, its options in one order."""

    order: Order
    prompt: Prompt
    labels: BoundLabels

    def hear(self, result: Scored) -> Heard:
        """What the branch gave, in the question's own order of options."""
        logs = np.empty(len(self.order))
        logs[list(self.order)] = result.log_probabilities
        return Heard(logs, result, self.prompt.text)


def put(tokenizer: Tokenizer, inquiry: Inquiry, state: str, order: Order, context: int) -> Branch:
    """The branch for this order. Raises InvalidRequest where no set of codes, or no label, keeps apart."""
    frame, shared = Frame.of(tokenizer), trunk(state)
    options = [inquiry.options[at] for at in order]
    texts = [named(inquiry.question, option) for option in options]
    if inquiry.manner.method == "labels":
        whole = prompt(tokenizer, frame, shared, branch(inquiry.question, [Line("", text) for text in texts]))
        words = [harmless(spoken(inquiry.question, option), tokenizer) for option in options]
        return Branch(order, whole, bind(tokenizer, whole, [f" {word}" for word in words], context))
    failed: InvalidRequest | None = None
    for proposed in code_sets(tokenizer, len(options)):
        lines = [Line(code, text) for code, text in zip(proposed.codes, texts, strict=True)]
        whole = prompt(tokenizer, frame, shared, branch(inquiry.question, lines), proposed.tail)
        try:
            labels = bind(tokenizer, whole, [proposed.lead + code for code in proposed.codes], context)
        except PromptTooLong:  # other codes make it no shorter
            raise
        except InvalidRequest as error:
            failed = error
            continue
        if not proposed.single or all(len(tokens) == 1 for tokens in labels.tokens):
            return Branch(order, whole, labels)
    raise failed or InvalidRequest(f"this tokenizer has no {len(options)} codes: use method='labels'")
