"""Check a Bayesian model or method by simulation: calibration of posteriors by ranks, and learning curves.

What the pages of evidence of this package are made with, for models and methods of your own.
"""

from bayes_gda.validation.calibration import Calibration, simulation_based_calibration
from bayes_gda.validation.curves import LearningCurves, learning_curves
from bayes_gda.validation.ranks import RankTest, rank_uniformity
from bayes_gda.validation.subjects import calibrate_estimator, calibrate_model

__all__ = [
    "Calibration",
    "LearningCurves",
    "RankTest",
    "calibrate_estimator",
    "calibrate_model",
    "learning_curves",
    "rank_uniformity",
    "simulation_based_calibration",
]
