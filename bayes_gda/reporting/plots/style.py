"""One look for all figures: colours, fonts, names of any kind as text, legends beside the data, reproducible files.

Every plot function is wrapped in `styled`, so that figures are the same whatever the user's matplotlib settings are.
Figures are made without pyplot: nothing is shown, and none of them is kept alive by matplotlib.
"""

import base64
import io
import os
import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache, wraps
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.ft2font import FT2Font
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from bayes_gda.errors import DataError

# Okabe & Ito (2008): told apart under each of the common colour blindnesses.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
GREY, LIGHT, OLIVE = "#5F5F5F", "#D9D9D9", "#999933"
# Classes: all but yellow, too faint for lines on white; then the deep colours of Paul Tol, which go with the others.
CLASS_COLORS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, OLIVE, GREY, "#332288", "#882255", "#117733", "#AA4499")
# Markers tell classes apart in grey print, and where colours come round again.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h")
# Each method looks the same in all figures; the dashes are for grey print.
METHODS: Mapping[str, tuple[str, Any]] = {
    "exact": (BLACK, "-"),
    "mcmc": (BLUE, "-"),
    "nuts": (BLUE, "-"),
    "laplace": (VERMILLION, (0, (5, 2))),
    "skew-modal": (PURPLE, (0, (5, 1, 1, 1))),
    "corrected": (SKY, (0, (3, 1))),
    "ep": (GREEN, (0, (4, 1, 1, 1))),
    "variational": (GREEN, (0, (4, 1, 1, 1))),
    "probit": (ORANGE, (0, (1, 1))),
    "reference": (SKY, "-"),
}
SPARE = ((OLIVE, (0, (4, 2))), ("#882255", (0, (2, 2))), ("#332288", (0, (6, 1, 1, 1))), (GREY, "-"))

WIDTH = 7.2  # inches: a page's text
FONT = 8.0  # points; still read when the page is printed
NAME = 24  # characters of a name; twelve classes then fit into a legend, and a name beside a plot takes two inches
MARKS = 2  # accents on one letter; more of them climb out of the figure
MOST_LEGEND = 15  # entries: twelve classes and a few lines
MANY_POINTS = 1000  # artists beyond which an SVG holds a bitmap of them in place of each
PALETTE = 64  # colours of a bitmap: points of some classes, their edges and shades
RASTER_DPI = 200  # of such bitmaps and of PNG files: sharp in print at page width

STYLE: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],  # comes with matplotlib: the same on every machine
    "font.size": FONT,
    "axes.titlesize": FONT + 1,
    "axes.titlelocation": "left",
    "axes.titlepad": 5,
    "axes.labelsize": FONT,
    "xtick.labelsize": FONT,
    "ytick.labelsize": FONT,
    "legend.fontsize": FONT,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "legend.columnspacing": 1.4,
    "figure.titlesize": FONT + 1,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.7,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": BLACK,
    "ytick.labelcolor": BLACK,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "lines.linewidth": 1.5,
    "axes.formatter.limits": (-4, 5),  # 10 000 stays as it is, 1 000 000 becomes 1e6
    "figure.constrained_layout.h_pad": 0.06,
    "figure.constrained_layout.w_pad": 0.06,
    "savefig.dpi": RASTER_DPI,
    "svg.hashsalt": "bayes_gda",  # ids in the file hang on the figure alone
    "svg.fonttype": "path",  # looks the same where the font is not installed
}
# Matplotlib's settings are global: one figure at a time.
_LOCK = threading.RLock()


@dataclass(frozen=True, slots=True, eq=False)
class Plot:
    """A figure with its caption and alt text.

    Parameters
    ----------
    figure
        The figure, not registered with pyplot.
    caption
        What the figure shows and how to read it, in plain sentences.
    alt
        One sentence with the key numbers, for readers who cannot see the figure.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from bayes_gda import load_example
    >>> from bayes_gda.reporting.plots import plot_projection, save
    >>> plot = plot_projection(load_example("iris"))
    >>> with TemporaryDirectory() as folder:
    ...     path = save(plot, Path(folder) / "iris.svg")
    ...     path.read_text()[:5]
    '<?xml'
    """

    figure: Figure
    caption: str
    alt: str

    def _repr_png_(self) -> bytes:
        """Show the figure in a notebook."""
        buffer = io.BytesIO()
        with _package_style():
            self.figure.savefig(buffer, format="png", metadata={"Software": None, "Description": self.alt})
        return buffer.getvalue()


@contextmanager
def _package_style() -> Iterator[None]:
    """Set the package's style, and restore the user's settings afterwards; one thread at a time."""
    with _LOCK, mpl.rc_context():
        mpl.rcdefaults()
        settings: Any = mpl.rcParams
        settings.update(STYLE)
        yield


