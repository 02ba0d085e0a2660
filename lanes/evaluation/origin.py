"""What a fitted value belongs to: one question, one model, one temperature. It is refused for answers to others."""

from dataclasses import dataclass

import numpy as np

from lanes.errors import InvalidRequest
from lanes.evaluation.rows import AnswerLike, answer_row
from lanes.evaluation.table import Table, tempered

NEAR = 1e-12
"""How far two computations of one probability may lie apart."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The type and keys of the question, the model's fingerprint ("" where none was named), and the temperature."""

    type: str
    keys: tuple[str, ...]
    model: str
    temperature: float

    @classmethod
    def of(cls, table: Table, temperature: float | None) -> "Origin":
        """The origin of a table; InvalidRequest for several models, or several temperatures where none is given."""
        return cls(table.type, table.keys, table.model, table.shared_temperature(temperature))

    def probabilities(self, answer: AnswerLike) -> np.ndarray:
        """The answer's probabilities at this temperature, [n], in its own order of keys.

        Raises InvalidRequest for an answer to another question or from another model.
        """
        self.check(answer)
        return np.exp(tempered(np.asarray(answer.logs, dtype=np.float64), self.temperature))

    def check(self, answer: AnswerLike) -> None:
        """Raise InvalidRequest for an answer to another question or from another model."""
        row = answer_row(answer)
        if row.type != self.type or sorted(row.keys) != sorted(self.keys):
            raise InvalidRequest(
                f"this was fitted on a {self.type} with the keys {self.keys}, not on a {row.type} with {row.keys}: "
                "fit it again on answers to this question"
            )
        if row.model and self.model and row.model != self.model:
            raise InvalidRequest(
                f"this was fitted on answers of the model {self.model[:12]}, not of {row.model[:12]}: "
                "fit it again on answers of this model"
            )
