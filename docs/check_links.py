"""See that every link and every picture of the built pages leads somewhere, anchors included; part of `make docs`.

    python docs/check_links.py docs/_build/html

No page may load anything from another site. Links to other sites are not followed: pages are read, and built, offline.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Reports are checked by their own tests; here only that they are where the pages link to.
APART = ("reports", "_static", "_sources")


class Page(HTMLParser):
    """The links of a page, the names that can be linked to, and what the page loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take over what a tag links to, and its names."""
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.links.append(value)
                if name == "src" or tag == "link":
                    self.loaded.append(value)
            elif value and (name == "id" or (tag == "a" and name == "name")):
                self.anchors.add(value)


def broken_links(site: Path) -> list[str]:
    """Return every link of the pages below `site` that leads nowhere, with its page."""
    parsed: dict[Path, Page] = {}

    def page(path: Path) -> Page:
        if path not in parsed:
            parsed[path] = Page(path.read_text(encoding="utf-8"))
        return parsed[path]

    broken = []
    for path in sorted(site.rglob("*.html")):
        here = path.relative_to(site)
        if here.parts[0] in APART:
            continue
        broken += [f"{here}: {link} is of another site" for link in page(path).loaded if urlsplit(link).netloc]
        for link in page(path).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            if target.is_dir():
                target /= "index.html"
            wanted = unquote(parts.fragment)
            if not target.is_file():
                broken.append(f"{here}: {link} does not exist")
            elif wanted and target.suffix == ".html" and wanted not in page(target).anchors:
                broken.append(f"{here}: {link} has no such anchor")
    return broken


def main(site: str) -> int:
    """Print what is broken; return 1 if anything is."""
    broken = broken_links(Path(site).resolve())
    print(*broken, sep="\n", end="\n" if broken else "")
    print(f"{len(broken)} broken links")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
