"""The distributions that a column may have, by their words; those of `bayes_gda.priors.mixed`."""

from bayes_gda.families.mixed.column import ColumnPosterior
from bayes_gda.families.mixed.discrete import Bernoulli, Binomial, Categorical, Poisson
from bayes_gda.families.mixed.normal import LogitNormal, LogNormal, Normal
from bayes_gda.families.mixed.proportions import Beta
from bayes_gda.families.mixed.shapes import Gamma, NegativeBinomial

DISTRIBUTIONS: dict[str, type[ColumnPosterior]] = {
    cls.word: cls
    for cls in (
        Normal,
        LogNormal,
        LogitNormal,
        Bernoulli,
        Binomial,
        Categorical,
        Poisson,
        NegativeBinomial,
        Gamma,
        Beta,
    )
}