def styled[**P](function: Callable[P, Plot]) -> Callable[P, Plot]:
    """Return a plot function that runs under the package's style, and lays out its figure before the style ends."""

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Plot:
        with _package_style():
            plot = function(*args, **kwargs)
            # Ticks are made when first drawn, and would follow the settings of that time.
            plot.figure.draw_without_rendering()
            # Laid out anew at each drawing, axes would creep by fractions of a pixel, and files would differ.
            plot.figure.set_layout_engine("none")
            return plot

    return wrapper


def save(plot: Plot, path: "str | os.PathLike[str]") -> Path:
    """Write a plot as SVG or PNG, by the ending of `path`; the same figure makes the same bytes.

    Parameters
    ----------
    plot
        What to write; its alt text goes into the file as description.
    path
        File name ending in .svg or .png; its folder must exist.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from bayes_gda import load_example
    >>> from bayes_gda.reporting.plots import plot_projection, save
    >>> plot = plot_projection(load_example("iris"))
    >>> with TemporaryDirectory() as folder:
    ...     path = save(plot, Path(folder) / "iris.svg")
    ...     path.read_text()[:5]
    '<?xml'
    """
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in (".svg", ".png"):
        raise DataError(f"`path` must end in .svg or .png; got {target.name!r}.")
    # Dates and versions would make equal figures differ.
    metadata = {"Date": None, "Creator": None} if kind == ".svg" else {"Software": None}
    buffer = io.BytesIO()
    with _package_style():
        plot.figure.savefig(buffer, format=kind[1:], metadata=metadata | {"Description": plot.alt})
    target.write_bytes(_shrink_svg(buffer.getvalue()) if kind == ".svg" else buffer.getvalue())
    return target


def _shrink_svg(svg: bytes) -> bytes:
    """Return a smaller SVG that looks the same: coordinates are rounded to hundredths of a point.

    Only outlines and positions are rounded, not the factors in transforms. Comments and the white space between
    elements are removed. Consecutive marks of the same style share one `style` attribute. Bitmaps have a palette.
    """

    def shorten(match: re.Match[bytes]) -> bytes:
        numbers = re.sub(rb"-?\d+\.\d{3,}", lambda m: b"%g" % round(float(m[0]), 2), match[2])
        return match[1] + b" ".join(numbers.split()) + b'"'

    def share(match: re.Match[bytes]) -> bytes:
        if b" opacity:" in match["look"] or b'"opacity:' in match["look"]:  # that of a group is not that of its members
            return match[0]
        return b"<g" + match["look"] + b">" + match[0].replace(match["look"], b"") + b"</g>"

    svg = re.sub(rb'(?<="data:image/png;base64,)[^"]*', _shrink_png, svg)
    svg = re.sub(rb'(\s(?:d|x|y|points)=")([^"]*)"', shorten, svg)
    svg = re.sub(rb">\s+<", b"><", re.sub(rb"<!--.*?-->", b"", svg, flags=re.DOTALL))
    mark = rb'<use(?: (?:xlink:href|x|y)="[^"]*")+'
    return re.sub(mark + rb'(?P<look> style="[^"]*")/>(?:' + mark + rb"(?P=look)/>)+", share, svg)


def _shrink_png(match: re.Match[bytes]) -> bytes:
    """Return a bitmap in base 64 with as few bytes: a palette of PALETTE colours, unless that is larger."""
    from PIL import Image

    given = base64.b64decode(match[0])
    picture = Image.open(io.BytesIO(given)).convert("RGBA").quantize(PALETTE, method=Image.Quantize.FASTOCTREE)
    buffer = io.BytesIO()
    picture.save(buffer, format="png", optimize=True)
    return base64.b64encode(min(given, buffer.getvalue(), key=len))


# ── Names ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def plain(name: Any, width: int = NAME) -> str:
    """Return a name for a sentence: no control characters, at most `width` characters.

    Long names lose their middle, because names that begin alike often end differently.
    """
    text = _clean(str(name))
    if len(text) <= width:
        return text
    tail = (width - 1) // 3
    return text[: width - 1 - tail].rstrip() + "…" + text[len(text) - tail :].lstrip()


@lru_cache(maxsize=1024)  # names are cut again and again until they fit
def _clean(name: str) -> str:
    """Return a name in one line, without control characters and with at most MARKS accents per letter."""
    letters: list[str] = []
    marks = 0
    for char in unicodedata.normalize("NFC", name):
        category = unicodedata.category(char)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        # Left out are control signs, direction overrides, joiners, surrogates, private and unassigned characters.
        if category[0] == "Z" or char in "\t\n\r":
            letters.append(" ")
        elif category[0] != "C" and marks <= MARKS:
            letters.append(char)
    return " ".join("".join(letters).split()) or "(blank)"


