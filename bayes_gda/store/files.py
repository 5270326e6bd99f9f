"""One file for one model: written whole or not at all, and read only if every byte is as it was written.

    file  =  netCDF-4 (HDF5)  ‖  seal,      seal  =  format version and SHA-256 of all that stands before

HDF5 ignores what follows its own end, so that `xarray.open_datatree` and ArviZ open the file as it is. The seal is
looked at before HDF5 is: a file that is cut short, damaged, foreign or too new never reaches the parser. It guards
against accidents, not against forgery: whoever can edit a file can seal it again. What a forged file could do is
bounded by `guard`, which looks at the structure before a value is read.
"""

import hashlib
import io
import os
import re
import secrets
import shutil
import stat
import sys
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from bayes_gda._version import __version__
from bayes_gda.errors import StoreError
from bayes_gda.store.guard import check_heaps, check_structure

if TYPE_CHECKING:
    import xarray as xr

# The format that is written; older ones are still read (`formats`).
FORMAT = 3
# The layout of the seal is the same in every format, so that an old reader can name a new file's version.
_SEAL = "\nbayes_gda model, format {:04d}\nsha256 {}\n"
_SEAL_LENGTH = len(_SEAL.format(0, "0" * 64))
_SEALED = re.compile(rb"\nbayes_gda model, format (\d{4})\nsha256 ([0-9a-f]{64})\n")
_HDF5 = b"\x89HDF\r\n\x1a\n"
# Bytes hashed at a time: large enough to be fast, small beside any posterior.
_BLOCK = 1 << 20

RESTORE = "Restore it from a copy, or fit and save the model again."


def write(path: str | os.PathLike[str], tree: "xr.DataTree", *, version: int = FORMAT) -> None:
    """Write a tree to `path`, atomically: until the last step the old file stands untouched.

    Parameters
    ----------
    path
        Where to; a link is followed, and a file that is there is replaced.
    tree
        Groups of named arrays with attributes of text and numbers.
    version
        Format version that the seal states.
    """
    # HDF5 writes to memory and Python to the disk: a full disk in the middle of HDF5's own write leaves the library
    # with an open file that it can neither finish nor close.
    memory = io.BytesIO()
    with _here():
        tree.to_netcdf(memory, engine="h5netcdf")
    body = memory.getvalue()
    draft: Path | None = None
    try:
        target = Path(os.path.realpath(os.fspath(path)))
        draft = target.parent / f".{secrets.token_hex(8)}.tmp"  # beside the target: a rename must not cross disks
        if target.exists() and not target.is_file():
            raise OSError(f"it is not a regular file, but {'a folder' if target.is_dir() else 'a device'}")
        with open(draft, "xb") as file:
            file.write(body)
            file.write(seal(body, version))
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, draft)
        os.replace(draft, target)
        _sync_folder(target.parent)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise StoreError(
            f"Cannot write {str(path)!r}: {_cause(error)}. Nothing was changed; free some space or choose another path."
        ) from error
    finally:
        if draft is not None:
            with suppress(OSError):
                draft.unlink(missing_ok=True)


def read(path: str | os.PathLike[str]) -> tuple["xr.DataTree", int]:
    """Read a tree and its format version; whatever is wrong with the file is a `StoreError`."""
    import h5py
    import xarray as xr

    name = repr(os.fspath(path))
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # to open a pipe would be to wait for a writer
            raise OSError("it is not a regular file")
        file = open(path, "rb")  # noqa: SIM115, closed by the next statement
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise StoreError(f"Cannot open {name}: {_cause(error)}. Check the path.") from error
    with file:
        version, length = _check_seal(file, name)
        try:
            check_heaps(file, length)
            # One handle for all looks: what was checked is what is read, even if the file is replaced meanwhile.
            with h5py.File(file, "r") as content:
                check_structure(content, length)
            file.seek(0)
            with _here(), xr.open_datatree(file, engine="h5netcdf") as tree:
                return tree.load(), version
        except StoreError as error:
            raise StoreError(f"{name} is not built as a model of bayes_gda is: {_cause(error)}. {RESTORE}") from error
        except Exception as error:  # sealed, yet not netCDF: HDF5 may say so by any kind of error
            raise StoreError(f"{name} has a valid seal but no readable content: {_cause(error)}. {RESTORE}") from error


def _here() -> AbstractContextManager[object]:
    """Keep xarray from asking a Dask cluster, if one is connected, to lock what is in our memory, which it cannot."""
    dask = sys.modules.get("dask")
    return nullcontext() if dask is None else dask.config.set(scheduler="threads")


def seal(body: bytes, version: int = FORMAT) -> bytes:
    """Return the seal of a netCDF file's bytes, to be appended to them."""
    digest = hashlib.sha256(body)
    digest.update(_stamp(version))
    return _SEAL.format(version, digest.hexdigest()).encode()


def _check_seal(file: IO[bytes], name: str) -> tuple[int, int]:
    """Return the format version of a file that is whole, and its length; leave the file at its start."""
    try:
        start = file.read(len(_HDF5))
        length = file.seek(0, os.SEEK_END) - _SEAL_LENGTH
        whole = max(length, 0)
        file.seek(whole)
        match = _SEALED.fullmatch(file.read(_SEAL_LENGTH))
        if match is None and start == _HDF5:
            raise StoreError(
                f"{name} does not end in a seal of bayes_gda: it is cut short, damaged, or another program's. {RESTORE}"
            )
        if match is None or start != _HDF5:
            raise StoreError(
                f"{name} is not a model that bayes_gda saved, or it is damaged. Give a file written by `save`."
            )
        version = int(match[1])
        file.seek(0)
        digest = hashlib.sha256()
        while length > 0 and (block := file.read(min(_BLOCK, length))):
            digest.update(block)
            length -= len(block)
        digest.update(_stamp(version))
        file.seek(0)
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"Cannot read {name}: {_cause(error)}. {RESTORE}") from error
    if digest.hexdigest().encode() != match[2]:
        raise StoreError(f"{name} is damaged: its content does not match its checksum. {RESTORE}")
    if version > FORMAT:
        raise StoreError(
            f"{name} has format {version}; bayes_gda {__version__} reads formats up to {FORMAT}. "
            "Update the package: pip install --upgrade bayes-gda."
        )
    return version, whole


def _stamp(version: int) -> bytes:
    """The version as the checksum covers it: a flipped digit is damage, not another format."""
    return f"format {version:04d}".encode()


def _sync_folder(folder: Path) -> None:
    """Make the rename itself last through a power cut, where the system can; the file's content is safe already."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _cause(error: Exception) -> str:
    """One line that says what happened, without errno."""
    text = (getattr(error, "strerror", None) or str(error)).strip().splitlines()
    return (text[0] if text else type(error).__name__).rstrip(".")
