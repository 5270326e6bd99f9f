"""report.json follows the schema that is shipped and documented; numbers of the page stand in it."""

import copy
import html
import json
import re

import jsonschema
import pytest
from reporting.report_pages import report

from bayes_gda.reporting.page.content import SCHEMA_VERSION
from bayes_gda.reporting.page.rendering import number, report_schema

NAMES = ("iris", "pima", "hostile")


def numbers(tree):
    """Every number of a tree."""
    if isinstance(tree, dict | list):
        for inner in tree.values() if isinstance(tree, dict) else tree:
            yield from numbers(inner)
    elif isinstance(tree, int | float) and not isinstance(tree, bool):
        yield tree


@pytest.mark.parametrize("name", NAMES)
def test_reports_follow_the_schema(name):
    tree = json.loads((report(name).folder / "report.json").read_text(encoding="utf-8"))
    schema = report_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(tree, schema)
    assert set(tree) == set(schema["properties"])
    assert tree["schema_version"] == SCHEMA_VERSION == schema["properties"]["schema_version"]["const"]


def test_the_schema_refuses_what_is_none():
    tree, schema = report("pima").numbers, report_schema()
    for change in (
        lambda t: t.pop("comparison"),
        lambda t: t["comparison"]["loo"][0].update(elpd="-12"),
        lambda t: t["conclusions"][0].update(light="blue"),
        lambda t: t.update(schema_version=SCHEMA_VERSION + 1),
    ):
        other = copy.deepcopy(tree)
        change(other)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(other, schema)


@pytest.mark.parametrize("name", NAMES)
def test_every_number_in_a_table_cell_stands_in_the_file(name):
    """Read off the page without its addresses: whatever a cell shows is some number of the file, rounded so."""
    page = (report(name).folder / "index.html").read_text(encoding="utf-8")
    tree = json.loads((report(name).folder / "report.json").read_text(encoding="utf-8"))
    kinds = set(re.findall(r'data-kind="(\w+)"', page))
    known = {number(x, kind) for x in numbers(tree) for kind in kinds}
    cells = re.findall(r'<td class="num"><data[^>]*>([^<]*)</data></td>', page)
    assert len(cells) > 100
    assert {html.unescape(cell) for cell in cells if cell != "–"} <= known
