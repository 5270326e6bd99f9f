"""The page as Markdown: for a repository, a notebook or pandoc, from the one source that the page is.

Only what our page consists of is read: headings, paragraphs, lists, tables, code, figures. Panels that need a script
and the list of contents are left out; a figure becomes a link to its file.
"""

import re
from html.parser import HTMLParser

# Elements whose contents are not text of the report.
SKIPPED = frozenset({"script", "style", "title", "nav", "output", "select", "button"})
HEADINGS = {"h1": "# ", "h2": "## ", "h3": "### "}
BLOCKS = frozenset({*HEADINGS, "p", "li", "dt", "dd", "figcaption", "caption"})
VOID = frozenset({"img", "meta", "input", "br"})


def to_markdown(page: str) -> str:
    """Return the Markdown of a report's page."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    text = "\n\n".join(block for block in reader.blocks if block.strip())
    return re.sub(r"\n{3,}", "\n\n", text) + "\n"


class _Reader(HTMLParser):
    """Reads the page, and gathers blocks of Markdown in their order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[str] = []
        self._text: list[str] = []
        self._skipped: list[str] = []
        self._rows: list[list[str]] | None = None
        self._numeric: list[bool] = []
        self._code = False
        self._figure = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        style = given.get("class") or ""
        if self._skipped or tag in SKIPPED or "hidden" in given or style in ("note small-screen", "repeat"):
            if tag not in VOID:
                self._skipped.append(tag)
            return
        if tag in BLOCKS or tag == "pre":
            self._flush()
        elif tag == "span" and "".join(self._text).strip():
            self._text.append("; " if style == "formula" else " ")  # below or beside the last one on the page
        if tag == "pre":
            self._code = True
        elif tag == "table":
            self._rows = []
        elif tag == "tr" and self._rows is not None:
            self._rows.append([])
        elif tag in ("td", "th"):
            self._text = []
            if tag == "th":
                self._numeric.append("num" in (given.get("class") or ""))
        elif tag == "strong":
            self._text.append("**")
        elif tag == "figure":
            self._figure = (given.get("id") or "").removeprefix("figure-")
        elif tag == "img":
            self.blocks.append(f"![{_escaped(given.get('alt') or '')}](figures/{self._figure}.svg)")

    def handle_endtag(self, tag: str) -> None:
        if self._skipped:
            if tag == self._skipped[-1]:
                self._skipped.pop()
            return
        if tag in ("td", "th") and self._rows is not None:
            self._rows[-1].append(self._taken().replace("|", "\\|"))
        elif tag == "table":
            self._end_table()
        elif tag == "pre":
            self.blocks.append(f"```\n{''.join(self._text).strip()}\n```")
            self._text, self._code = [], False
        elif tag == "strong":
            self._text.append("**")
        elif tag == "figure":
            self._flush()
        elif tag in BLOCKS:
            self._end_block(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self._text.append(data if self._code else re.sub(r"\s+", " ", data))

    def _taken(self) -> str:
        text = re.sub(r"\s+", " ", "".join(self._text)).strip()
        self._text = []
        return _escaped(text)

    def _flush(self) -> None:
        if text := self._taken():
            self.blocks.append(text)

    def _end_block(self, tag: str) -> None:
        text = self._taken()
        if not text:
            return
        if tag in HEADINGS:
            self.blocks.append(HEADINGS[tag] + text)
        elif tag == "li":
            self.blocks.append(f"- {text}")
        elif tag == "dt":
            self.blocks.append(f"- {text}:")
        elif tag == "dd":
            self.blocks[-1] = f"{self.blocks[-1]} **{text}**"
        elif tag == "caption":
            self.blocks.append(f"**{text}**")
        else:
            self.blocks.append(text)

    def _end_table(self) -> None:
        rows, self._rows = [row for row in self._rows or [] if row], None
        numeric, self._numeric = self._numeric, []
        if rows:
            marks = ["---:" if number else "---" for number in numeric]
            lines = [rows[0], marks, *rows[1:]]
            self.blocks.append("\n".join(f"| {' | '.join(line)} |" for line in lines))


def _escaped(text: str) -> str:
    """Return text in which marks of Markdown are text; ** is ours."""
    return re.sub(r"([\\`_<>\[\]#])", r"\\\1", " ".join(text.split()))
