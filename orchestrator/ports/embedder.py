"""What turns texts into vectors whose angle says how near their meanings are.

`EmbedderUnavailable` is the one error: the model can't be loaded or run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from tool_registry.errors import PortsideError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix: TypeAlias = NDArray[np.float32]
    Scores: TypeAlias = NDArray[np.float32]


class EmbedderUnavailable(PortsideError):
    """The model can't be loaded or run; the message says what to do."""

    code = "embedder_unavailable"


@dataclass(frozen=True, slots=True)
class Calibration:
    """Where a model's scores begin and end to mean something: the same similarity means the same for all.

    Attributes:
        id: names the measurement it comes from.
        floor: a score that means nothing; similarity 0.
        ceiling: a score that is as good as the same text; similarity 1.
    """

    id: str
    floor: float
    ceiling: float

    def similarities(self, scores: Scores) -> Scores:
        """Scores as similarities from 0 to 1; from 0.2 on a match is plausible."""
        return ((scores - self.floor) / (self.ceiling - self.floor)).clip(0, 1)


class Embedder(Protocol):
    """One model; vectors of two models never meet.

    Attributes:
        model_id: changes whenever the same text would get another vector.
        dimension: the length of its vectors.
    """

    model_id: str
    dimension: int
    calibration: Calibration

    async def embed(self, texts: Sequence[str]) -> Matrix:
        """One row of length 1 for each text, in order; a text's row does not depend on its neighbours.

        The first call loads the model. The event loop stays free.

        Raises:
            EmbedderUnavailable: it can't be loaded or run.
        """
        ...
