"""Priors of columns of any type: a distribution a column, and the numbers of its prior, the same for all classes.

    word                 x | y=k                     prior                                          numbers
    normal               N(μ, σ²)                    σ² ~ IG(a, b), μ | σ² ~ N(m, σ²/κ)             m, κ, a, b
    log-normal           log x ~ N(μ, σ²)            the same                                       m, κ, a, b
    logit-normal         logit x ~ N(μ, σ²)          the same                                       m, κ, a, b
    bernoulli            Bernoulli(p)                p ~ Beta(a, b)                                 a, b
    binomial             Binomial(N, p)              p ~ Beta(a, b)                                 N, a, b
    categorical          Categorical(θ)              θ ~ Dirichlet(α)                               α of all levels
    poisson              Poisson(r)                  r ~ Gamma(c, c/m)                              c, m
    negative-binomial    NB(r, p), mean r(1−p)/p     log r ~ N(l, s²), p | r ~ Beta(1 + cr/m, c)    c, m, l, s
    gamma                Gamma(a, a/t), mean t       log a ~ N(l, s²), t ~ IG(c, cm)                c, m, l, s
    beta                 Beta(tf, (1−t)f), mean t    logit t ~ N(m, v²), log f ~ N(l, s²)           m, v, l, s

Where a column has a mean, its prior is centred at m. As r → ∞ the negative binomial is the Poisson distribution, under
the prior of that: the mean r(1−p)/p has the expectation m for every r.
"""

from dataclasses import dataclass

import numpy as np

from bayes_gda.checks import Floats, finite
from bayes_gda.data.groups import read_group, write_group
from bayes_gda.errors import PriorError

# Numbers of the prior of each distribution; those that must be positive. A categorical one has as many as its levels.
NUMBERS: dict[str, tuple[int, tuple[int, ...]]] = {
    "normal": (4, (1, 2, 3)),
    "log-normal": (4, (1, 2, 3)),
    "logit-normal": (4, (1, 2, 3)),
    "bernoulli": (2, (0, 1)),
    "binomial": (3, (0, 1, 2)),
    "categorical": (0, ()),
    "poisson": (2, (0, 1)),
    "negative-binomial": (4, (0, 1, 3)),
    "gamma": (4, (0, 1, 3)),
    "beta": (4, (1, 3)),
}


@dataclass(frozen=True, slots=True, eq=False)
class ColumnPrior:
    """The distribution of one column within a class, and its prior.

    Parameters
    ----------
    name
        Name of the column.
    distribution
        A word of the table above.
    start, stop
        Its columns in X are start … stop − 1: more than one if it is a category in 0/1 columns.
    numbers
        (p,) numbers of the prior, as in the table above.
    levels
        Levels of a categorical column; empty otherwise.
    coded
        Whether X holds the levels in 0/1 columns, not as they are.
    """

    name: str
    distribution: str
    start: int
    stop: int
    numbers: Floats
    levels: tuple[str | int | float | bool, ...] = ()
    coded: bool = False

    def __post_init__(self) -> None:
        if self.distribution not in NUMBERS:
            raise PriorError(f"`distribution` must be one of {', '.join(NUMBERS)}; got {self.distribution!r}.")
        count, above = NUMBERS[self.distribution]
        numbers = finite("numbers", self.numbers)
        if self.distribution == "categorical":
            count, above = len(self.levels) + 1, tuple(range(len(self.levels) + 1))
        if numbers.shape != (count,) or not all(numbers[i] > 0 for i in above):
            raise PriorError(
                f"The prior of {self.name!r}, {self.distribution}, needs {count} numbers, of which "
                f"{'all' if len(above) == count else 'those of scale and weight'} are positive; got {numbers}."
            )
        if (self.distribution == "categorical") != bool(self.levels) or (self.coded and not self.levels):
            raise PriorError(f"`levels` are those of a categorical column; got {self.levels} for {self.distribution}.")
        width = max(len(self.levels) - 1, 1) if self.coded else 1
        if self.start < 0 or self.stop - self.start != width:
            raise PriorError(f"{self.name!r} must have {width} columns of X; got {self.stop - self.start}.")
        object.__setattr__(self, "numbers", numbers)

    @property
    def scale(self) -> str:
        """The scale on which it is measured: `x`, `log x` or `logit x`."""
        return {"log-normal": "log x", "logit-normal": "logit x"}.get(self.distribution, "x")

    @property
    def entries(self) -> list[str]:
        """Names of its entries in a parameter: its own, on the scale of the distribution, or those of its levels."""
        if self.levels:
            return [f"{self.name}[{level}]" for level in (*self.levels, "not seen")]
        return [self.name if self.scale == "x" else self.scale.replace("x", self.name)]

    def read(self, X: Floats) -> Floats:
        """Return what each row of X (n, d) has in the column (n,), a category as its code; NaN is missing."""
        if not self.levels:
            return X[:, self.start]
        if self.coded:
            return read_group(X[:, self.start : self.stop], len(self.levels))
        x, known = X[:, self.start], np.array(self.levels, dtype=np.float64)
        code = np.searchsorted(known, x).clip(0, len(known) - 1)
        return np.where(np.isnan(x), np.nan, np.where(known[code] == x, code, float(len(known))))

    def write(self, x: Floats) -> Floats:
        """Return the columns (n, stop − start) of X of values x (n,); the code of a new level becomes NaN."""
        if not self.levels:
            return x[:, None]
        if self.coded:
            return write_group(x, len(self.levels))
        known = np.array([*self.levels, np.nan], dtype=np.float64)
        return np.where(np.isnan(x), np.nan, known[np.nan_to_num(x).astype(np.intp)])[:, None]


@dataclass(frozen=True, slots=True, eq=False)
class MixedPrior:
    """Prior of a model whose columns are independent within a class, each with a distribution of its own.

    Parameters
    ----------
    columns
        One entry for each column of the table, in the order of X.
    """

    columns: tuple[ColumnPrior, ...]

    def __post_init__(self) -> None:
        stops = [0, *(column.stop for column in self.columns)]
        if not self.columns or any(c.start != stop for c, stop in zip(self.columns, stops, strict=False)):
            raise PriorError("`columns` must be one or more, and take up the columns of X in order, without gaps.")
        names = [column.name for column in self.columns]
        if len(set(names)) < len(names):
            raise PriorError(f"`columns` must have distinct names; got {', '.join(names)}.")

    @property
    def d(self) -> int:
        """Number of columns of X."""
        return self.columns[-1].stop

    @property
    def distributions(self) -> dict[str, str]:
        """The distribution of each column, by its name."""
        return {column.name: column.distribution for column in self.columns}

    def same_as(self, other: object) -> bool:
        """Whether another prior is the same, number by number."""
        return isinstance(other, MixedPrior) and [_key(c) for c in self.columns] == [_key(c) for c in other.columns]


def _key(column: ColumnPrior) -> tuple[object, ...]:
    return column.name, column.distribution, column.start, column.stop, column.levels, column.numbers.tobytes()