def drawn(text: str) -> str:
    """Return text for matplotlib: dollars escaped, so that none starts a formula, □ for letters that the font lacks."""
    glyphs = _glyphs()
    return "".join(char if ord(char) in glyphs else "□" for char in text).replace("$", r"\$")


def labels(names: Iterable[Any], width: int = NAME, *, inches: float = WIDTH) -> list[str]:
    """Return names to draw, all of them different: names that are cut to the same text are numbered, from 1.

    Parameters
    ----------
    names
        Names of any kind.
    width, inches
        Room for each, in characters and on paper: W is three times as wide as i.
    """
    all_names = list(names)
    texts = [_fit_name(name, width, inches) for name in all_names]
    return [
        text if texts.count(text) == 1 else f"{_fit_name(name, width, inches - 0.3)} ({i})"
        for i, (name, text) in enumerate(zip(all_names, texts, strict=True), 1)
    ]


def _fit_name(name: Any, width: int, inches: float) -> str:
    """Return a name to draw, cut until it has at most `width` characters and `inches`."""
    while text_width(text := drawn(plain(name, width))) > inches and width > 2:
        width -= 1
    return text


def listing(names: Sequence[Any], most: int = 3) -> str:
    """Return the first `most` names for a sentence, and how many more there are."""
    omitted = len(names) - most
    return ", ".join(plain(name, 40) for name in names[:most]) + (f" and {omitted} more" if omitted > 0 else "")


def counted(count: int, word: str) -> str:
    """Return count and word, such as `1 row` or `2 rows`; the plural is formed by an s."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _open_font() -> FT2Font:
    """Return the font. It is not kept: forked processes would share its open file and the position in it."""
    return get_font(findfont(FontProperties(family="DejaVu Sans")))


@cache
def _glyphs() -> frozenset[int]:
    """Return the code points that the font has letters for."""
    return frozenset(_open_font().get_charmap())


@cache
def _advance(char: str) -> float:
    """Return the width of a letter in ems."""
    face = _open_font()
    face.set_size(100, 72)  # an em is a hundred pixels, and advances are in 1/65536 of one
    return face.load_char(ord(char)).linearHoriAdvance / 65536 / 100


# ── Colours and parts ───────────────────────────────────────────────────────────────────────────────────────────────


def class_style(k: int) -> tuple[str, str]:
    """Return colour and marker of class code k."""
    return CLASS_COLORS[k % len(CLASS_COLORS)], MARKERS[k % len(MARKERS)]


def method_styles(methods: Iterable[str]) -> dict[str, tuple[str, Any]]:
    """Return colour and dashes of each method: those of METHODS, or of SPARE in turn for other methods."""
    out, spare = {}, 0
    for method in methods:
        key = method.casefold().replace("_", "-").replace(" ", "-")
        if key in METHODS:
            out[method] = METHODS[key]
        else:
            out[method] = SPARE[spare % len(SPARE)]
            spare += 1
    return out


def new_figure(height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, NDArray[Any]]:
    """Return a page-wide figure and its axes (rows, columns)."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, np.asarray(figure.subplots(rows, columns, squeeze=False, **options))


def legend(figure: Figure, handles: Sequence[Artist], names: Sequence[str]) -> None:
    """Put a legend above the axes, in as many columns as fit; entries beyond MOST_LEGEND are counted, not shown."""
    handles, names = list(handles), list(names)
    if (omitted := len(names) - MOST_LEGEND) > 0:
        handles[MOST_LEGEND - 1 :] = [Line2D([], [], linestyle="none")]
        names[MOST_LEGEND - 1 :] = [f"and {omitted + 1} more"]
    # Handle, its gap to the text, and the gap between columns, in ems; texts as wide as they are.
    widest = max(text_width(name) for name in names) + (2.2 + 0.8 + 1.4) * FONT / 72
    columns = max(1, min(len(names), int((WIDTH - 0.2) / widest)))
    figure.legend(handles, names, loc="outside upper center", ncols=columns)


def text_width(text: str) -> float:
    """Return the width of a text in inches, as drawn in FONT points."""
    return sum(_advance(char) for char in text.replace(r"\$", "$")) * FONT / 72


def note(figure: Figure, text: str) -> None:
    """Write a remark under the axes, such as how many rows are not shown; nothing if `text` is empty."""
    if text:
        figure.supxlabel(text, fontsize=FONT, color=GREY, style="italic")


def row_axis(axes: Any, names: Sequence[str]) -> None:
    """Make the vertical axis a list of names, the first on top."""
    axes.set_yticks(np.arange(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
