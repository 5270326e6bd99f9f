"""Reports that several test files read, written once, and a reader of their pages."""

import atexit
import shutil
import tempfile
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from bayes_gda.data.examples import load_example, simulate_gaussian
from bayes_gda.data.table import Dataset
from bayes_gda.reporting.report import Report, ReportSettings, write_report

HOSTILE = (
    "<script>alert(1)</script>",
    "\"quotes\" 'and' `ticks` & <b>",
    "שלום עולם \u202emoc.elgoog",
    "😀😀 emoji 温度",
    "W" * 300,
    "{{ 7*7 }}{% raw %}",
    "</style></table><img src=x onerror=alert(2)>",
)
HOSTILE_CLASSES = ("</td><script>alert(3)</script>", "مرحبا" * 20, "K" * 300)


@cache
def folder() -> Path:
    path = Path(tempfile.mkdtemp(prefix="bayes-gda-reports-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@cache
def data(name: str) -> Dataset:
    if name == "hostile":
        means = np.random.default_rng(5).normal(size=(3, len(HOSTILE))) * 1.5
        drawn = simulate_gaussian(means, np.eye(len(HOSTILE)), counts=[40, 40, 40], random_seed=6)
        return Dataset(drawn.X * 1e5, drawn.y, HOSTILE, HOSTILE_CLASSES)
    if name == "pima":
        return load_example("pima").subset(np.arange(0, 532, 2))
    return load_example(name)


@cache
def report(name: str) -> Report:
    models = {"hostile": ("softmax",), "iris": ("qda", "naive", "rda"), "pima": ("lda", "logistic")}[name]
    costs = [[0, 5], [1, 0]] if name == "pima" else None
    settings = ReportSettings(quick=True, draws=250, models=models, costs=costs, data_name=f"example:{name}")
    title = '<b>Hostile</b> & "quoted"' if name == "hostile" else None
    return write_report(data(name), folder() / name, settings=settings, title=title)


class Page(HTMLParser):
    """What a test asks of a page: numbers by address, ids, links, sources, attributes and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.numbers: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self._open: dict[str, str | None] | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "data":
            self._open = dict(attrs)

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if self._open is not None:
            self.numbers.append((self._open["data-key"], self._open["data-kind"], data))
            self._open = None

    def attributes(self, name: str) -> list[str]:
        return [attrs[name] for _, attrs in self.tags if attrs.get(name) is not None]


@cache
def page(name: str) -> Page:
    return Page(report(name).page.read_text(encoding="utf-8"))
