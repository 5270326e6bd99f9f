"""From a CSV file to the first posterior summary: a fresh process, by wall clock, imports and compilation included."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from textwrap import dedent

import numpy as np

from bayes_gda.data.examples import load_example
from benchmarks.record import Row, Session, Target, compared

TITLE = "From a CSV file to the first posterior"
READING = (
    "Wall clock of a fresh Python process that reads pima from a CSV file and prints means and standard deviations of "
    "the parameters. “Cold” has an empty home folder, so that nothing is compiled yet; “warm” runs again with what the "
    "first run left behind. The files of the packages themselves are in the system's cache in both. Four chains of a "
    "thousand draws wherever there is sampling."
)
SCRIPTS = {
    "LDA, exact": """
        from bayes_gda import BayesianLDA, read_table
        data = read_table("pima.csv", target="type")
        print(BayesianLDA().fit(data.X, data.y).summary())
        """,
    "logistic, Laplace checked": """
        from bayes_gda import BayesianLogisticRegression, read_table
        data = read_table("pima.csv", target="type")
        print(BayesianLogisticRegression(inference="laplace").fit(data.X, data.y).summary())
        """,
    "logistic, MCMC": """
        from bayes_gda import BayesianLogisticRegression, read_table
        if __name__ == "__main__":
            data = read_table("pima.csv", target="type")
            print(BayesianLogisticRegression(inference="mcmc").fit(data.X, data.y).summary())
        """,
    "PyMC": """
        import arviz_stats as azs
        import pandas as pd
        import pymc as pm
        if __name__ == "__main__":
            table = pd.read_csv("pima.csv")
            y = (table.pop("type") == "Yes").to_numpy().astype(int)
            X = ((table - table.mean()) / table.std()).to_numpy()
            with pm.Model():
                b = pm.Normal("b", 0, 5)
                w = pm.Normal("w", 0, 2.5, shape=X.shape[1])
                pm.Bernoulli("y", logit_p=b + X @ w, observed=y)
                tree = pm.sample(chains=4, nuts_sampler="pymc", progressbar=False, random_seed=1)
            print(azs.summary(tree))
        """,
    "Bambi": """
        import arviz_stats as azs
        import bambi as bmb
        import pandas as pd
        if __name__ == "__main__":
            table = pd.read_csv("pima.csv")
            y = table.pop("type")
            table = (table - table.mean()) / table.std()
            columns = list(table)
            priors = {c: bmb.Prior("Normal", mu=0, sigma=2.5) for c in columns}
            priors["Intercept"] = bmb.Prior("Normal", mu=0, sigma=5)
            table["y"] = (y == "Yes").astype(int)
            model = bmb.Model("y ~ " + " + ".join(columns), table, family="bernoulli", priors=priors)
            print(azs.summary(model.fit(chains=4, progressbar=False, random_seed=1)))
        """,
}
# The command line takes the place of a script: it chooses the method and saves the model.
COMMAND = "bayes-gda fit, auto"
THEIRS = ("PyMC", "Bambi")
# Above this many seconds a process is given up.
PATIENCE = 240.0
# Arrays to a corrected posterior, without PyMC: its seconds, effective draws, and whether PyMC was imported.
ARRAYS = """
    import sys, time
    import numpy as np
    from bayes_gda.data.examples import load_example
    from bayes_gda.families.linear.logistic import LogisticTarget
    from bayes_gda.priors import Normal
    from bayes_gda.families.linear.mode import regression_laplace
    from bayes_gda.methods.skew import lindley_mean
    from bayes_gda.methods.importance.trust import assess
    data = load_example("pima")
    X, y = np.array(data.X), np.array(data.y)
    start = time.perf_counter()
    target = LogisticTarget(np.column_stack([np.ones(len(X)), X]), y, Normal(scale=np.sqrt(10)))
    posterior = regression_laplace(target)
    weighted = assess(target, posterior, mean=lindley_mean(posterior, target)).importance
    seconds = time.perf_counter() - start
    print(seconds, weighted.corrected_ess_fraction * len(weighted.draws), int("pymc" in sys.modules))
    """


def run(session: Session) -> None:
    """Run every script cold and then warm, by turns."""
    cold, warm = (1, 1) if session.quick else (1, 3)  # a cold run of PyMC or Bambi compiles for a minute or more
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _write(folder)
        names = [*(name for name in SCRIPTS if name not in THEIRS), COMMAND, *THEIRS]
        if session.quick:
            names.remove("Bambi")
        seconds: dict[str, dict[str, list[float]]] = {state: {n: [] for n in names} for state in ("cold", "warm")}
        for r in range(cold + warm):
            for name in names:
                home = folder / f"home-{names.index(name)}-{min(r, cold - 1)}"
                taken = _process(session, _words(name), folder, home)
                if taken is not None:
                    session.say(f"{name}: {taken:.1f} s")
                    seconds["cold" if r < cold else "warm"][name].append(taken)
        for state in seconds:
            _rows(session, state, seconds[state])
        _arrays(session, folder, 1 if session.quick else 5)
    session.settings |= {"data": "pima", "rounds_cold": cold, "rounds_warm": warm, "chains": 4, "draws": 1000}


def _write(folder: Path) -> None:
    """Write the table and the scripts."""
    import pandas as pd

    data = load_example("pima")
    table = pd.DataFrame(data.X, columns=list(data.feature_names))
    table["type"] = np.array(data.class_names)[data.y]
    table.to_csv(folder / "pima.csv", index=False)
    for name, text in SCRIPTS.items():
        (folder / _file(name)).write_text(dedent(text), encoding="utf-8")


def _file(name: str) -> str:
    return f"script_{''.join(c for c in name.lower() if c.isalnum())}.py"


def _words(name: str) -> list[str]:
    if name == COMMAND:
        words = ["fit", "pima.csv", "--target", "type", "--model", "logistic", "--out", "model.nc"]
        return [sys.executable, "-m", "bayes_gda.cli", *words]
    return [sys.executable, _file(name)]


def _process(session: Session, words: list[str], folder: Path, home: Path) -> float | None:
    """Seconds of a process whose caches are in `home`; None, with a note, if it fails."""
    home.mkdir(exist_ok=True)
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTENSOR_FLAGS", "PYTHONPATH")}
    environment |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "MPLCONFIGDIR": str(home / ".mpl")}
    start = time.perf_counter()
    try:
        subprocess.run(words, cwd=folder, env=environment, check=True, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        session.skip(f"{words[-1]}: given up after {PATIENCE:.0f} s")
        return None
    except subprocess.CalledProcessError as error:
        session.skip(f"{words[-1]}: {(error.stderr.strip().splitlines() or ['failed'])[-1][:200]}")
        return None
    return time.perf_counter() - start


def _rows(session: Session, state: str, seconds: dict[str, list[float]]) -> None:
    for ours in (name for name in seconds if name not in THEIRS):
        for theirs in (name for name in seconds if name in THEIRS):
            words = {"ours_name": ours, "theirs_name": f"{theirs} script", "at": {"state": state}}
            what = f"CSV to first posterior, {state}"
            pairs = list(zip(seconds[ours], seconds[theirs], strict=False))
            if pairs:
                session.add(compared(what, *zip(*pairs, strict=True), **words))
            else:
                session.add(Row(what, None, None, note="did not finish", **words))


def _arrays(session: Session, folder: Path, rounds: int) -> None:
    """At least 3000 effective draws of pima in under half a second, without PyMC."""
    lines = [
        subprocess.run(
            [sys.executable, "-c", dedent(ARRAYS)], cwd=folder, check=True, capture_output=True, text=True
        ).stdout.split()
        for _ in range(rounds)
    ]
    seconds, effective, pymc = (np.array(lines, dtype=float)).T
    if pymc.any():
        raise RuntimeError("PyMC was imported on the way from arrays to a corrected posterior; nothing there needs it.")
    words = {"theirs_name": "–", "rival": False, "rounds": rounds}
    what = "pima, arrays to a corrected posterior without PyMC, first call"
    name = "Laplace, Lindley, weighted"
    session.add(
        Row(what, float(np.median(seconds)), None, name, target=Target(0.5, of="ours", at_least=False), **words)
    )
    session.add(Row(what, float(np.median(effective)), None, name, unit="ESS", target=Target(3000, of="ours"), **words))
