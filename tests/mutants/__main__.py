"""Put small faults into the numerical core, one at a time, and see whether a test fails: `make mutants`.

Which tests touch which line is found out first, so that a fault meets only the tests that can see it, the quickest
first. The sample is always the same, and larger ones contain smaller ones. What is done is kept in `.mutants`, by the
text of the fault and of its module and tests: a run may be stopped and taken up again, and what has not changed is not
tried again. In the end `.mutants/mutants.json` and `.mutants/mutants.md` say which survived; `survivors.toml`, beside
this file, says of some of them why they may.
"""

import argparse
import ast
import hashlib
import json
import os
import sys
import time
import tomllib
from pathlib import Path

import coverage
import pytest
from mutants.in_place import run_in_place
from mutants.named import NAMED, Named
from mutants.operators import Mutant, find_mutants, mutate
from mutants.running import ROOT, ending, import_libraries, in_child, run_tests
from mutants.subjects import SUBJECTS
from rich.console import Console

say = Console().print
FOLDER = ROOT / ".mutants"
REASONS = Path(__file__).with_name("survivors.toml")
# A fault may make its tests that many times as slow, and some seconds for the imports, before they are ended.
SLOWER, START = 6.0, 10.0
# Seconds for the tests of a fault that is listed by hand, and for those of a module without a fault.
LONGEST = 1200.0


def main() -> None:
    """Run what is asked for, and write the tables."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "modules", nargs="*", help="parts of paths of modules, in the order to try them; all by default"
    )
    parser.add_argument("--share", type=float, default=0.12, help="of all faults that are tried (default .12)")
    parser.add_argument("--minutes", type=float, default=55, help="stop after these (default 55)")
    parser.add_argument("--part", default="1/1", help="i/n: the i-th of n runs side by side")
    parser.add_argument("--no-named", action="store_true", help="leave out the faults that are listed by hand")
    parser.add_argument("--page", action="store_true", help="only write the tables of what is done")
    args = parser.parse_args()
    end = time.monotonic() + 60 * args.minutes
    FOLDER.mkdir(exist_ok=True)
    chosen = [*dict.fromkeys(m for part in args.modules or [""] for m in SUBJECTS if part in m)]
    i, n = map(int, args.part.split("/"))
    if not args.page:
        import_libraries()
        if i == 1 and not args.no_named:
            try_named([named for named in NAMED if named.module in chosen or not args.modules], end)
        for module in chosen[i - 1 :: n]:
            if time.monotonic() > end:
                say("The time is up; run it again to go on.")
                break
            try_module(module, args.share, end)
    write_page()


def try_named(faults: list[Named], end: float) -> None:
    """Try the faults that are listed by hand, where they or their tests have changed."""
    file = FOLDER / "by-hand.json"
    kept = json.loads(file.read_text()) if file.exists() else {"results": {}, "states": {}}
    for fault in faults:
        source = (ROOT / fault.module).read_text(encoding="utf-8")
        state = _state(fault.tests, source)
        if kept["states"].get(fault.name) == state or time.monotonic() > end:
            continue
        if fault.before not in source:
            say(f"{fault.name}: the line is no more")
            continue
        tree = ast.parse(source.replace(fault.before, fault.after))
        log = FOLDER / f"log-{os.getpid()}"
        how, seconds = in_child(lambda f=fault, t=tree: run_tests([*f.tests], fault=(f.module, t)), log, LONGEST)
        line = source[: source.index(fault.before)].count("\n") + 1
        kept["results"][fault.name] = {"how": ending(how), "line": line, "seconds": round(seconds, 1)}
        kept["states"][fault.name] = state
        file.write_text(json.dumps(kept))
        say(f"{fault.name}: {ending(how)}")


def try_module(module: str, share: float, end: float) -> None:
    """Try the sample of a module's faults, and keep what came of each."""
    source = (ROOT / module).read_text(encoding="utf-8")
    state = _state(SUBJECTS[module], source)
    sample = [m for m in find_mutants(module, source) if m.lot < share]
    file = FOLDER / f"{module.replace('/', '-')}.json"
    kept = json.loads(file.read_text()) if file.exists() else {}
    if kept.get("state") != state:
        kept = {"state": state, "tests": _tests_by_line(module, source), "results": {}}
        file.write_text(json.dumps(kept))
    if kept["tests"] is None:
        say(f"{module}: its tests fail without any fault")
        return
    results, seconds = kept["results"], kept["tests"]["seconds"]
    jobs = [(m, *_tests_of(m, source, kept["tests"])) for m in sample if m.name not in results]
    log = FOLDER / f"log-{os.getpid()}"

    def keep(mutant: Mutant, how: str, took: float, way: str) -> None:
        touched = next(names for m, names, _ in jobs if m.name == mutant.name)
        results[mutant.name] = {
            "how": how,
            "line": mutant.line,
            "tests": len(touched),
            "seconds": round(took, 2),
            "way": way,
        }
        file.write_text(json.dumps(kept))

    # The child writes what is done to the file, from which this process takes it up.
    quick = (job for job in jobs if job[1] and time.monotonic() < end)

    def done(mutant: Mutant, how: str, took: float) -> None:
        keep(mutant, how, took, "in place")

    if jobs and time.monotonic() < end:
        in_child(
            lambda: run_in_place(module, source, SUBJECTS[module], quick, done, log), log.with_suffix(".host"), 1e5
        )
        results |= json.loads(file.read_text())["results"]
    for mutant, names, limit in jobs:
        if results.get(mutant.name, {}).get("how") or time.monotonic() > end:
            continue
        if not names:
            keep(mutant, "survived", 0.0, "no test runs this line")
            continue
        fault = (module, mutate(source, mutant.number))
        how, took = in_child(lambda n=names, f=fault: run_tests(n, fault=f), log, limit + START)
        keep(mutant, ending(how), took, "process")
    file.write_text(json.dumps(kept))
    tried = [r for r in results.values() if r["how"]]
    died = sum(r["how"] != "survived" for r in tried)
    say(
        f"{module}: {died} of {len(tried)} died, {sum(r['seconds'] for r in tried):.0f} s; "
        f"its tests {sum(seconds.values()):.0f} s"
    )


