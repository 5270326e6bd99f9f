"""Commands in the pages: `import shell` in a hidden cell goes to a folder of its own, and shows what `%%bash` prints.

Jupyter's own `%%bash` asks for colours, and breaks lines where the output happened to be cut into pieces.
"""

import os
import subprocess
import tempfile

from IPython.core.getipython import get_ipython


def bash(line: str, cell: str) -> None:
    """Run a cell by bash, print its output, and raise if a command fails."""
    environment = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "CLICOLOR_FORCE")}
    environment |= {"COLUMNS": "88", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", cell],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print("\n".join(row.rstrip() for row in done.stdout.splitlines()))
    if done.returncode:
        raise RuntimeError(f"The commands ended with exit code {done.returncode}.")


os.chdir(tempfile.mkdtemp())
get_ipython().register_magic_function(bash, "cell", "bash")
