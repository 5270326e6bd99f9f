"""The figures of the textbook, one call each; each returns a `Plot`: figure, caption and alt text.

gaussians      plot_gaussian, plot_bivariate_contours, plot_bivariate_surfaces, plot_mixture_surface
boundaries     plot_lda_mixture, plot_qda_mixture, plot_three_classes, plot_prior_shift
reduction      plot_dimension_reduction
losses         plot_links, plot_losses, plot_laplace, plot_separability, plot_perceptron_path

`debate.plot_excess` shows what the experiments of `bayes_gda.teaching.debate` measured.
"""

from bayes_gda.reporting.plots.textbook.boundaries import (
    plot_lda_mixture,
    plot_prior_shift,
    plot_qda_mixture,
    plot_three_classes,
)
from bayes_gda.reporting.plots.textbook.gaussians import (
    plot_bivariate_contours,
    plot_bivariate_surfaces,
    plot_gaussian,
    plot_mixture_surface,
)
from bayes_gda.reporting.plots.textbook.losses import (
    plot_laplace,
    plot_links,
    plot_losses,
    plot_perceptron_path,
    plot_separability,
)
from bayes_gda.reporting.plots.textbook.reduction import plot_dimension_reduction

__all__ = [
    "plot_bivariate_contours",
    "plot_bivariate_surfaces",
    "plot_dimension_reduction",
    "plot_gaussian",
    "plot_laplace",
    "plot_lda_mixture",
    "plot_links",
    "plot_losses",
    "plot_mixture_surface",
    "plot_perceptron_path",
    "plot_prior_shift",
    "plot_qda_mixture",
    "plot_separability",
    "plot_three_classes",
]
