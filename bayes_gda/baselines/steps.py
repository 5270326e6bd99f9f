"""Step sizes, and whether they let a stochastic gradient converge.

    η_t = a/(b + t)^power,   t = 0, 1, 2, …

Robbins & Monro (1951) ask for Σ η_t = ∞, so that any distance can be travelled, and Σ η_t² < ∞, so that the noise of
single rows dies out. For this family that is ½ < power ≤ 1.
"""

from dataclasses import dataclass
from typing import Any, Self

from bayes_gda.checks import finite, positive
from bayes_gda.errors import DataError


@dataclass(frozen=True, slots=True)
class Steps:
    """η_t = a/(b + t)^power, the size of the update t, counted from 0.

    Parameters
    ----------
    a
        Numerator, > 0.
    b
        Offset of t, > 0: the steps are about equal while t is well below b.
    power
        How fast the steps fall, ≥ 0; 0 is a fixed step `a`.

    Examples
    --------
    >>> from bayes_gda.baselines import Steps
    >>> steps = Steps()
    >>> steps
    Steps(a=1.0, b=1.0, power=1.0)
    """

    a: float = 1.0
    b: float = 1.0
    power: float = 1.0

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            object.__setattr__(self, name, _number(name, getattr(self, name)))
        power = float(finite("power", self.power, error=DataError))
        if power < 0:
            raise DataError(f"`power` must not be negative; got {power:g}. Use 0 for a fixed step.")
        object.__setattr__(self, "power", power)

    @classmethod
    def fixed(cls, size: float) -> Self:
        """Return the steps η_t = size."""
        return cls(a=size, power=0.0)

    @classmethod
    def of(cls, step: "float | Steps") -> "Steps":
        """Return `step` itself if it is a schedule, else the fixed step of that size."""
        return step if isinstance(step, Steps) else cls.fixed(_number("step", step))

    def __call__(self, t: int) -> float:
        """Return η_t."""
        return float(self.a / (self.b + t) ** self.power)

    @property
    def sum_diverges(self) -> bool:
        """Whether Σ η_t = ∞."""
        return self.power <= 1

    @property
    def squares_converge(self) -> bool:
        """Whether Σ η_t² < ∞."""
        return self.power > 0.5

    @property
    def robbins_monro(self) -> bool:
        """Whether both conditions hold, so that stochastic gradients converge."""
        return self.sum_diverges and self.squares_converge


def _number(name: str, value: Any) -> float:
    array = positive(name, value, error=DataError)
    if array.ndim:
        raise DataError(f"`{name}` must be one number; got shape {array.shape}. Use Steps for sizes that change.")
    return float(array)
