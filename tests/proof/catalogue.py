"""Every model of the simulations with its prior, its size and the methods that it is simulated by; see `simulate`."""

import numpy as np
from proof.clouds import MixtureModel, StudentModel
from proof.simulate import FEW_ROWS, MISSING, GaussianModel, MixedModel, Model, RegressionModel, RegularizedModel

from bayes_gda.checks import frozen
from bayes_gda.priors import LKJ, NIG, NIW

_NIW = NIW(m=frozen([0.0, 0.0]), kappa=0.25, Psi=frozen(2 * np.eye(2)), nu=5.0)
_NIW_10 = NIW(m=frozen(np.zeros(10)), kappa=0.25, Psi=frozen(2 * np.eye(10)), nu=13.0)
_NIG = NIG(m=frozen([0.0, 0.0]), kappa=frozen(0.25), a=frozen(2.5), b=frozen(1.5))
_LKJ = LKJ(scale=frozen([1.5, 1.5]), m=frozen([0.0, 0.0]), mean_scale=frozen([2.0, 2.0]))
_APPROXIMATE = ("laplace", "corrected", "mcmc")
_LOGISTIC = ("laplace", "skew-modal", "ep", "corrected", "mcmc")
_SOFTMAX = ("laplace", "skew-modal", "variational", "corrected", "mcmc")

MODELS: dict[str, Model] = {
    "lda": GaussianModel("shared", _NIW),
    "qda": GaussianModel("own", _NIW),
    "naive": GaussianModel("diagonal", _NIG),
    "lda-lkj": GaussianModel("shared", _LKJ, _APPROXIMATE, 5.0),
    "qda-lkj": GaussianModel("own", _LKJ, _APPROXIMATE, 5.0),
    "naive-lkj": GaussianModel("diagonal", _LKJ, _APPROXIMATE, 5.0),
    # With 87 coordinates importance sampling refuses nearly every data set.
    "lda-10": GaussianModel("shared", _NIW_10, ("exact", "laplace", "mcmc")),
    "lda-wide": GaussianModel("shared", _NIW_10, ("exact", "mcmc"), rows=FEW_ROWS),
    "lda-gaps": GaussianModel("shared", _NIW, ("mcmc",), missing=MISSING),
    "qda-gaps": GaussianModel("own", _NIW, ("mcmc",), missing=MISSING),
    "naive-gaps": GaussianModel("diagonal", _NIG, ("exact",), missing=MISSING),
    "mixed": MixedModel(),
    "student": StudentModel(_NIW),
    "student-shared": StudentModel(_NIW, ("laplace", "corrected"), shared=True),
    "mixture": MixtureModel("own", _NIW),
    "mixture-shared": MixtureModel("shared", _NIW, ("laplace", "corrected")),
    "mixture-diagonal": MixtureModel("diagonal", _NIG),
    "rda": RegularizedModel(),
    "logistic": RegressionModel(2, methods=_LOGISTIC),
    "softmax": RegressionModel(3, methods=_SOFTMAX),
    "logistic-10": RegressionModel(2, d=10, methods=_LOGISTIC),
    "logistic-wide": RegressionModel(2, d=10, rows=FEW_ROWS, methods=_LOGISTIC),
    "hierarchical": RegressionModel(2, d=4, scale=None, methods=_APPROXIMATE),
    "logistic-eb": RegressionModel(2, d=4, scale=1.0, methods=("empirical-bayes",)),
}
