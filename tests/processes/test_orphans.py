"""No chain outlives its parent, however that dies; and a signal that asks for an end leaves nothing half done."""

import os
import signal
import subprocess
import sys

import pytest
from running import children, end, is_alive, started, wait_until

from bayes_gda.reporting import report

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

# Chains that would go on for ever; or that have a result larger than a pipe for a parent that does not take it.
ENDLESS = """
    import time, sys
    from bayes_gda.processes import chains, forked

    start, kind = sys.argv[1:]
    if kind == "watched":  # a kernel that promises nothing
        forked.ctypes.CDLL = lambda name: object()
    if kind == "full":
        forked.Forked.collect = lambda self, results: bool(time.sleep(0.1))

    def work(chain, report):
        if kind == "full":
            return bytes(10**7)
        i = 0
        while True:
            i += 1
            report(i, 0)
            time.sleep(0.001)

    print("ready", flush=True)
    chains.run_chains(work, 4, iterations=10**9, cores=2, start=start)
"""
CASES = [("fork", "busy"), ("fork", "watched"), ("fork", "full"), ("fresh", "busy")]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize(("start", "kind"), CASES)
def test_chains_die_with_their_parent(start, kind, number):
    with started(ENDLESS, start, kind) as process:
        assert process.stdout.readline() == "ready\n"
        assert wait_until(lambda: len(children(process.pid)) == 2)
        chains = children(process.pid)
        try:
            process.send_signal(number)
            assert process.wait(timeout=30) == -number
            assert wait_until(lambda: not any(map(is_alive, chains))), "chains go on without their parent"
        finally:
            end(chains)


@pytest.mark.parametrize("start", ["fork", "fresh"])
def test_ctrl_c_twice_ends_the_chains(start, tmp_path):
    """Chains that never report do not stop when asked to: the second Ctrl-C kills them."""
    script = """
        import sys, time
        folder = sys.argv[2]
        from bayes_gda.processes.chains import run_chains
        def work(chain, report):
            open(f"{folder}/{chain}", "w").close()
            while True:
                time.sleep(0.01)
        run_chains(work, 2, iterations=1, cores=2, start=sys.argv[1])
    """
    with started(script, start, str(tmp_path)) as process:
        assert wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
        chains = children(process.pid)
        try:
            process.send_signal(signal.SIGINT)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=1)
            process.send_signal(signal.SIGINT)
            assert "KeyboardInterrupt" in process.communicate(timeout=30)[1]
            assert not any(map(is_alive, chains))
        finally:
            end(chains)


def test_a_terminated_report_leaves_no_draft(tmp_path):
    script = """
        import sys, time
        from pathlib import Path
        from bayes_gda.reporting.page.replacing import replaced
        with replaced(Path(sys.argv[1])) as new:
            (new / "page").write_text("half")
            print("ready", flush=True)
            while True:  # a signal between Python's last look and a long sleep would wait for its end
                time.sleep(0.01)
    """
    with started(script, str(tmp_path / "rep")) as process:
        assert process.stdout.readline() == "ready\n"
        assert [p.name.startswith(".rep-") for p in tmp_path.iterdir()] == [True]
        process.terminate()
        assert process.wait(timeout=30) == 128 + signal.SIGTERM
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_processes_that_draw_figures_die_with_their_parent(number, tmp_path):
    script = """
        import sys, time
        from pathlib import Path
        from types import SimpleNamespace
        from bayes_gda.reporting import report
        from bayes_gda.reporting.page import figures

        def draw():
            while True:
                time.sleep(0.01)

        words = {"section": "", "title": "", "draw": draw}
        figures.figures = lambda analysis: [SimpleNamespace(name=f"f{i}", **words) for i in range(8)]
        print("ready", flush=True)
        report._draw(None, {}, Path(sys.argv[1]))
    """
    with started(script, str(tmp_path / "figures")) as process:
        assert process.stdout.readline() == "ready\n"
        assert wait_until(lambda: len(children(process.pid)) == min(report.PARTS, os.cpu_count()))
        drawing = children(process.pid)
        try:
            process.send_signal(number)
            assert process.wait(timeout=30) == -number
            assert wait_until(lambda: not any(map(is_alive, drawing))), "figures are drawn on without their parent"
        finally:
            end(drawing)
