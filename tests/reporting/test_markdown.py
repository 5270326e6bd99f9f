"""The page as Markdown says what the page says."""

import re

from reporting.report_pages import page, report

from bayes_gda.reporting.page.markdown import to_markdown


def text(name):
    return (report(name).folder / "report.md").read_text(encoding="utf-8")


def test_headings_and_conclusions_are_those_of_the_page():
    found, tree = text("pima"), report("pima").numbers
    for heading in ("Conclusions", "The data", "Performance", "Assumptions", "Decisions", "Reproduction"):
        assert f"\n## {heading}\n" in found
    assert "## Explore" not in found  # needs a script
    for line in tree["conclusions"]:
        assert line["topic"] in found
    assert "```\n" + tree["reproduce"]["command"] in found


def test_every_number_of_a_table_is_there():
    found = text("iris")
    tables = [block.splitlines() for block in found.split("\n\n") if block.startswith("| ")]
    assert len(tables) > 10
    for rows in tables:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
        assert re.fullmatch(r"\|( ---:? \|)+", rows[1])
    shown = re.sub(r"\s+", " ", found)
    for key, _, number in page("iris").numbers:
        if not key.startswith("explore."):
            assert number in shown, key


def test_figures_are_links_to_their_files():
    links = re.findall(r"^!\[.*\]\(figures/([\w-]+)\.svg\)$", text("pima"), re.MULTILINE)
    assert sorted(links) == sorted(f["name"] for f in report("pima").numbers["figures"])
    assert all((report("pima").folder / "figures" / f"{name}.svg").exists() for name in links)


def test_hostile_names_are_text():
    found = text("hostile")
    assert not re.search(r"(?<!\\)<script", found)
    assert not re.search(r"(?<!\\)<img", found)


def test_marks_in_names_are_escaped():
    made = to_markdown("<table><tr><th>a|b</th><th class='num'>n</th></tr><tr><td>x_y</td><td>1</td></tr></table>")
    assert made == "| a\\|b | n |\n| --- | ---: |\n| x\\_y | 1 |\n"
    assert to_markdown("<p>one <strong>two</strong></p><ul><li>three</li></ul>") == "one **two**\n\n- three\n"