def _tests_of(mutant: Mutant, source: str, tests: dict) -> tuple[list[str], float]:
    """Return the tests that run the statement of a fault, the quickest first, and the seconds that they may take.

    What runs when the module is imported, as constants do, concerns all of them. No tests: nothing runs the statement.
    """
    first, inside = mutant.line, False
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno
            if node.lineno <= mutant.line <= last:
                first = min(node.lineno, first)
            inside |= isinstance(node, ast.FunctionDef) and last < mutant.line <= node.end_lineno
    lines = tests["lines"]
    touched = {name for at in range(first, mutant.line + 1) for name in lines.get(str(at), [])}
    if not inside or touched == {""}:
        touched = {*tests["seconds"]}
    names = sorted(touched & {*tests["seconds"]}, key=lambda name: tests["seconds"][name])
    return names, START + SLOWER * sum(tests["seconds"][name] for name in names)


def _tests_by_line(module: str, source: str) -> dict | None:
    """Run a module's tests without a fault; return which touch each line, and their seconds; None if one fails."""
    stem = FOLDER / f"map-{os.getpid()}"
    rc, data, out = (stem.with_suffix(end) for end in (".rc", ".coverage", ".json"))
    rc.write_text(f"[run]\ndata_file = {data}\n")
    options = (
        f"--cov-config={rc}",
        f"--cov={module.removesuffix('.py').replace('/', '.')}",
        "--cov-context=test",
        "--cov-report=",
    )
    # A control, too: the module is made from its tree, as those with faults are.
    whole = (module, ast.parse(source))
    if in_child(lambda: _map(module, out, data, options, whole), stem.with_suffix(".log"), LONGEST)[0] != "0":
        return None
    tests = json.loads(out.read_text())
    for path in (rc, data, out):
        path.unlink(missing_ok=True)
    return tests


def _map(module: str, out: Path, data: Path, options: tuple[str, ...], whole: tuple[str, ast.Module]) -> int:
    seconds: dict[str, float] = {}

    class Clock:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            seconds[report.nodeid] = seconds.get(report.nodeid, 0.0) + report.duration

    code = run_tests([*SUBJECTS[module]], *options, fault=whole, plugins=(Clock(),))
    kept = coverage.CoverageData(str(data))
    kept.read()
    contexts = kept.contexts_by_lineno(str(ROOT / module))
    lines = {line: sorted({c.split("|")[0] for c in names}) for line, names in contexts.items()}
    out.write_text(json.dumps({"lines": lines, "seconds": seconds}))
    return code


def _state(tests: tuple[str, ...], source: str) -> str:
    """Return a checksum of a module and its tests."""
    paths = [ROOT / name for name in tests]
    files = [f for p in paths for f in (sorted(p.rglob("*.py")) if p.is_dir() else [p])]
    return hashlib.sha256(b"".join([source.encode(), *(f.read_bytes() for f in files)])).hexdigest()


def read_reasons() -> dict[str, str]:
    """Return the reasons why faults may live, by their names."""
    entries = tomllib.loads(REASONS.read_text(encoding="utf-8")).get("survivor", [])
    return {name: entry["reason"] for entry in entries for name in entry["mutants"]}


def write_page() -> None:
    """Write the tables of all that is done."""
    reasons = read_reasons()
    rows, survivors, totals = [], [], [0, 0, 0]
    for module in ("by hand", *SUBJECTS):
        file = FOLDER / f"{module.replace('/', '-').replace(' ', '-')}.json"
        if not file.exists():
            continue
        known = {fault.name for fault in NAMED}
        if module in SUBJECTS:
            known = {m.name for m in find_mutants(module, (ROOT / module).read_text(encoding="utf-8"))}
        results = json.loads(file.read_text())["results"]
        results = {name: r for name, r in results.items() if name in known and r["how"]}
        alive = {name: r for name, r in results.items() if r["how"] == "survived"}
        excused = sum(name in reasons for name in alive)
        rows.append((module, len(results), len(results) - len(alive), excused))
        survivors += [{"mutant": name, "line": r["line"], "reason": reasons.get(name, "")} for name, r in alive.items()]
        totals = [a + b for a, b in zip(totals, rows[-1][1:], strict=True)]
    tried, died, excused = totals
    share = died / max(tried - excused, 1)
    summary = {"tried": tried, "died": died, "harmless": excused, "share_of_meaningful": share}
    (FOLDER / "mutants.json").write_text(json.dumps({"summary": summary, "survivors": survivors}, indent=1))
    lines = [
        "# Mutants",
        "",
        f"{died} of {tried} faults were found out; {excused} survivors are harmless, for the reasons below: "
        f"{100 * share:.1f} % of those that mean something.",
        "",
        "| module | tried | died | harmless survivors |",
        "|---|---|---|---|",
        *(f"| {module} | {a} | {b} | {c} |" for module, a, b, c in rows),
        "",
        "## Survivors",
        "",
        *(f"- `{s['mutant']}` (line {s['line']}): {s['reason'] or '**no reason yet**'}" for s in survivors),
    ]
    (FOLDER / "mutants.md").write_text("\n".join(lines) + "\n")
    say(f"{died} of {tried} died, {excused} harmless; {FOLDER / 'mutants.md'}")


if __name__ == "__main__":
    sys.exit(main())
