"""Effective draws per second: same model, same priors, four chains on the same cores, by turns.

The first round compiles, into caches that were empty at the start, and gives the rate by wall clock; the rounds after
it give the rate of sampling alone.
"""

import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, suppress
from multiprocessing import get_context
from pathlib import Path

from benchmarks.record import Row, Session, Target, compared
from benchmarks.samplers import CHAINS, FORMULAS, SAMPLERS, TUNE, Job, Outcome, run_job

TITLE = "Sampling: effective draws per second"
READING = (
    "The smallest bulk effective sample size of all scalars, divided by seconds. “Sampling” counts warm-up and draws "
    "only; “wall clock” is the first call on that posterior, from data to draws, with its compilation but without "
    "imports. Every sampler began with an empty cache, and may reuse for the later posteriors what it compiled for the "
    "earlier ones, in the order of the table. PyMC, nutpie and NumPyro run the very model that ours runs; Bambi writes "
    "its own from a formula, with the same priors on the same standardised features. Its softmax has a reference class "
    "where ours is symmetric, so that on iris the two have different parameters, and each is judged by its own worst. "
    "NumPyro cannot tell its compilation from its sampling: the time of a run of two iterations is taken off."
)
TITLES = {
    "pima": "logistic, pima",
    "breast-cancer": "logistic, breast-cancer, N(0, 5²)",
    "iris": "softmax, iris",
    "qda": "QDA on moments, d = 4, K = 3, n = 1000",
    "qda-rowwise": "QDA row by row, d = 4, K = 3, n = 1000",
}
# Our samplers: PyMC's NUTS on hand-written densities, and split HMC.
OURS = ("bayes_gda", "bayes_gda hmc")
# Times another sampler's effective draws per second that we want to reach, by ours, the other, and the problem.
TARGETS = {
    ("bayes_gda", "PyMC"): {"pima": 2.0, "breast-cancer": 8.0, "qda": 10.0, "qda-rowwise": 100.0},
    ("bayes_gda hmc", "NumPyro"): {"pima": 1.5},
}
# A call that takes longer than this, in seconds, is given up, and its sampler has no further rows on that problem.
PATIENCE = 600.0
ROUNDS = 2
# A first call, compilation included, beyond this many seconds is repeated only once, to end within the hour.
SLOW = 30.0


def run(session: Session) -> None:
    """Sample every problem by every sampler, by turns."""
    draws, rounds = (50, 2) if session.quick else (1000, ROUNDS)
    tune = 100 if session.quick else TUNE
    cores = min(CHAINS, len(os.sched_getaffinity(0)))
    session.settings |= {"chains": CHAINS, "draws": draws, "tune": tune, "cores": cores, "rounds": rounds}
    with tempfile.TemporaryDirectory() as caches, ExitStack() as stack:
        workers = Workers(Path(caches), session)
        stack.callback(workers.close)
        for problem in TITLES:
            names = ["bayes_gda", "PyMC"] if problem == "qda-rowwise" else [*SAMPLERS]
            names = [name for name in names if name != "Bambi" or problem in FORMULAS]
            outcomes: dict[str, list[Outcome]] = {name: [] for name in names}
            for r in range(rounds):
                for name in [name for name in names if len(outcomes[name]) == r and not _slow(outcomes[name])]:
                    # Row by row plain PyMC is slow: a tenth of the draws. Effective draws per second do not mind.
                    short = problem == "qda-rowwise" and name != "bayes_gda" and not session.quick
                    job = Job(problem, 100 if short else draws, 200 if short else tune, cores, seed=r + 1)
                    outcome = workers.call(name, job)
                    if outcome is not None:
                        outcomes[name].append(outcome)
                        session.say(f"{problem}, {name}: {outcome}")
            for own in OURS:
                if own in outcomes:
                    _rows(session, problem, own, outcomes)


def _slow(outcomes: list[Outcome]) -> bool:
    return len(outcomes) > 1 and outcomes[0].wall > SLOW


class Workers:
    """One process a sampler, each with an empty cache of compiled code; started when first needed."""

    def __init__(self, caches: Path, session: Session) -> None:
        self.caches, self.session = caches, session
        self.pools: dict[str, ProcessPoolExecutor] = {}

    def call(self, name: str, job: Job) -> Outcome | None:
        """Run a job; None, with a note why, if the sampler fails or takes too long."""
        if name not in self.pools:
            self.pools[name] = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
            # The new process takes over the environment of this moment.
            os.environ |= {
                "PYTENSOR_FLAGS": f"base_compiledir={self.caches / name}",
                "NUMBA_CACHE_DIR": str(self.caches / f"{name}-numba"),
                "XLA_FLAGS": f"--xla_force_host_platform_device_count={CHAINS}",  # else NumPyro has one core
            }
        try:
            return self.pools[name].submit(run_job, name, job).result(timeout=PATIENCE)
        except TimeoutError:
            reason = f"given up after {PATIENCE:.0f} s"
            self._stop(name)
        except BrokenProcessPool:
            reason = "its process died"
            self._stop(name)
        except Exception as error:  # whatever another package raises is its result here
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        self.session.skip(f"{name} on {TITLES[job.problem]}, round {job.seed}: {reason}")
        return None

    def _stop(self, name: str) -> None:
        """End the process of one sampler, and what it started; a new one begins with the cache so far."""
        import psutil

        pool = self.pools.pop(name)
        for process in list((pool._processes or {}).values()):
            with suppress(psutil.NoSuchProcess):  # it may be the one that died
                parent = psutil.Process(process.pid)
                for child in [*parent.children(recursive=True), parent]:
                    child.kill()
        pool.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """End all."""
        for pool in self.pools.values():
            pool.shutdown()


def _rows(session: Session, problem: str, own: str, outcomes: dict[str, list[Outcome]]) -> None:
    """Compare one of ours with each other sampler: by wall clock in the first round, by sampling time in the others."""
    ours = outcomes[own]
    for name, theirs in outcomes.items():
        if name in OURS:
            continue
        for clock in ("sampling", "wall clock"):
            what = f"{TITLES[problem]}, {clock}"
            words = {"ours_name": own, "theirs_name": name, "unit": "ESS/s"}
            at = {"problem": problem, "clock": clock}
            if not ours or not theirs:
                best = _rates(ours, clock)
                session.add(Row(what, best[0] if best else None, None, at=at, note="did not finish", **words))
                continue
            wanted = TARGETS.get((own, name), {}).get(problem) if clock == "sampling" else None
            target = None if wanted is None else Target(wanted)
            pairs = list(zip(_rates(ours, clock), _rates(theirs, clock), strict=False))
            note = _not_converged({own: ours, name: theirs})
            session.add(
                compared(what, *zip(*pairs, strict=True), lower=False, target=target, at=at, note=note, **words)
            )


def _rates(outcomes: list[Outcome], clock: str) -> list[float]:
    if clock == "wall clock":
        return [x.ess / x.wall for x in outcomes[:1]]
    warm = outcomes[1:] or outcomes
    return [x.ess / x.sampling for x in warm]


def _not_converged(outcomes: dict[str, list[Outcome]]) -> str:
    # 1.01 is the threshold of Vehtari et al. (2021).
    worst = {name: max(x.largest_rhat for x in seen) for name, seen in outcomes.items()}
    return ", ".join(f"R-hat up to {value:.3f} by {name}" for name, value in worst.items() if value > 1.01)
