"""All plots of the package. Each takes results and returns a `Plot`: figure, caption and alt text.

regions        plot_regions, plot_densities, plot_projection
plane          Plane, feature_plane, discriminant_plane
posteriors     plot_marginals, plot_forest, plot_pair
sampling       plot_traces, plot_energy, plot_ess
predictions    plot_predictions, plot_intervals, plot_separation, plot_effects
calibration    plot_reliability, plot_thresholds, plot_costs, plot_decisions
comparison     plot_pareto_k, plot_models, plot_sensitivity, plot_power_scaling
continuum      plot_continuum
performance    plot_confusion, plot_curves, plot_importance
assumptions    plot_distances
style          Plot, save
textbook       the figures of the textbook, in a folder of their own
"""

from bayes_gda.reporting.plots.assumptions import plot_distances
from bayes_gda.reporting.plots.calibration import plot_costs, plot_decisions, plot_reliability, plot_thresholds
from bayes_gda.reporting.plots.comparison import plot_models, plot_pareto_k, plot_power_scaling, plot_sensitivity
from bayes_gda.reporting.plots.continuum import plot_continuum
from bayes_gda.reporting.plots.performance import plot_confusion, plot_curves, plot_importance
from bayes_gda.reporting.plots.plane import Plane, discriminant_plane, feature_plane
from bayes_gda.reporting.plots.posteriors import plot_forest, plot_marginals, plot_pair
from bayes_gda.reporting.plots.predictions import plot_effects, plot_intervals, plot_predictions, plot_separation
from bayes_gda.reporting.plots.regions import plot_densities, plot_projection, plot_regions
from bayes_gda.reporting.plots.sampling import plot_energy, plot_ess, plot_traces
from bayes_gda.reporting.plots.style import Plot, save

__all__ = [
    "Plane",
    "Plot",
    "discriminant_plane",
    "feature_plane",
    "plot_confusion",
    "plot_continuum",
    "plot_costs",
    "plot_curves",
    "plot_decisions",
    "plot_densities",
    "plot_distances",
    "plot_effects",
    "plot_energy",
    "plot_ess",
    "plot_forest",
    "plot_importance",
    "plot_intervals",
    "plot_marginals",
    "plot_models",
    "plot_pair",
    "plot_pareto_k",
    "plot_power_scaling",
    "plot_predictions",
    "plot_projection",
    "plot_regions",
    "plot_reliability",
    "plot_sensitivity",
    "plot_separation",
    "plot_thresholds",
    "plot_traces",
    "save",
]
