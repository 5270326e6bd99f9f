"""The documentation's sources: every listed name exists once, and links lead somewhere.

`make docs` builds the pages, runs the tutorials and fails on warnings; this is what can be told without Sphinx.
"""

import importlib
import json
import re
from pathlib import Path

from bayes_gda import __version__

DOCS = Path(__file__).resolve().parents[1] / "docs"


def listed_names():
    """Names of the reference with the module that they are listed under."""
    module, found = "", []
    for line in (DOCS / "reference" / "index.md").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif re.fullmatch(r"   [A-Za-z_][\w.]*", line):
            found.append((module, line.strip()))
    return found


def test_every_listed_name_exists_and_every_public_name_is_listed():
    assert len(listed_names()) == len(set(listed_names())) > 80
    for home in ("bayes_gda", "bayes_gda.baselines", "bayes_gda.reporting.plots", "bayes_gda.validation"):
        listed = {name for module, name in listed_names() if module == home}
        assert set(importlib.import_module(home).__all__) - listed <= {"__version__"}
    for module, name in listed_names():
        *path, last = name.split(".")
        assert hasattr(importlib.import_module(".".join([module, *path])), last), f"{module}.{name}"


def test_links_lead_somewhere():
    for page in DOCS.rglob("*.md"):
        if {"_build", "generated"} & set(page.parts):
            continue
        text = page.read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)#]+\.(?:md|png))\)", text):
            assert (page.parent / link).is_file(), f"{page.name}: {link}"
        for link in re.findall(r'href="(reports/[^"]+)"', text):
            assert (DOCS.parent / link).is_file(), f"{page.name}: {link}"
        for entry in re.findall(r":::\{toctree\}\n(.*?):::", text, flags=re.DOTALL):
            for name in re.findall(r"^[\w./-]+$", entry, flags=re.MULTILINE):
                assert (page.parent / f"{name}.md").is_file(), f"{page.name}: {name}"


def test_pages_name_this_version():
    cite = (DOCS / "cite.md").read_text(encoding="utf-8")
    assert f"Version {__version__}." in cite
    assert f"version = {{{__version__}}}" in cite
    assert f"bayes_gda-{__version__}-py3-none-any.whl" in (DOCS / "install.md").read_text(encoding="utf-8")


def test_rates_of_false_verdicts_are_those_of_the_proof():
    proof = DOCS.parent / "reports" / "proof" / "verdict.json"
    rates = json.loads(proof.read_text(encoding="utf-8"))["summary"]["all"]
    page = " ".join((DOCS / "explanation" / "verdicts.md").read_text(encoding="utf-8").split())
    trusted, corrected = rates["trusted"], rates["corrected"]
    assert f"in {trusted['false']} of {trusted['of']} cases called `trusted`" in page
    assert f"in {corrected['false']} of {corrected['of']} called `corrected`" in page
    assert f"at most {100 * trusted['at_most']:.1f} % and {100 * corrected['at_most']:.1f} %" in page
