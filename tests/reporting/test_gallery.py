"""The gallery: its index says what the reports say, and what is committed is whole and small."""

import json
import re
import shutil
import subprocess
from pathlib import Path

from reporting.report_pages import report

from bayes_gda.reporting.gallery import EXAMPLES, write_index

REPORTS = Path(__file__).resolve().parents[2] / "reports"


def test_the_index_lists_every_report_with_its_lights(tmp_path):
    folder = tmp_path / "iris"
    folder.mkdir()
    source = report("iris")
    shutil.copy(source.folder / "report.json", folder)
    page = write_index(tmp_path, ["iris"]).read_text(encoding="utf-8")
    assert 'href="iris/index.html"' in page
    conclusions = json.loads((folder / "report.json").read_text(encoding="utf-8"))["conclusions"]
    lights = re.findall(r'<li><span class="(\w+)">', page)
    assert lights == [c["light"] for c in conclusions]
    assert "https://" not in page
    assert not list(tmp_path.glob("*.tmp"))


def test_the_committed_gallery_is_whole_and_small():
    page = (REPORTS / "index.html").read_text(encoding="utf-8")
    links = re.findall(r'<a [^>]*href="([^"]+)"', page)  # and not what the style sheet selects
    assert links == [f"{name}/index.html" for name in (*EXAMPLES, "textbook")]
    assert all((REPORTS / link).is_file() for link in links)
    tracked = subprocess.run(["git", "ls-files", "-z", "reports"], cwd=REPORTS.parent, capture_output=True, check=True)
    files = [REPORTS.parent / name.decode() for name in tracked.stdout.split(b"\0") if name]
    assert sum(file.stat().st_size for file in files) < 15e6
