"""What can be calibrated: any PyMC model of continuous variables, and the estimators of this package."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.labels import draws_of
from bayes_gda.data.table import Dataset
from bayes_gda.errors import ConvergenceError, DataError, InferenceWarning
from bayes_gda.linalg import one_blas_thread
from bayes_gda.processes.state import Shared, warning_rule
from bayes_gda.validation.calibration import DRAWS, Calibration, simulation_based_calibration

if TYPE_CHECKING:
    import pymc as pm

Method = Literal["laplace", "corrected", "mcmc"]
# Chains, and draws of each. NUTS with the Laplace mass matrix has some 300 effective draws in 300, and one in three is
# kept. Where the worst parameter has fewer effective ones than are kept, the chains are run anew, longer.
CHAINS, CHAIN_DRAWS = 2, (150, 1000)
# Rows of the table whose probabilities are ranked, spread over it.
ROWS = 3
# A fit of a simulated table need not say that it is rough: that is what the ranks are for.
_QUIET = Shared(lambda: warning_rule("ignore", "", InferenceWarning))


def calibrate_model(
    model: "pm.Model",
    *,
    method: Method = "laplace",
    simulations: int = 100,
    draws: int = DRAWS,
    random_seed: int = 0,
) -> Calibration:
    """Calibrate a method on a PyMC model by simulations from its prior.

    Ranked are the free variables and the log likelihood. The observed values of the model are replaced by simulated
    ones; its prior must therefore be proper, and should give data that could be real.

    Parameters
    ----------
    model
        With continuous free variables and observed variables.
    method
        `laplace`; `corrected`, its importance-weighted draws, none where the verdict is `needs-mcmc`; `mcmc`, PyMC's
        NUTS in two chains, thinned to nearly independent draws, none where they mix too slowly for that.
    simulations
        Data sets. Laplace takes milliseconds each, MCMC a second or more.
    draws
        Draws of each posterior.
    random_seed
        The same seed gives the same ranks.

    Examples
    --------
    >>> import pymc as pm
    >>> from bayes_gda.validation import calibrate_model
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu")
    ...     _ = pm.Normal("x", mu, 1, observed=[0.3, -0.1, 0.8])
    >>> calibrate_model(model, simulations=50).outside()  # Laplace is exact here
    ()
    """
    from bayes_gda.models.generate import Simulator

    if method not in _METHODS:
        raise DataError(f"`method` must be one of {', '.join(_METHODS)}; got {method!r}.")
    simulator = Simulator(model)
    theta, observed = simulator.draw(simulations, random_seed)
    numbers = iter(range(simulations))
    draw = _METHODS[method](simulator.model)

    def simulate(rng: np.random.Generator) -> tuple[dict[str, Floats], dict[str, Floats]]:
        i = next(numbers)
        return {name: x[i] for name, x in theta.items()}, {name: x[i] for name, x in observed.items()}

    def posterior(data: Any, size: int, seed: int) -> Mapping[str, Floats] | None:
        simulator.observe(data)
        with one_blas_thread():
            try:
                return draw(size, seed)
            except ConvergenceError:
                return None

    def log_likelihood(variables: Mapping[str, Floats], data: Any) -> dict[str, Floats]:
        return {"log likelihood": simulator.log_likelihood(variables)}

    return simulation_based_calibration(
        simulate,
        posterior,
        simulations=simulations,
        draws=draws,
        quantities=log_likelihood,
        random_seed=random_seed,
    )


Draw = Callable[[int, int], Mapping[str, Floats] | None]


def _laplace(model: "pm.Model") -> Draw:
    from bayes_gda.methods.adapter import ModelDensity, laplace

    density = ModelDensity.of(model)
    return lambda size, seed: density.draws(laplace(density).gaussian.draw(size, random_seed=seed))


def _corrected(model: "pm.Model") -> Draw:
    from bayes_gda.methods.adapter import ModelDensity, laplace, trust

    density = ModelDensity.of(model)

    def draw(size: int, seed: int) -> Mapping[str, Floats] | None:
        verdict = trust(laplace(density), random_seed=seed)
        if verdict.verdict == "needs-mcmc" or verdict.importance is None:
            return None
        return density.draws(verdict.importance.draw(size, random_seed=seed))

    return draw


def _mcmc(model: "pm.Model") -> Draw:
    from bayes_gda.families.built import sample

    def draw(size: int, seed: int) -> Mapping[str, Floats] | None:
        for length in CHAIN_DRAWS:
            each = max(length, -(-size // CHAINS))
            # One core: a chain of so small a model is over before another process has begun.
            tree = sample(model, draws=each, chains=CHAINS, cores=1, random_seed=seed, progress=False)
            if least_effective(tree["posterior"].to_dataset()) >= size:
                return thinned(draws_of(tree), size)
        return None

    return draw


_METHODS: dict[str, Callable[["pm.Model"], Draw]] = {"laplace": _laplace, "corrected": _corrected, "mcmc": _mcmc}


def calibrate_estimator(
    estimator: Any, data: Dataset, *, simulations: int = 100, draws: int = DRAWS, random_seed: int = 0
) -> Calibration:
    """Calibrate an estimator of this package, as it is set, by simulations from its prior.

    Generative models draw as many new rows as the table has; regressions draw new classes for its rows. Ranked are the
    parameters, the log likelihood and the log odds of the probabilities of three rows of the table. Simulations in
    which a class has fewer than two rows are left out.

    Parameters
    ----------
    estimator
        With a prior that does not depend on the classes, or on the rows where these are modelled:
        `BayesianLDA(prior=NIW(…))`; the regressions' default prior will do.
    data
        Table that gives size, names and, for regressions, rows.
    simulations, draws, random_seed
        As in `calibrate_model`. Draws of MCMC are thinned: ask the estimator for enough of them.

    Examples
    --------
    >>> import numpy as np
    >>> from bayes_gda import NIG, BayesianNaiveGaussian, load_example
    >>> from bayes_gda.validation import calibrate_estimator
    >>> prior = NIG(m=np.zeros(2), kappa=np.ones(2), a=np.full(2, 3.0), b=np.full(2, 3.0))
    >>> data = load_example("lda-mixture").subset(range(30))
    >>> calibrate_estimator(BayesianNaiveGaussian(prior=prior), data, simulations=50).outside()
    ()
    """
    from sklearn.base import clone

    family = estimator._bind(data)
    rows = np.linspace(0, data.n - 1, ROWS).round().astype(np.intp)

    def simulate(rng: np.random.Generator) -> tuple[dict[str, Floats], Dataset]:
        theta = family.draw_prior(1, int(rng.integers(2**31)))
        if theta is None:
            raise DataError(
                f"The prior of {type(estimator).__name__} is improper, or cannot be drawn from. Give another."
            )
        model = family.from_variables({name: np.repeat(x, data.n, axis=0) for name, x in theta.items()})
        if model.generative:
            X, y = model.sample(data.n, random_seed=int(rng.integers(2**31)))
        else:
            X, P = data.X, model.probability_draws(theta, data.X)[0][0]
            y = (P.cumsum(axis=1) < rng.random(data.n)[:, None]).sum(axis=1).clip(max=data.K - 1)
        return {name: x[0] for name, x in theta.items()}, Dataset(X, y, data.feature_names, data.class_names)

    def posterior(simulated: Dataset, size: int, seed: int) -> Mapping[str, Floats] | None:
        if simulated.class_counts.min() < 2:
            return None
        if not _same(estimator._bind(simulated).prior, family.prior):
            raise DataError(
                f"The prior of {type(estimator).__name__} is made from the data that are fitted, so that no truth can "
                "be drawn from it before. Give `prior`, or a fixed `prior_scale`."
            )
        try:
            with _QUIET:
                fitted = clone(estimator).set_params(random_state=seed).fit(simulated)
        except ConvergenceError:
            return None
        return thinned(draws_of(fitted._draws()), size)

    def quantities(variables: Mapping[str, Floats], simulated: Dataset) -> dict[str, Floats]:
        model = estimator._bind(simulated).from_variables(variables)
        terms = model.log_terms(variables, data.X[rows])
        out = {"log likelihood": model.log_likelihood(variables, simulated.X, simulated.y).sum(axis=1)}
        for i, row in enumerate(rows):
            for k in range(1 if data.K == 2 else 0, data.K):  # of two classes, one says it all
                others = np.logaddexp.reduce(np.delete(terms[:, i], k, axis=1), axis=1)
                out[f"p(y={data.class_names[k]} | row {row + 1})"] = terms[:, i, k] - others
        return out

    return simulation_based_calibration(
        simulate, posterior, simulations=simulations, draws=draws, quantities=quantities, random_seed=random_seed
    )


def least_effective(posterior: Any) -> float:
    """Return the effective draws of the parameter that has the fewest."""
    import arviz

    ess = arviz.ess(posterior)
    return min(float(np.nanmin(ess[name])) for name in posterior.data_vars)


def thinned(variables: Mapping[str, Floats], size: int) -> dict[str, Floats]:
    """Return `size` of the draws (S, …), as far apart as they can be."""
    S = len(next(iter(variables.values())))
    if size > S:
        raise DataError(f"`draws` must not exceed the {S} draws of a posterior; got {size}.")
    kept = np.linspace(0, S - 1, size).round().astype(np.intp)
    return {name: x[kept] for name, x in variables.items()}


def _same(prior: Any, other: Any) -> bool:
    """Return whether two priors of one class have the same parameters."""
    return type(prior) is type(other) and all(
        np.array_equal(getattr(prior, field.name), getattr(other, field.name)) for field in fields(prior)
    )
