"""What was simulated so far: one file of JSON lines for each model and method.

The first line says what was asked; each further one is a simulation. Lines are appended whole, by one process, and one
that a crash cut short is dropped when the file is next opened: a run can be stopped at any time and taken up again.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from proof.methods import DRAWN
from proof.verdicts import Records


def open_file(path: Path, header: Mapping[str, Any], *, fresh: bool = False) -> set[int]:
    """Make the file ready for appending, and return the indices of the simulations that it has.

    Parameters
    ----------
    path
        The file; a new one is begun if there is none, or if it answers another question.
    header
        What is asked: model, method, seed, number of draws …
    fresh
        Whether to begin anew in any case.
    """
    lines = [] if fresh or not path.exists() else _whole_lines(path)
    if not lines or json.loads(lines[0]) != header:
        lines = [_line(header)]
    _write_whole(path, lines)
    return {json.loads(line)["index"] for line in lines[1:]}


def append(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Append simulations, in one write."""
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(_line(record) + "\n" for record in records))


def load(path: Path, *, most: int) -> tuple[Records, float]:
    """Return the simulations with an index below `most`, in order, and the seconds that they took."""
    header, *lines = (json.loads(line) for line in _whole_lines(path))
    done = {line["index"]: line for line in lines if line["index"] < most}
    ordered = [done[index] for index in sorted(done)]
    drawn = [line for line in ordered if line["outcome"] in DRAWN]
    ranks = np.array([line["ranks"] for line in drawn], dtype=np.int64).reshape(len(drawn), len(header["quantities"]))
    records = Records(
        header["model"],
        header["method"],
        header["setting"],
        tuple(header["quantities"]),
        ranks,
        tuple(line["outcome"] for line in ordered),
        tuple(line["effective"] for line in drawn if line["effective"] is not None),
    )
    return records, sum(line["seconds"] for line in ordered)


def write_json(path: Path, tree: Mapping[str, Any]) -> None:
    """Write values as JSON, whole or not at all."""
    _write_whole(path, [json.dumps(tree, ensure_ascii=False, separators=(",", ":"))])


def _whole_lines(path: Path) -> list[str]:
    """Return the lines that end as they should; after a crash the last one may not."""
    text = path.read_text(encoding="utf-8")
    return text[: text.rfind("\n") + 1].splitlines()


def _write_whole(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".tmp")
    draft.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    draft.replace(path)


def _line(tree: Mapping[str, Any]) -> str:
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":"))
