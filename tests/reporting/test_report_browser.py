"""The page in headless Chromium: no error, no request, nothing wider than the window, all figures whole, both schemes.

The page allows no scripts, so a test page puts it into a frame of the wanted width and measures it from outside.
"""

import html
import json
import re
import shutil
import subprocess

import pytest
from reporting.report_pages import report

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium")

MEASURE = """<!doctype html><html><body style="margin:0">
<iframe id="frame" style="border:0;width:{width}px;height:900px" srcdoc="{page}"></iframe>
<script>
addEventListener("load", () => {{
  const page = document.getElementById("frame").contentDocument, root = page.documentElement;
  const images = [...page.images].map(i => {{
    const box = i.getBoundingClientRect();
    return {{whole: i.complete && i.naturalWidth > 0, left: box.left, right: box.right, ratio: box.width / box.height,
             natural: i.naturalWidth / i.naturalHeight}};
  }});
  const wide = [...page.querySelectorAll("main *")].filter(e => !e.closest(".scroll") &&
    e.getBoundingClientRect().right > root.clientWidth + 1).map(e => e.tagName + "." + e.className);
  document.title = JSON.stringify({{client: root.clientWidth, scroll: root.scrollWidth, images, wide,
    paper: getComputedStyle(page.body).backgroundColor, ink: getComputedStyle(page.body).color,
    scripts: page.scripts.length, lights: page.querySelectorAll(".light").length}});
}});
</script></body></html>"""


def chromium(*options, profile):
    command = [
        CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
        "--disable-background-networking", "--enable-logging=stderr", f"--user-data-dir={profile}", *options,
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def measure(name, width, tmp_path, *options):
    source = html.escape(report(name).page.read_text(encoding="utf-8"))
    path = tmp_path / "measure.html"
    path.write_text(MEASURE.format(width=width, page=source), encoding="utf-8")
    answer = chromium("--window-size=1500,1000", "--dump-dom", *options, f"file://{path}", profile=tmp_path / "profile")
    return json.loads(html.unescape(re.search(r"<title>(.*?)</title>", answer.stdout, re.DOTALL)[1]))


@pytest.mark.parametrize("name", ["pima", "hostile"])
@pytest.mark.parametrize("width", [1400, 390])
def test_nothing_is_wider_than_the_window_and_no_figure_is_clipped(name, width, tmp_path):
    found = measure(name, width, tmp_path)
    assert found["client"] == width
    assert found["scroll"] <= width
    assert found["wide"] == []
    assert found["images"]
    for image in found["images"]:
        assert image["whole"]
        assert image["left"] >= 0
        assert image["right"] <= width
        assert image["ratio"] == pytest.approx(image["natural"], rel=0.02)
    assert found["scripts"] == 0
    assert found["lights"] == len(report(name).conclusions)


def test_light_and_dark_follow_the_system(tmp_path):
    light = measure("pima", 1400, tmp_path)
    dark = measure("pima", 1400, tmp_path, "--force-dark-mode")
    assert light["paper"] == "rgb(255, 255, 255)"
    assert max(map(int, re.findall(r"\d+", dark["paper"])[:3])) < 60
    assert min(map(int, re.findall(r"\d+", dark["ink"])[:3])) > 200


def opened(page, tmp_path):
    """Open a page from its file; return console messages, and addresses that the page, not the browser, asked for."""
    log, picture = tmp_path / "net.json", tmp_path / "page.png"
    answer = chromium(
        "--window-size=1400,1000",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--log-net-log={log}",
        f"--screenshot={picture}",
        f"file://{page}",
        profile=tmp_path / "profile",
    )
    assert picture.stat().st_size > 2_000
    events = json.loads(log.read_text(errors="replace"))["events"]
    started = [event.get("params", {}) for event in events]
    asked = {p["url"] for p in started if "url" in p and p.get("initiator", "not an origin") != "not an origin"}
    return [line for line in answer.stderr.splitlines() if "CONSOLE" in line], asked


def test_it_opens_from_a_file_without_an_error_or_a_request(tmp_path):
    console, asked = opened(report("hostile").page, tmp_path)
    assert console == []
    assert asked == set()


def test_the_test_above_would_see_an_error_and_a_request(tmp_path):
    page = tmp_path / "bad.html"
    page.write_text("<img src='http://example.invalid/x.png'><script>console.error('seen')</script>")
    console, asked = opened(page, tmp_path)
    assert any("seen" in line for line in console)
    assert asked == {"http://example.invalid/x.png"}
