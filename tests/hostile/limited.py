"""A piece of Python in a process of its own that can have only so much more memory than its imports take."""

import json
import subprocess
import sys
import textwrap

_BEFORE = """
import json, resource, sys, time
def run_limited(megabytes):
    pages = int(open("/proc/self/statm").read().split()[0])
    limit = pages * resource.getpagesize() + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
"""


def limited(imports, script, *args, megabytes=500, timeout=120):
    """Run imports, then the script under the limit; return the JSON of its last line of output.

    The script is killed at the end of its time: a test never waits for one that hangs.
    """
    code = _BEFORE + textwrap.dedent(imports) + f"\nrun_limited({megabytes})\n" + textwrap.dedent(script)
    done = subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])
