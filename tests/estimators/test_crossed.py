"""Frames × estimators × methods × ArviZ's calls: each runs, or has no meaning for a reason that is written down.

The whole product, some four thousand calls, is slow. Of it `make test` runs a part in which every frame meets every
estimator, every estimator each of its methods, and every call of ArviZ each method and each frame: combinations of two
are what goes wrong.
"""

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import arviz as az
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from arviz_calls import FUNCTIONS, NOT_FOR_US, PLOTS, refusal, run

from bayes_gda import (
    LKJ,
    BayesianLDA,
    BayesianLogisticRegression,
    BayesianMixture,
    BayesianNaive,
    BayesianNaiveGaussian,
    BayesianQDA,
    BayesianRDA,
    BayesianStudent,
    Dataset,
    Moments,
)
from bayes_gda.errors import InferenceWarning

RNG = np.random.default_rng(0)
N = 60
COLUMNS = {
    "size": RNG.normal(size=N).tolist(),
    "count": RNG.integers(0, 5, N).tolist(),
    "wild": (RNG.random(N) > 0.5).tolist(),
    "colour": RNG.choice(["black", "white"], N).tolist(),
}
GAPS = {"size": [None if i % 10 == 0 else value for i, value in enumerate(COLUMNS["size"])]}
SCORE = np.array(COLUMNS["size"]) + (np.array(COLUMNS["colour"]) == "black") + RNG.normal(size=N)
FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
}
ENCODED = Dataset.from_frame(pd.DataFrame(COLUMNS).assign(y=np.median(SCORE) < SCORE), target="y")
FEW = {"draws": 100, "chains": 4}


@dataclass(frozen=True)
class Kind:
    """An estimator with the methods that it has, the cheapest first, as arguments that ask for them."""

    make: Any
    methods: dict[str, dict[str, Any]]
    options: dict[str, Any] = field(default_factory=dict)
    classes: int = 2
    generative: bool = True
    proper: bool = True
    prior: bool = True
    several: bool = True
    gaps: bool = False


EXACT, LAPLACE, MCMC = {"exact": {}}, {"laplace": {"inference": "laplace"}}, {"mcmc": {"inference": "mcmc"}}
HMC = {"mcmc": {"inference": "mcmc", "sampler": "hmc"}}
KINDS = {
    "lda": Kind(BayesianLDA, EXACT | LAPLACE | MCMC),
    "qda": Kind(BayesianQDA, EXACT | LAPLACE | MCMC),
    "naive": Kind(BayesianNaiveGaussian, EXACT | LAPLACE | MCMC),
    # Its prior is a grid of models, each centred on the rows: it has no density, and no draws without them.
    "rda": Kind(BayesianRDA, EXACT, proper=False, prior=False),
    # Rows with gaps are sampled by Gibbs steps, whose posterior holds neither draws nor log density of the prior.
    "gaps": Kind(BayesianQDA, MCMC, proper=False, prior=False, gaps=True),
    "lkj": Kind(
        BayesianNaiveGaussian, LAPLACE | MCMC, {"prior": LKJ.default(Moments.from_arrays(ENCODED.X, ENCODED.y, 2))}
    ),
    "mixed": Kind(BayesianNaive, EXACT | LAPLACE | MCMC),
    "logistic": Kind(
        BayesianLogisticRegression,
        LAPLACE | {"ep": {"inference": "ep"}} | MCMC,
        generative=False,
        several=False,
    ),
    "hierarchical": Kind(BayesianLogisticRegression, HMC, {"prior_scale": "hierarchical"}, generative=False),
    "softmax": Kind(
        BayesianLogisticRegression,
        LAPLACE | {"variational": {"inference": "variational"}} | MCMC,
        classes=3,
        generative=False,
        several=False,
    ),
    "student": Kind(BayesianStudent, LAPLACE | HMC, {"scales": "shared"}),
    "mixture": Kind(BayesianMixture, LAPLACE | HMC, {"components": 2, "covariances": "shared"}),
}
CALLS = [*FUNCTIONS, *PLOTS]


