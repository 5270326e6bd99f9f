"""The posterior weights of models between naive, LDA and QDA, as a map."""

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from bayes_gda.families.gaussian.continuum import Continuum
from bayes_gda.reporting.plots.style import BLACK, BLUE, Plot, new_figure, styled

# Cells of at least this weight have it written into them.
WRITTEN = 0.05
# On a shade darker than this share of the darkest, white is read better than black.
DARK = 0.6


@styled
def plot_continuum(continuum: Continuum) -> Plot:
    """Show the weight of each model between naive, LDA and QDA: a line for each target, a column for each pooling.

    Parameters
    ----------
    continuum
        From `fit_continuum`.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.reporting.plots import plot_continuum
    >>> from bayes_gda import BayesianRDA
    >>> plot_continuum(BayesianRDA().fit(load_example("iris")).continuum_).alt.split(":")[0]
    'Weights of 96 models between naive, LDA and QDA'
    """
    rows = np.unique(continuum.prior_rows)
    # The naive models, δ = nan, come last and so on top.
    deltas = np.unique(continuum.delta)
    line, column = np.searchsorted(deltas, continuum.delta), np.searchsorted(rows, continuum.prior_rows)
    weight = np.zeros((len(deltas), len(rows)))
    pooling = np.zeros(len(rows))
    weight[line, column], pooling[column] = continuum.weight, continuum.pooling
    figure, [[axes]] = new_figure(0.9 + 0.24 * len(deltas))
    shades = LinearSegmentedColormap.from_list("weights", ["#FFFFFF", BLUE])
    largest_weight = float(weight.max())
    axes.imshow(
        weight, origin="lower", aspect="auto", cmap=shades, vmin=0, vmax=largest_weight, interpolation="nearest"
    )
    for i, j in zip(*np.nonzero(weight >= WRITTEN), strict=True):
        color = "#FFFFFF" if weight[i, j] > DARK * largest_weight else BLACK
        axes.text(j, i, f"{weight[i, j]:.2f}", ha="center", va="center", color=color)
    axes.grid(visible=False)
    corners = {0: "\nQDA", len(rows) - 1: "\nLDA"}
    axes.set_xticks(np.arange(len(rows)), [f"{s:.2f}{corners.get(j, '')}" for j, s in enumerate(pooling)])
    names = ["naive" if np.isnan(delta) else f"{delta:g}" for delta in deltas]
    axes.set_yticks(np.arange(len(deltas)), names)
    axes.set_xlabel("share of the covariances that the classes have in common")
    if len(deltas) > 1:  # of one feature there are none
        axes.set_ylabel("correlations left out")
    caption = (
        "Weight of each model, by its evidence: left to right the covariances of the classes are pooled more, "
        f"bottom to top their correlations are shrunk more, to none for naive. {continuum.sentence}"
    )
    best = continuum.best
    alt = (
        f"Weights of {len(continuum.weight)} models between naive, LDA and QDA: the largest is "
        f"{continuum.weight[best]:.2f}, at a common share of {continuum.pooling[best]:.2f}; on average "
        f"{continuum.toward_lda:.2f} of the way from QDA to LDA, {continuum.toward_naive:.2f} of that to naive."
    )
    return Plot(figure, caption, alt)
