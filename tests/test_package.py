"""The package as others get it: light to import, complete as wheel and sdist, and set up as the Makefile says."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from bayes_gda._version import __version__

ROOT = Path(__file__).resolve().parents[1]
HEAVY = {"pymc", "pytensor", "arviz", "matplotlib", "sklearn", "pandas", "xarray", "scipy"}


def python(code, *, executable=sys.executable, cwd=None):
    done = subprocess.run([executable, "-c", code], capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_loads_nothing_heavy():
    loaded = python("import sys, bayes_gda; print(*{name.split('.')[0] for name in sys.modules})").split()
    assert not HEAVY & set(loaded)


def test_import_takes_less_than_three_tenths_of_a_second():
    """Timed inside the process, the best of five, so that a busy machine does not decide."""
    code = "import time; t = time.perf_counter(); import bayes_gda; print(time.perf_counter() - t)"
    assert min(float(python(code)) for _ in range(5)) < 0.3


# What scikit-learn's own base class imports, whoever asks for it: scipy.stats, pandas and what pandas finds (pyarrow).
SCIKIT_LEARN = "import sklearn.base"


@pytest.mark.parametrize(
    "name",
    ["BayesianLDA", "BayesianQDA", "BayesianLogisticRegression", "BayesianNaive", "BayesianStudent", "BayesianMixture"],
)
def test_importing_an_estimator_loads_no_library_but_what_scikit_learn_loads_itself(name):
    """Neither PyMC, ArviZ, Matplotlib, xarray nor h5py, and no heavier part of scikit-learn than its base."""
    listed = "\nimport sys; print(*sys.modules)"
    before = set(python(SCIKIT_LEARN + listed).split())
    after = set(python(f"from bayes_gda import {name}" + listed).split())
    more = {module for module in after - before if module.partition(".")[0] in HEAVY | {"pyarrow", "h5py", "polars"}}
    assert more <= {"sklearn.utils.multiclass", "sklearn.utils._unique"}


def test_no_family_is_imported_but_the_one_that_is_asked_for():
    loaded = python("from bayes_gda import BayesianLDA; import sys; print(*sys.modules)").split()
    others = ("linear", "mixed", "mixture", "student")
    assert not {name for name in loaded if name.startswith(tuple(f"bayes_gda.families.{other}" for other in others))}


def test_the_exact_posterior_needs_no_pymc():
    code = (
        "import sys, numpy as np, bayes_gda as bg\n"
        "from bayes_gda.families.gaussian.exact import qda_posterior\n"
        "m = bg.Moments.from_arrays(np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2, 2)\n"
        "qda_posterior(m, bg.NIW.default(m)).draw(5)\n"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    assert not {"pymc", "pytensor", "arviz", "matplotlib", "sklearn", "pandas"} & set(python(code).split())


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Wheel and sdist, built from a copy of what git tracks, as a fresh clone would be."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
    for name in filter(None, tracked):
        file, copy = ROOT / name, source / name
        if not (file.exists() or file.is_symlink()):
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.symlink_to(file.readlink()) if file.is_symlink() else copy.write_bytes(file.read_bytes())
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", out, source],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return next(out.glob("*.whl")), next(out.glob("*.tar.gz"))


def test_wheel_and_sdist_hold_every_module(built):
    wheel, sdist = built
    expected = {path.relative_to(ROOT).as_posix() for path in (ROOT / "bayes_gda").rglob("*.py")}
    expected |= {f"bayes_gda/models/{path.name}" for path in (ROOT / "models").glob("*.py")} | {"bayes_gda/py.typed"}
    names = set(zipfile.ZipFile(wheel).namelist())
    assert expected <= names
    assert not any(name.startswith(("tests/", "models/", "reports/")) for name in names)
    with tarfile.open(sdist) as archive:
        shipped = {name.partition("/")[2] for name in archive.getnames()}
    assert {"models/lda.py", "bayes_gda/data/moments.py", "LICENSE", "README.md", "CHANGELOG.md"} <= shipped
    assert not any(name.startswith(("tests/", "reports/")) for name in shipped)  # all tests or none: none


def test_a_clone_without_symlinks_works_on_the_path(tmp_path):
    """As Windows and `git -c core.symlinks=false clone` have it: the link is a file that names its target."""
    for name in ("bayes_gda", "models"):
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    link = tmp_path / "bayes_gda" / "models"
    link.unlink()
    link.write_text("../models")
    # Not the finder of an editable installation, which knows this clone.
    code = (
        "import sys; sys.meta_path = [f for f in sys.meta_path if 'Editable' not in str(f)]\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "import bayes_gda, bayes_gda.models; print(bayes_gda.__file__, bayes_gda.models.__file__)"
    )
    assert python(code, cwd=tmp_path).split() == [str(tmp_path / n / "__init__.py") for n in ("bayes_gda", "models")]


def install(wheel, where, *options):
    venv.EnvBuilder(with_pip=False).create(where)
    target = where / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", target, "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*command, *options, str(wheel)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return str(target)


SMOKE = (
    "import bayes_gda, bayes_gda.models.lda as lda, pathlib, sys\n"
    "assert pathlib.Path(sys.prefix) in pathlib.Path(lda.__file__).parents, lda.__file__\n"
    "data = bayes_gda.load_example('lda-mixture')\n"
    "print(type(lda.build(data)).__name__, bayes_gda.__version__)"
)


def test_the_wheel_installs_into_a_clean_environment_and_builds_a_model(built, tmp_path):
    """Our wheel in an environment of its own; what it depends on is lent by path, which runs no `.pth` of this one."""
    target = install(built[0], tmp_path / "clean", "--no-deps")
    packages = Path(python("import sysconfig; print(sysconfig.get_path('purelib'))", executable=target))
    (packages / "lent.pth").write_text(str(next(p for p in sys.path if p.endswith("site-packages"))))
    assert python(SMOKE, executable=target, cwd=tmp_path).startswith("SummedModel ")


@pytest.mark.slow
def test_the_wheel_installs_with_its_dependencies(built, tmp_path):
    target = install(built[0], tmp_path / "clean", "--constraint", str(ROOT / "constraints.txt"))
    assert python(SMOKE, executable=target, cwd=tmp_path).startswith("SummedModel ")


def test_constraints_are_plain_pins():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert len(lines) > 40
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+]+", line) for line in lines)


def test_find_python_refuses_an_old_one_and_says_what_to_do(tmp_path):
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    run = {"capture_output": True, "text": True, "check": False}
    chosen = subprocess.run([ROOT / ".ci/find-python"], env={"PATH": "/usr/bin:/bin", "PYTHON": str(old)}, **run)
    assert chosen.returncode == 1
    assert "is not a working Python >= 3.12" in chosen.stderr
    none = subprocess.run([ROOT / ".ci/find-python"], env={"PATH": str(tmp_path), "HOME": str(tmp_path)}, **run)
    assert none.returncode != 0


def test_find_python_looks_into_pyenvs_versions_folder(tmp_path):
    """A working Python hidden there is found although every name on PATH fails, as pyenv's shims do."""
    shims, hidden = tmp_path / "shims", tmp_path / ".pyenv/versions/3.13.9/bin"
    shims.mkdir()
    hidden.mkdir(parents=True)
    for name in ("python3.14", "python3.13", "python3.12", "python3"):
        (shims / name).write_text("#!/bin/sh\nexit 127\n")
        (shims / name).chmod(0o755)
    (hidden / "python").symlink_to(sys.executable)
    environment = {"PATH": f"{shims}:/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run([ROOT / ".ci/find-python"], env=environment, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()).exists()


def test_the_released_page_has_absolute_links(tmp_path):
    """The README is the package's page on an index, where relative links lead nowhere."""
    url = "https://example.org/us/bayes_gda"
    subprocess.run([sys.executable, ROOT / ".ci" / "stage-release", tmp_path / "stage", url], check=True)
    text = (tmp_path / "stage" / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 20
    assert all(link.startswith("https://") for link in links)
    ours = [link.partition(f"/v{__version__}/")[2] for link in links if link.startswith(url)]
    assert len(ours) > 15
    assert all((ROOT / path).exists() for path in ours)
    urls = tomllib.loads((tmp_path / "stage" / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    assert urls["Repository"] == url
    assert (tmp_path / "stage" / "bayes_gda" / "models").is_symlink()
