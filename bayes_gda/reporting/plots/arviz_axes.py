"""ArviZ's plots on axes of our own: they look like all other figures, and names of any kind are safe.

ArviZ computes and draws; the figure, its size, its labels and its words are ours. Its `PlotCollection` is a tree of
axes and of properties such as colours, which `collect` makes of axes that exist already.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bayes_gda.checks import Floats
from bayes_gda.reporting.plots.style import CLASS_COLORS

if TYPE_CHECKING:
    import xarray as xr

KEEP_AXIS: dict[Any, Any] = {"remove_axis": False}


def collect(
    figure: Figure,
    axes: Mapping[str, Axes | Sequence[Axes]],
    data: "xr.Dataset",
    aes: Mapping[str, Sequence[str]],
    *,
    along: tuple[str, Sequence[str]] | None = None,
    **values: Sequence[Any],
) -> Any:
    """Return ArviZ's `PlotCollection` of variables on axes of our own, coloured as all figures are.

    Parameters
    ----------
    figure, axes
        The figure, and the axes of each variable of `data`: one, or one for each label of `along`.
    data
        What ArviZ will draw.
    aes
        Properties of lines, such as `color`, by the dimensions that they follow.
    along
        Name and labels of the dimension that has axes of its own.
    values
        Values of each property, in their order; colours are those of classes by default.
    """
    import xarray as xr
    from arviz_plots import PlotCollection

    dims, coords = ((), {}) if along is None else ((along[0],), {along[0]: list(along[1])})

    def dataset(cells: Mapping[str, Any]) -> xr.Dataset:
        shape = (1,) if along is None else (len(along[1]),)
        out = {}
        for name, cell in cells.items():
            array = np.empty(shape, dtype=object)
            array[:] = cell if along is not None and isinstance(cell, list) else [cell] * shape[0]
            out[name] = (dims, array if dims else array[0:1].reshape(()))
        return xr.Dataset(out, coords=coords)

    places = {name: i for i, name in enumerate(axes)}
    columns = 0 if along is None else list(range(len(along[1])))
    tree = xr.DataTree.from_dict(
        {
            "/": xr.Dataset({"figure": ((), np.array(figure, dtype=object))}),
            "plot": dataset({name: cell if isinstance(cell, Axes) else list(cell) for name, cell in axes.items()}),
            "row_index": dataset(places),
            "col_index": dataset(dict.fromkeys(places, columns)),
        }
    )
    lists = ({"color": list(CLASS_COLORS)} if "color" in aes else {}) | {k: list(x) for k, x in values.items()}
    return PlotCollection(data, tree, aes=dict(aes), backend="matplotlib", **lists)


def dataset_of(draws: Mapping[str, Floats]) -> "xr.Dataset":
    """Return draws (chains, draws) by name as ArviZ has them."""
    import xarray as xr

    chains, n = next(iter(draws.values())).shape
    coords = {"chain": np.arange(chains), "draw": np.arange(n)}
    return xr.Dataset({name: (("chain", "draw"), x) for name, x in draws.items()}, coords=coords)


def tree_of(posterior: "xr.Dataset", **groups: "xr.Dataset") -> "xr.DataTree":
    """Return a DataTree with the group `posterior`, and others."""
    import xarray as xr

    return xr.DataTree.from_dict({"posterior": posterior, **groups})


def draw_forest(figure: Any, axes: Any, values: Floats, colors: list[str]) -> None:
    """Draw quantiles (methods, parameters, 5) by ArviZ: twig, trunk, median, trunk, twig; the first parameter on top.

    The quantiles are given, since methods may have different numbers of draws, which ArviZ would align.
    """
    import arviz_plots as azp
    import xarray as xr

    n_methods, n = values.shape[:2]
    dims = ("parameter", "model")
    by = np.moveaxis(values, 0, 1)
    coords: dict[str, Any] = {"parameter": np.arange(n), "model": np.arange(n_methods)}
    ends = coords | {"ci_bound": ["lower", "upper"]}
    twig, trunk = (xr.Dataset({"x": ((*dims, "ci_bound"), by[..., k])}, coords=ends) for k in ([0, 4], [1, 3]))
    middle = xr.Dataset({"x": (dims, by[..., 2])}, coords=coords)
    y = np.arange(n)[:, None] + (np.arange(n_methods) - (n_methods - 1) / 2) * 0.7 / n_methods
    aes = {"y": dims, "overlay": dims, "color": dims[1:]}
    column = ("column", ["forest"])
    pc = collect(figure, {"x": [axes]}, middle, aes, along=column, y=y.ravel(), color=colors)
    look: dict[Any, Any] = {
        "twig": {"width": 0.9},
        "trunk": {"width": 2.6},
        "point_estimate": {"size": 14, "width": 0.9},
    }
    azp.plot_forest(
        middle.expand_dims(draw=1),
        group=None,
        sample_dims=["draw"],
        combined=True,
        labels=[],
        plot_collection=pc,
        visuals=look | {"ticklabels": False} | KEEP_AXIS,
        stats={"twig": twig, "trunk": trunk, "point_estimate": middle},
    )
