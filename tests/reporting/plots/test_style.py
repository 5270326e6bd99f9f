"""Names of any kind become text that can be drawn; every plot is readable, described in words and reproducible."""

import re
from itertools import combinations
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.textpath import TextPath
from reporting.plots import scenes
from reporting.plots.scenes import EACH, LATER, SCENES, scene, texts

from bayes_gda.errors import DataError
from bayes_gda.processes.chains import run_chains
from bayes_gda.reporting import plots
from bayes_gda.reporting.page.rendering import data_uri
from bayes_gda.reporting.plots import style
from bayes_gda.reporting.plots.style import (
    CLASS_COLORS,
    METHODS,
    Plot,
    class_style,
    drawn,
    labels,
    legend,
    listing,
    method_styles,
    new_figure,
    plain,
    save,
    styled,
    text_width,
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("glu", "glu"),
        (3, "3"),
        ("a\nb\t c\x00", "a b c"),
        ("abc\u202edef", "abcdef"),
        ("   ", "(blank)"),
        ("e" + "\u0316" * 50, "e\u0316\u0316"),
        ("x" * 30, "x" * 16 + "…" + "x" * 7),
        ("petal length of the flower (cm)", "petal length of…er (cm)"),
    ],
)
def test_names_in_sentences(name, text):
    assert plain(name) == text
    assert len(plain(name)) <= 24


def test_formulas_and_missing_letters_are_not_drawn():
    assert drawn("$x^2$ 温") == r"\$x^2\$ □"
    assert drawn("k̂ ≥ ½ … שלום") == "k̂ ≥ ½ … שלום"


def test_labels_differ_even_if_names_are_cut_to_the_same_text():
    names = ["W" * 300, "W" * 299 + "V", "W" * 301, "温", "度", "plain"]
    texts = labels(names)
    assert len(set(texts)) == len(names)
    assert texts[-1] == "plain"
    assert texts[3:5] == ["□ (4)", "□ (5)"]


@pytest.mark.parametrize("inches", [0.8, 1.5, 3.0])
def test_labels_fit_their_room(inches):
    for text in labels(["W" * 300, "i" * 300, "$" * 40, "W" * 301], 60, inches=inches):
        assert text_width(text) <= inches


@pytest.mark.parametrize("text", ["WWWW iii", "mu[setosa, petal width (cm)]", "Größe ≤ 5"])
def test_widths_are_those_of_matplotlib(text):
    """Advances have a little air on both sides of a letter, outlines do not."""
    outline = TextPath((0, 0), text, size=8, prop=mpl.font_manager.FontProperties(family="DejaVu Sans"))
    assert text_width(text) == pytest.approx(outline.get_extents().width / 72, rel=0.04)


def test_listing_counts_the_rest():
    assert listing(["a", "b", "c", "d", "e"], 3) == "a, b, c and 2 more"


def test_colours_of_methods_are_fixed_and_different():
    assert method_styles(["laplace", "exact"])["exact"] == METHODS["exact"]
    assert method_styles(["Skew_Modal"])["Skew_Modal"] == METHODS["skew-modal"]
    both = method_styles(["mine", "yours", "mcmc", "laplace", "corrected", "probit", "skew-modal", "exact"])
    assert len({color for color, _ in both.values()}) == 8
    # Those that stand in one figure: of a logistic regression, and of a softmax regression.
    for better in ("ep", "variational"):
        beside = method_styles([better, "laplace", "skew-modal", "corrected", "mcmc", "probit", "exact"])
        assert len({color for color, _ in beside.values()}) == 7


def test_classes_are_told_apart_by_colour_and_marker():
    assert len({class_style(k) for k in range(100)}) == 100


def luminance(color):
    rgb = np.array(mpl.colors.to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_colours_stand_out_from_the_page():
    """A contrast of 2 on white at least, by the definition of WCAG; yellow has 1.3."""
    for color in (*CLASS_COLORS, *(color for color, _ in METHODS.values())):
        assert 1.05 / (luminance(color) + 0.05) > 2


@styled
def sample(many=3):
    figure, [[axes]] = new_figure(2.5)
    handles = [axes.plot([0, k], [1, 2])[0] for k in range(many)]
    legend(figure, handles, [f"name {k}" for k in range(many)])
    return Plot(figure, "A caption.", "An alt text with < and &.")


def test_the_users_settings_neither_matter_nor_change(tmp_path):
    plain_bytes = save(sample(), tmp_path / "a.svg").read_bytes()
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "black", "svg.hashsalt": None, "savefig.dpi": 50}):
        before = dict(mpl.rcParams)
        other = save(sample(), tmp_path / "b.svg").read_bytes()
        assert dict(mpl.rcParams) == before
    assert plain_bytes == other
    assert b"&lt; and &amp;" in other


