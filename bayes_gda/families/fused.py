"""From a model's blueprint to its hand-written density, in the coordinates and the order of the PyMC model.

Tests hold each equal to the model's own graph, value and gradient.
"""

import numpy as np

from bayes_gda.checks import frozen
from bayes_gda.families.gaussian.densities import BartlettBlock, ClassBlock, NaiveBlock
from bayes_gda.families.gaussian.lkj import CholeskyBlock, ScalesBlock
from bayes_gda.families.linear.densities import HierarchicalDensity, WeightsDensity
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.methods.density import Block, Density, Parts
from bayes_gda.models.blueprint import Blueprint, GaussianBlueprint, RegressionBlueprint
from bayes_gda.priors import LKJ, NIG, NIW, HierarchicalScale, Normal


def fused_density(blueprint: Blueprint) -> Density:
    """Return the density of the model that the blueprint describes."""
    return _gaussian(blueprint) if isinstance(blueprint, GaussianBlueprint) else _regression(blueprint)


def _gaussian(blueprint: GaussianBlueprint) -> Density:
    moments, prior, shared = blueprint.moments, blueprint.prior, blueprint.covariance == "shared"
    block: Block
    if isinstance(prior, NIG):
        block = NaiveBlock(moments, prior)
    elif isinstance(prior, NIW):
        block = BartlettBlock(moments, prior, shared)
    elif blueprint.covariance == "diagonal":
        block = ScalesBlock(moments, prior)
    else:
        assert isinstance(prior, LKJ)
        block = CholeskyBlock(moments, prior, shared)
    return Parts([ClassBlock(moments.count, blueprint.alpha), block], blueprint.rows)


def _regression(blueprint: RegressionBlueprint) -> Density:
    hierarchical = isinstance(blueprint.prior, HierarchicalScale)
    prior = Normal(scale=frozen(np.inf)) if isinstance(blueprint.prior, HierarchicalScale) else blueprint.prior
    rows, c = blueprint.rows, blueprint.sample_weight
    target: LogisticTarget | SoftmaxTarget
    if blueprint.binary:
        target = LogisticTarget(blueprint.Phi, rows.y.astype(float), prior, c)
    else:
        target = SoftmaxTarget(blueprint.Phi, rows.y, rows.K, prior, c, blueprint.reference)
    if hierarchical:
        assert isinstance(blueprint.prior, HierarchicalScale)
        return HierarchicalDensity(target, blueprint.prior, rows)
    return WeightsDensity(target, rows)
