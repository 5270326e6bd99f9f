"""Sphinx settings of the documentation; `make docs` builds it with warnings as errors.

Nothing is loaded from a network when the pages are read: formulas are Unicode, as in the docstrings.
"""

import os
import re
import shutil
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# Tutorials are run by a kernel of this environment, in the repository, with one thread for each product.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # where pages find `shell`
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

from bayes_gda import __version__  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))
from check_examples import further_examples  # noqa: E402

project = "bayes_gda"
author = "The bayes_gda developers"
copyright = f"2026, {author}"
version = release = __version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_nb"]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]
# The first ending is that of the pages which autosummary generates.
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}
templates_path = ["_templates"]

# ── Pages ───────────────────────────────────────────────────────────────────────────────────────────────────────────
html_theme = "pydata_sphinx_theme"
html_title = "bayes_gda"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "use_edit_page_button": False,
    "navbar_persistent": [],
    "navbar_end": ["search-button", "theme-switcher"],
}
# Pages without pages below them: nothing would stand in the sidebar.
html_sidebars = {name: [] for name in ("index", "install", "gallery")}
html_show_sourcelink = False
html_copy_source = False

# ── Tutorials ───────────────────────────────────────────────────────────────────────────────────────────────────────
# Each is executed anew when its text or the package's code was changed; an error stops the build.
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_render_text_lexer = "none"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

# ── Reference ───────────────────────────────────────────────────────────────────────────────────────────────────────
autosummary_generate = True
autodoc_typehints = "none"  # signatures show them
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"  # the list of a page has no room for the name of the class before each method
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
default_role = "py:obj"

FURTHER = {name.rpartition(".")[2]: text for name, text in further_examples().items()}
_SECTION = re.compile(r"^-{3,}\s*$")
_CODE = re.compile(r"(``.*?``|`[^`]*`)")


def plain_text(line: str) -> str:
    """Escape what reStructuredText would take for markup in a sentence with formulas: |Σ|, x*, and a trailing _."""
    parts = _CODE.split(line)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"([|*])", r"\\\1", parts[i])
        parts[i] = re.sub(r"(?<=\w)_(?![\w])", r"\\_", parts[i])
    return "".join(parts)


def formulas(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Show the indented formulas of a docstring as they are written, and leave no accidental markup in sentences."""
    if what in ("class", "function") and name.rpartition(".")[2] in FURTHER and not any(">>>" in x for x in lines):
        example = dedent(FURTHER[name.rpartition(".")[2]]).strip().splitlines()
        lines += ["", "Examples", "--------", *example, ""]
    underlines = [i for i, line in enumerate(lines) if _SECTION.match(line)]
    first = underlines[0] - 1 if underlines else len(lines)
    out: list[str] = []
    # Examples are doctests: nothing in them is markup.
    examples = next((i for i, line in enumerate(lines) if line == "Examples"), len(lines))
    for i, line in enumerate(lines):
        opens = i < first and line.startswith(" ") and (i == 0 or not lines[i - 1].strip())
        inside = bool(out) and i < first and line.startswith(" ") and not opens
        if opens:
            out += ["::", ""]
        out.append(
            f"    {line}" if opens or inside else line if i >= examples or _SECTION.match(line) else plain_text(line)
        )
    lines[:] = out


def leave_out_inherited(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what estimators inherit from scikit-learn, whose documentation describes it."""
    routing = name == "get_metadata_routing" or re.fullmatch(r"set_\w+_request", name)
    return True if routing or str(getattr(obj, "__module__", "")).startswith("sklearn") else None


def copy_gallery(app: Any, error: Exception | None) -> None:
    """Put the committed reports beside the pages, which link to them."""
    if error is None and app.builder.name == "html":
        target = Path(app.outdir) / "reports"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(ROOT / "reports", target, ignore=shutil.ignore_patterns("cache", "*.json"))


def setup(app: Any) -> None:
    """Connect the functions above; docstrings before numpydoc, which has priority 500."""
    app.connect("autodoc-process-docstring", formulas, priority=400)
    app.connect("autodoc-skip-member", leave_out_inherited)
    app.connect("build-finished", copy_gallery)
