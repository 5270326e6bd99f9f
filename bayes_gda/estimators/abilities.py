"""What only some estimators can do: draw new rows with their labels; project rows to the plane of the class means.

The linear discriminants δ_k(x) = log π_k − ½ μ_kᵀΣ⁻¹μ_k + xᵀΣ⁻¹μ_k have, where Σ⁻¹ ~ W(Ψ⁻¹, ν), μ_k | Σ ~ N(m_k, Σ/κ_k)
and π ~ Dirichlet(α), the expectations

    E Σ⁻¹μ_k = νΨ⁻¹m_k,   E μ_kᵀΣ⁻¹μ_k = ν m_kᵀΨ⁻¹m_k + d/κ_k,   E log π_k = ψ(α_k) − ψ(Σα)
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bayes_gda.checks import Floats
from bayes_gda.errors import DataError
from bayes_gda.families.gaussian.classifier import GaussianClassifier
from bayes_gda.families.gaussian.discriminant import Gaussians, Projection
from bayes_gda.families.gaussian.exact import NIWPosterior


class Generating:
    """What an estimator can do whose model is one of p(x, y): draw new rows."""

    classes_: NDArray[Any]
    model_: Any
    seed_: int

    def sample(self, n: int = 1, random_state: Any = None) -> tuple[Floats, NDArray[Any]]:
        """Draw new rows (n, d) with their labels (n,) from the posterior predictive.

        Parameters
        ----------
        n
            Number of rows, each with parameters of its own from the posterior.
        random_state
            Seed; None gives the same rows each time, as long as the model is not fitted again.
        """
        check_is_fitted(self, "model_")
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise DataError(f"`n` must be a whole number of at least 1; got {n!r}.")
        if not getattr(self.model_, "generates", hasattr(self.model_, "sample")):
            raise DataError(
                "The rows of this model cannot be generated: its family has no `draw_rows`, or models p(y | x) alone."
            )
        seed = self.seed_ if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))
        X, codes = self.model_.sample(int(n), random_seed=seed)
        labels: NDArray[Any] = self.classes_[codes]
        return X, labels


class Projecting(ClassNamePrefixFeaturesOutMixin, TransformerMixin):  # type: ignore[misc]  # no types there
    """Coefficients and `transform` of a model with one covariance for all classes."""

    model_: Any

    @property
    def coef_(self) -> Floats:
        """Posterior means of the slopes of the linear discriminants, per unit of the features.

        (1, d), of the log odds of the second class, or (K, d) less their mean over the class shares: what all classes
        have in common changes no probability.
        """
        return self._linear()[0]

    @property
    def intercept_(self) -> Floats:
        """Posterior means of the linear discriminants where all features are 0, (1,) or (K,), as `coef_`."""
        return self._linear()[1]

    def transform(self, X: Any) -> Floats:
        """Project rows (n, d) to the space of the class means (n, r), r ≤ K − 1, the most telling direction first.

        At the posterior means of the parameters. The covariance within a class is then the identity, so that distances
        to the projected class means decide. Where a value of a row is missing its projection is not known: NaN.
        """
        rows: Floats = self._checked(X)
        return self._projection()(rows)

    @property
    def _n_features_out(self) -> int:
        return len(self._projection().spread)

    def _projection(self) -> Projection:
        check_is_fitted(self, "model_")
        model: GaussianClassifier = self.model_
        exact = model.posterior
        if isinstance(exact, NIWPosterior):
            d = exact.m.shape[1]
            # E Σ = Ψ/(ν − d − 1), where that exists; of a Σ with heavier tails the scale.
            freedom = max(float(exact.nu[0]) - d - 1, 1.0)
            return Gaussians(exact.alpha / exact.alpha.sum(), exact.m, exact.Psi[0] / freedom).projection()
        assert model.draws is not None
        return Gaussians(*(model.draws[name].mean(axis=0) for name in ("pi", "mu", "Sigma"))).projection()

    def _linear(self) -> tuple[Floats, Floats]:
        check_is_fitted(self, "model_")
        model: GaussianClassifier = self.model_
        exact = model.posterior
        if isinstance(exact, NIWPosterior):
            slopes = exact.nu[0] * np.linalg.solve(exact.Psi[0], exact.m.T).T
            log_pi = digamma(exact.alpha) - digamma(exact.alpha.sum())
            squares = np.einsum("kd,kd->k", exact.m, slopes) + exact.m.shape[1] / exact.kappa
            levels, shares = log_pi - 0.5 * squares, exact.alpha / exact.alpha.sum()
        else:
            assert model.draws is not None
            draws = model.draws
            slopes = np.swapaxes(np.linalg.solve(draws["Sigma"], np.swapaxes(draws["mu"], 1, 2)), 1, 2)
            squares = np.einsum("skd,skd->sk", draws["mu"], slopes)
            levels, shares = (np.log(draws["pi"]) - 0.5 * squares).mean(axis=0), draws["pi"].mean(axis=0)
            slopes = slopes.mean(axis=0)
        if len(slopes) == 2:
            return slopes[1:] - slopes[:1], levels[1:] - levels[:1]
        return slopes - shares @ slopes, levels - shares @ levels
