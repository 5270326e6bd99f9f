"""Options of a run in a file, TOML, with a section for each command: `--config` reads it, `--save-config` writes it.

    [fit]
    data = "births.csv"
    target = "low"
    model = "logistic"
    drop = ["id", "bwt"]

Keys are the names of the options, and of arguments in small letters. Paths are as one types them.
"""

import json
import tomllib
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import typer

from bayes_gda._version import __version__
from bayes_gda.cli import outputs
from bayes_gda.cli.shell import note
from bayes_gda.errors import DataError

# Options that are of one run only.
_OWN = ("config_", "save_config", "quiet", "verbose")


def use(ctx: typer.Context, value: str | None) -> str | None:
    """Make what a file says the defaults of a command."""
    if value is not None and not ctx.resilient_parsing:
        ctx.default_map = _values(value, ctx)
    return value


def prepare(path: str, ctx: typer.Context) -> str:
    """Return the text that `--save-config` writes, or raise if the file cannot be written."""
    command = str(ctx.info_name)
    given = {name: value for name, value in ctx.params.items() if name not in _OWN}
    inputs = [value for value in given.values() if isinstance(value, str)]
    outputs.check_file(path, inputs=inputs, stdout=False, option="--save-config")
    said = {name: value for name, value in given.items() if not (value is None or value is False or value in ([], ()))}
    lines = [f"{_key(name)} = {_toml(value)}" for name, value in said.items()]
    head = f"# bayes-gda {__version__}. Run again: bayes-gda {command} --config {json.dumps(path, ensure_ascii=False)}"
    return "\n".join([head, f"[{command}]", *lines]) + "\n"


def save(path: str | None, text: str | None) -> None:
    """Write what `prepare` returned, if it was asked for."""
    if path is not None and text is not None:
        outputs.write_text(path, text)
        note(f"Wrote {path}.")


def _key(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _toml(value: Any) -> str:
    """Return a value as TOML writes it; its basic strings are JSON's, but for one control character."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _values(path: str, ctx: typer.Context) -> dict[str, Any]:
    """Return the section of a command by the names of its parameters, each value as if it had been typed."""
    command, known = str(ctx.info_name), {_key(str(p.name)): p for p in ctx.command.params if p.name not in _OWN}
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"`--config` {path!r} is not valid TOML: {error}. Correct the file.") from None
    except OSError as error:
        raise DataError(f"Cannot read `--config` {path!r}: {error.strerror}. Check the path.") from None
    section = table.get(command)
    if not isinstance(section, Mapping):
        raise DataError(f"`--config` {path!r} has no section [{command}]; it has {', '.join(table) or 'nothing'}.")
    out: dict[str, Any] = {}
    for key, value in section.items():
        name = key.replace("_", "-")
        if name not in known:
            from bayes_gda.data.validate import columns_hint

            hint = columns_hint(name, known).replace("The columns are", "It knows")
            raise DataError(f"`--config` {path!r} has {key!r} in [{command}], which that command does not know.{hint}")
        parameter: Any = known[name]
        many = bool(getattr(parameter, "multiple", False)) or parameter.nargs != 1
        if isinstance(value, list) != many and (isinstance(value, list) or not isinstance(value, str)):
            raise DataError(f"`--config` {path!r}: {key!r} must be {'a list' if many else 'one value'}; got {value!r}.")
        cells = value if isinstance(value, list) else [value]
        if any(isinstance(cell, Mapping | list) for cell in cells):
            raise DataError(f"`--config` {path!r}: {key!r} must be text, a number or true; got {value!r}.")
        typed = [cell if isinstance(cell, bool) else str(cell) for cell in cells]
        out[str(parameter.name)] = typed if many else typed[0]
    return out
