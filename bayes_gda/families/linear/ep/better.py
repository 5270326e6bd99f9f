"""The better Gaussian of each regression: by expectation propagation for two classes, variational for more."""

from bayes_gda.errors import ConvergenceError
from bayes_gda.families.linear.ep.certificate import judge_laplace
from bayes_gda.families.linear.ep.row_certificate import RowCertificate
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.families.linear.variational.certificate import judge_softmax
from bayes_gda.families.linear.variational.row_certificate import SoftmaxRowCertificate
from bayes_gda.methods.density import Smooth
from bayes_gda.methods.ladder import Propagated
from bayes_gda.methods.laplace import GaussianPosterior

# What is kept of them to judge new rows.
CERTIFICATES = (RowCertificate, SoftmaxRowCertificate)


def better_gaussian(target: Smooth, laplace: GaussianPosterior) -> Propagated | None:
    """Return a better Gaussian than Laplace's with what is known of both; None if there is none, or it did not settle.

    Parameters
    ----------
    target
        The log posterior: a regression with a Gaussian prior has one.
    laplace
        Its Laplace approximation.
    """
    try:
        if isinstance(target, SoftmaxTarget):
            return Propagated(*judge_softmax(target, laplace))
        return Propagated(*judge_laplace(target, laplace)) if isinstance(target, LogisticTarget) else None
    except ConvergenceError:
        return None
