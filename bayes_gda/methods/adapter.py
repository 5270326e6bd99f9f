"""From a `pm.Model` to plain functions, so that the hand-written methods serve any PyMC model.

A model's variables are carried as one vector in unconstrained coordinates (log σ for σ > 0, and so on), with the
Jacobian of that map in the density; leaving it out moves the mode of every scale parameter. PyTensor gives the gradient
exactly. Second and third derivatives are differences of that gradient, of fourth order. PyTensor's symbolic Hessian
agrees with them to 1e-11 (measured on LDA, QDA and softmax), but building its graph takes 3 to 14 s, and they 0.3 s.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import pytensor
from pymc.blocking import DictToArrayBijection
from pymc.pytensorf import join_nonshared_inputs
from pytensor import tensor as pt
from pytensor.compile.mode import Mode
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.link.vm import VMLinker
from scipy.optimize import minimize

from bayes_gda.checks import Floats
from bayes_gda.data.labels import to_datatree
from bayes_gda.errors import ConvergenceError, DataError
from bayes_gda.linalg import one_blas_thread
from bayes_gda.methods import differences
from bayes_gda.methods.importance import trust as judge
from bayes_gda.methods.laplace import GaussianPosterior, laplace_approximation
from bayes_gda.methods.skew import lindley_mean
from bayes_gda.methods.verdict import Verdict
from bayes_gda.priors import Seed
from bayes_gda.processes.state import Shared, warning_rule

if TYPE_CHECKING:
    import xarray as xr

# Plain Python thunks: a Laplace approximation evaluates a model some hundred times, all points of a difference scheme
# at once, and compiling to machine code takes far longer than that. The graph is made numerically stable first
# (log(1 − σ(w)) and the like), while it is small; rewriting it again with its gradient and for all points takes longer
# than all the rest (QDA, d = 4: 3.5 of 6 s) and makes nothing faster.
MODE = Mode(linker=VMLinker(use_cloop=False, c_thunks=False), optimizer="merge")
# A parameter out of its range is a density of zero, not an exception.
STABLE = ("canonicalize", "stabilize", "local_check_parameter_to_ninf_switch")
# Points evaluated in one call; bounds the memory of a model with many rows.
BATCH = 500


# PyMC compiles some initial points to C, and PyTensor then misses a C BLAS, which we do not use.
NO_BLAS_NEEDED = Shared(lambda: warning_rule("ignore", "PyTensor could not link to a BLAS", UserWarning))
_DOUBLES = Shared(lambda: pytensor.config.change_flags(floatX="float64"))
# Nodes that have a graph of their own (Cholesky's gradient, say) would have it compiled to C all the same: the first
# Laplace approximation of an LDA took 14 s instead of 2. Without, later calls are up to 1.7 times as slow.
_NO_COMPILER = Shared(lambda: pytensor.config.change_flags(cxx=""))


@dataclass(frozen=True, slots=True, eq=False)
class ModelDensity:
    """The log density of a PyMC model and its derivatives, on vectors w (dim,) of unconstrained coordinates.

    Make one with `ModelDensity.of(model)`.

    Parameters
    ----------
    model
        The model.
    start
        (dim,) PyMC's initial point.
    names
        The dim coordinates, such as `mu[0]` or `sigma_log__`.
    """

    model: pm.Model
    start: Floats
    names: tuple[str, ...]
    _graphs: Mapping[str, Any] = field(repr=False)
    _compiled: dict[str, Any] = field(default_factory=dict, repr=False)  # filled as functions are needed

    @classmethod
    def of(cls, model: pm.Model) -> "ModelDensity":
        """Compile the functions of a model."""
        discrete = [rv.name for rv in model.free_RVs if rv.dtype.startswith(("int", "uint", "bool"))]
        if discrete:
            raise DataError(f"Laplace needs continuous variables; {', '.join(discrete)} is discrete. Use MCMC.")
        with NO_BLAS_NEEDED:
            point = model.initial_point()
        raveled = DictToArrayBijection.map({v.name: point[v.name] for v in model.value_vars})
        with _DOUBLES:
            outputs = [model.logp(), *model.replace_rvs_by_values(model.unobserved_RVs)]
            (log_p, *variables), w = join_nonshared_inputs(point, outputs, model.value_vars)
            log_p = rewrite_graph(log_p, include=STABLE)
            W = pt.matrix("W", shape=(None, len(raveled.data)))
            batch = vectorize_graph([log_p, pytensor.grad(log_p, w, disconnected_inputs="ignore"), *variables], {w: W})
            # What does not depend on w (the density of a model of flat variables) is the same at every point.
            batch = [
                out if W in set(ancestors([out])) else pt.broadcast_to(out, (W.shape[0], *out.shape)) for out in batch
            ]
        graphs = {"input": W, "value": batch[0], "value and gradient": batch[:2], "variables": batch[2:]}
        names = tuple(
            f"{name}[{', '.join(map(str, index))}]" if shape else name
            for name, shape, *_ in raveled.point_map_info
            for index in np.ndindex(*shape)
        )
        return cls(model, np.asarray(raveled.data, dtype=float), names, graphs)

    @property
    def dim(self) -> int:
        """Number of unconstrained coordinates."""
        return len(self.start)

    def log_density(self, w: Floats) -> Floats:
        """Return log p, Jacobian included, () for one w (dim,), (S,) for S of them (S, dim)."""
        (values,) = self._evaluate("value", np.atleast_2d(w))
        return values.reshape(np.shape(w)[:-1])

    def values_and_gradients(self, W: Floats) -> tuple[Floats, Floats]:
        """Return log p (S,) and its gradients (S, dim) at S points (S, dim)."""
        values, gradients = self._evaluate("value and gradient", W)
        return values, gradients

    def value_gradient_precision(self, w: Floats) -> tuple[float, Floats, Floats]:
        """Return log p, its gradient (dim,) and H = −∂² log p (dim, dim), to nine digits."""
        (value,), (g,) = self.values_and_gradients(w[None])
        return float(value), g, differences.precision(self._gradients, w)

    def third_order_trace(self, w: Floats, V: Floats) -> Floats:
        """Return Σ_jk ∂³ log p/∂wᵢ∂w_j∂w_k V_jk (dim,)."""
        return differences.third_order_trace(self._gradients, w, V)

    def third_order_form(self, w: Floats, h: Floats) -> Floats:
        """Return Σ_ijk ∂³ log p/∂wᵢ∂w_j∂w_k hᵢh_jh_k, () for one direction h (dim,), (S,) for (S, dim)."""
        return differences.third_order_form(self._gradients, w, h)

    def _gradients(self, W: Floats) -> Floats:
        return self.values_and_gradients(W)[1]

    def draws(self, W: Floats) -> dict[str, Floats]:
        """Return the model's variables and deterministics (S, …) at unconstrained points (S, dim)."""
        names = [rv.name for rv in self.model.unobserved_RVs]
        return dict(zip(names, self._evaluate("variables", W), strict=True))

    def _evaluate(self, name: str, W: Floats) -> list[Floats]:
        """Evaluate a graph at points (S, dim), a batch at a time, and return its outputs (S, …)."""
        if name not in self._compiled:
            with _NO_COMPILER:
                self._compiled[name] = pytensor.function([self._graphs["input"]], self._graphs[name], mode=MODE)
        parts = []
        with one_blas_thread():
            for i in range(0, len(W), BATCH):
                block = np.ascontiguousarray(W[i : i + BATCH])
                out = self._compiled[name](block)
                parts.append(out if isinstance(out, list) else [out])
        return [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class ModelPosterior:
    """The Laplace approximation of a PyMC model.

    Parameters
    ----------
    density
        The model's functions; `density.names` are the coordinates.
    gaussian
        The Gaussian in unconstrained coordinates, with mode, covariance and log evidence.
    """

    density: ModelDensity
    gaussian: GaussianPosterior

    @property
    def log_evidence(self) -> float:
        """Laplace's log evidence of the model."""
        return self.gaussian.log_evidence

    def to_datatree(self, draws: int = 1000, *, chains: int = 4, random_seed: Seed = None) -> "xr.DataTree":
        """Draw, transform to the model's own variables, and label them with its coords, as MCMC would."""
        w = self.gaussian.draw(draws * chains, random_seed=random_seed)
        return label_draws(self.density, w, chains=chains, method="laplace")


def laplace(model: pm.Model | ModelDensity) -> ModelPosterior:
    """Approximate the posterior of any PyMC model of continuous variables by a Gaussian at its mode.

    In unconstrained coordinates with the Jacobian, with the curvature at the mode. Climbs from PyMC's initial point
    by quasi-Newton, then by Newton.

    Raises
    ------
    ConvergenceError
        If no maximum with a positive definite curvature is found.

    Examples
    --------
    >>> import pymc as pm
    >>> from bayes_gda import laplace
    >>> with pm.Model() as model:
    ...     p = pm.Beta("p", 2, 2)
    ...     _ = pm.Binomial("successes", 10, p, observed=7)
    >>> posterior = laplace(model)
    >>> round(posterior.log_evidence, 2)  # exactly −2.22
    -2.21
    """
    density = model if isinstance(model, ModelDensity) else ModelDensity.of(model)

    def negative(w: Floats) -> tuple[float, Floats]:
        (value,), (g,) = density.values_and_gradients(w[None])
        return (-float(value), -g) if np.isfinite(value) else (np.inf, np.zeros_like(w))

    if not np.isfinite(negative(density.start)[0]):
        raise ConvergenceError("The log density is not finite at the model's initial point. Set `initval`s.")
    near = minimize(negative, density.start, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
    return ModelPosterior(density, laplace_approximation(density, near))


def trust(model: pm.Model | ModelPosterior, *, draws: int = judge.DRAWS, random_seed: Seed = 0) -> Verdict:
    """Say whether the Laplace approximation of a PyMC model can be trusted.

    Parameters
    ----------
    model
        A model, or what `laplace` made of it.
    draws
        Draws of each round of importance sampling.
    random_seed
        Seed of the draws.

    Returns
    -------
    The verdict, in the model's unconstrained coordinates (`laplace(model).density.names`).

    Examples
    --------
    >>> import pymc as pm
    >>> from bayes_gda import trust
    >>> with pm.Model() as model:
    ...     p = pm.Beta("p", 2, 2)
    ...     _ = pm.Binomial("successes", 10, p, observed=7)
    >>> verdict = trust(model)
    >>> verdict.verdict, round(verdict.log_evidence, 2)
    ('trusted', -2.19)
    """
    posterior = model if isinstance(model, ModelPosterior) else laplace(model)
    mean = lindley_mean(posterior.gaussian, posterior.density)
    return judge.assess(posterior.density, posterior.gaussian, mean=mean, draws=draws, random_seed=random_seed)


def label_draws(density: ModelDensity, w: Floats, *, chains: int = 1, method: str) -> "xr.DataTree":
    """Label unconstrained draws (chains·draws, dim) of any method as the model's own variables."""
    model = density.model
    coords = {name: list(values) for name, values in model.coords.items() if values is not None}
    return to_datatree(density.draws(w), coords, chains=chains, dims=model.named_vars_to_dims, attrs={"method": method})