def test_marks_that_share_the_description_of_their_look_look_as_before(tmp_path):
    def marks(svg):
        """What is drawn: outlines, whatever name they are referred to by, with their places and looks."""
        found, root = [], ElementTree.fromstring(svg)
        shapes = {f"#{element.get('id')}": element for element in root.iter() if element.get("id")}

        def walk(element, look):
            look = element.get("style", look)
            if element.tag.endswith("}use") and element.get("x"):
                place = [round(float(element.get(axis)), 2) for axis in "xy"]
                shape = shapes[element.get("{http://www.w3.org/1999/xlink}href", element.get("href"))]
                outline = [round(float(number), 2) for number in re.findall(r"-?[\d.]+", shape.get("d"))]
                found.append((outline, *place, look.replace(" ", "")))
            for child in element:
                walk(child, look)

        walk(root, "")
        return found

    plot = sample()
    [axes] = plot.figure.axes
    axes.scatter([0.1, 0.2, 0.3, 0.4], [1, 2, 1, 2], s=9, alpha=0.5, c=["#d55e00", "#d55e00", "#0072b2", "#0072b2"])
    axes.plot([0.5, 1.5, 1.6], [1, 1.5, 1], "o", alpha=0.5)
    saved = save(plot, tmp_path / "a.svg").read_bytes()
    with mpl.rc_context({"svg.hashsalt": "bayes_gda"}):
        plot.figure.savefig(tmp_path / "b.svg", metadata={"Date": None, "Creator": None})
    before = marks((tmp_path / "b.svg").read_bytes())
    assert len(before) > 7
    assert marks(saved) == before
    assert marks(unquote(data_uri(saved).partition(",")[2])) == before
    assert saved.count(b"style=") < (tmp_path / "b.svg").read_bytes().count(b"style=")


def test_pyplot_knows_nothing_of_our_figures():
    import matplotlib.pyplot as plt

    sample()
    assert plt.get_fignums() == []


def test_threads_do_not_disturb_each_other(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        files = list(pool.map(lambda i: save(sample(), tmp_path / f"{i}.svg").read_bytes(), range(4)))
    assert len(set(files)) == 1


def test_long_legends_count_what_they_leave_out():
    [shown] = sample(40).figure.legends
    texts = [text.get_text() for text in shown.get_texts()]
    assert len(texts) == 15
    assert texts[-1] == "and 26 more"


def test_processes_forked_while_the_font_is_open_read_the_right_letters():
    """FreeType reads letters from its file as they come; two processes with one file would read each other's."""
    letters = [chr(code) for code in sorted(style._glyphs())[200:1700]]
    style.text_width("x")  # opens the font here, before the fork

    def widths(chain, report):
        style._advance.cache_clear()
        return [style.text_width(letter) for letter in letters]

    first, second = run_chains(widths, 2, iterations=1, cores=2)
    assert first == second == [style.text_width(letter) for letter in letters]


# ── What holds for every plot ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", EACH)
def test_text_is_readable(name):
    plot = scene(name)
    drawn_texts = texts(plot.figure)
    width, height = plot.figure.bbox.size
    assert drawn_texts
    assert plot.figure.get_size_inches()[0] == 7.2
    for text, box in drawn_texts:
        assert text.get_fontsize() >= 8, text
        assert box.x0 >= -1, text
        assert box.y0 >= -1, text
        assert box.x1 <= width + 1, text
        assert box.y1 <= height + 1, text
    for (a, box), (b, other) in combinations(drawn_texts, 2):
        # A pixel of shared margin is not seen.
        overlap_x = min(box.x1, other.x1) - max(box.x0, other.x0)
        overlap_y = min(box.y1, other.y1) - max(box.y0, other.y0)
        assert overlap_x <= 1 or overlap_y <= 1, f"{a.get_text()!r} lies on {b.get_text()!r}"


@pytest.mark.parametrize("name", EACH)
def test_data_keep_their_room(name):
    """Legends and labels must not squeeze the axes away."""
    figure = scene(name).figure
    boxes = [
        axes.get_position() for axes in figure.axes if axes.axison or axes.name == "3d"
    ]  # which has its own switch
    width, height = figure.get_size_inches()
    assert min(box.width * width for box in boxes) > 1.1
    assert min(box.height * height for box in boxes) > 0.3
    assert sum(box.width * box.height for box in boxes) > 0.25


@pytest.mark.parametrize("name", EACH)
def test_words_are_sentences(name):
    plot = scene(name)
    for words in (plot.caption, plot.alt):
        assert words.endswith(".")
        assert ".." not in words
        assert not re.search(r"\bnan\b", words)
        assert not any(ord(char) < 32 or char == "\u202e" for char in words)
    assert any(char.isdigit() for char in plot.alt) or name.startswith("densities")
    assert len(plot.alt) < 600


@pytest.mark.parametrize(
    ("name", "kind"),
    [("regions-iris", "svg"), ("pair-hostile", "svg"), ("pareto-k", "png"), ("separation-pima", "svg")],
)
def test_files_are_the_same_byte_for_byte(name, kind, tmp_path):
    a, b = (
        plots.save(plot, tmp_path / f"{i}.{kind}").read_bytes() for i, plot in enumerate((scene(name), SCENES[name]()))
    )
    assert a == b
    # A report holds some thirty of them.
    assert 1000 < len(a) < 400_000


def test_every_plot_has_a_scene():
    """A plot that is added must be drawn too."""
    used = set(re.findall(r"plots\.(plot_\w+)", Path(scenes.__file__).read_text(encoding="utf-8")))
    assert {name for name in plots.__all__ if name.startswith("plot_")} <= used
    assert set(SCENES) > LATER


def test_other_endings_are_refused():
    with pytest.raises(DataError, match=r"must end in \.svg or \.png"):
        plots.save(scene("pareto-k"), "figure.pdf")


def test_a_plot_shows_itself_in_a_notebook():
    image = sample()._repr_png_()
    assert image.startswith(b"\x89PNG")
    assert image == sample()._repr_png_()