@dataclass(frozen=True)
class Cell:
    """A fit: estimator, method and frame."""

    kind: str
    method: str
    frame: str

    @property
    def name(self):
        return f"{self.kind}-{self.method}-{self.frame}"

    def refusal(self, call):
        """Why a call has no meaning here; None if it must run."""
        kind = KINDS[self.kind]
        return refusal(
            call,
            generative=kind.generative,
            proper=kind.proper,
            several=kind.several,
            prior=kind.prior,
            nuts=self.method == "mcmc" and "sampler" not in kind.methods["mcmc"] and not kind.gaps,
        )

    @cached_property
    def tree(self):
        kind = KINDS[self.kind]
        y = np.array(["a", "b", "c"])[
            np.searchsorted(np.quantile(SCORE, np.arange(1, kind.classes) / kind.classes), SCORE)
        ]
        model = kind.make(**FEW, **kind.options, **kind.methods[self.method])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InferenceWarning)  # few draws
            model.fit(FRAMES[self.frame](COLUMNS | (GAPS if kind.gaps else {})), y)
        assert model.inference_ == self.method
        assert list(model.feature_names_in_) == list(COLUMNS)
        return model.posterior_


def fits():
    """Every estimator by every method, and with every frame: what is left of the frames goes with the first method."""
    out = []
    for i, (name, kind) in enumerate(KINDS.items()):
        methods = list(kind.methods)
        for j in range(max(len(FRAMES), len(methods))):
            method = methods[j] if j < len(methods) else methods[0]
            out.append(Cell(name, method, list(FRAMES)[(i + j) % len(FRAMES)]))
    return out


def shared_out(cells):
    """Calls by fit: each call goes to fits, from another one on each time, while they add a method or frame to it."""
    out = {cell: [] for cell in cells}
    for i, call in enumerate(CALLS):
        seen = set()
        for j in range(len(cells)):
            cell = cells[(5 * i + j) % len(cells)]
            if cell.refusal(call) is None and not {cell.method, cell.frame} <= seen:
                seen |= {cell.method, cell.frame}
                out[cell].append(call)
    return out


QUICK = shared_out(fits())
WHOLE = [Cell(name, method, frame) for (name, kind), frame in product(KINDS.items(), FRAMES) for method in kind.methods]


def test_every_plot_of_arviz_is_in_the_matrix_or_has_a_reason():
    assert {name[5:] for name in dir(az) if name.startswith("plot_")} == set(PLOTS) | set(NOT_FOR_US)


def test_every_pair_is_in_the_quick_part():
    assert {(c.kind, c.frame) for c in QUICK} == set(product(KINDS, FRAMES))
    assert {(c.kind, c.method) for c in QUICK} == {(c.kind, c.method) for c in WHOLE}
    for of in (lambda cell: cell.method, lambda cell: cell.frame):
        ran = {(of(cell), call) for cell, calls in QUICK.items() for call in calls}
        assert ran == {(of(cell), call) for cell in WHOLE for call in CALLS if cell.refusal(call) is None}


def make(cell, calls):
    """Fit, and make the calls; all that fail are named."""
    variable = "pi" if KINDS[cell.kind].generative else "w"
    failed = {}
    for call in calls:
        try:
            run(call, cell.tree, variable)
        except Exception as error:
            failed[call] = f"{type(error).__name__}: {error}"
    assert not failed


@pytest.mark.parametrize("cell", QUICK, ids=lambda cell: cell.name)
def test_every_pair_runs(cell):
    make(cell, QUICK[cell])


@pytest.mark.slow
@pytest.mark.parametrize("cell", WHOLE, ids=lambda cell: cell.name)
def test_everything_runs(cell):
    make(cell, [call for call in CALLS if cell.refusal(call) is None])
