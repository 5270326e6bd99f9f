"""A file is written whole or not at all, opens in xarray as it is, and does not pass for whole if it is not."""

import errno
import io
import os
import stat
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

from bayes_gda.errors import StoreError
from bayes_gda.store import files


def a_tree(size=5):
    values = np.random.default_rng(size).standard_normal((2, size))
    posterior = xr.Dataset({"tau": (("chain", "draw"), values)}, attrs={"seed": 3})
    tree = xr.DataTree.from_dict({"posterior": posterior})
    tree.attrs["note"] = "π"
    return tree


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.nc"


def test_a_tree_comes_back_with_its_version(path):
    files.write(path, a_tree(), version=1)
    tree, version = files.read(path)
    assert version == 1
    assert tree.identical(a_tree())
    assert os.listdir(path.parent) == ["model.nc"]


@pytest.mark.parametrize("engine", [None, "h5netcdf"])
def test_xarray_opens_the_file_as_it_is(path, engine):
    files.write(path, a_tree())
    with xr.open_datatree(path, engine=engine) as tree:
        assert tree.identical(a_tree())


def test_the_seal_is_the_sha256_of_what_stands_before(path):
    import hashlib

    files.write(path, a_tree())
    whole = path.read_bytes()
    end = whole.rfind(b"\nbayes_gda model")
    body, seal = whole[:end], whole[end:]
    digest = hashlib.sha256(body + b"format 0003").hexdigest()
    assert seal == f"\nbayes_gda model, format 0003\nsha256 {digest}\n".encode()


def test_every_single_byte_counts(path):
    """Damage at every 29th byte and in the whole seal, and every 53rd length: none is read."""
    files.write(path, a_tree())
    whole = path.read_bytes()
    n = len(whole)
    for i in [*range(0, n, 29), *range(n - 110, n)]:
        path.write_bytes(whole[:i] + bytes([whole[i] ^ (1 << i % 8)]) + whole[i + 1 :])
        with pytest.raises(StoreError):
            files.read(path)
    for length in [*range(0, n, 53), *range(n - 110, n)]:
        path.write_bytes(whole[:length])
        with pytest.raises(StoreError):
            files.read(path)
    path.write_bytes(whole + b"\n")
    with pytest.raises(StoreError):
        files.read(path)


def test_a_newer_format_says_which_is_needed(path):
    files.write(path, a_tree(), version=7)
    with pytest.raises(StoreError, match=r"has format 7; bayes_gda .* reads formats up to 3\. Update the package"):
        files.read(path)


def test_foreign_files_are_told_apart_from_damaged_ones(path):
    path.write_bytes(b"sepal_length,species\n5.1,setosa\n")
    with pytest.raises(StoreError, match="is not a model that bayes_gda saved"):
        files.read(path)
    a_tree().to_netcdf(path, engine="h5netcdf")
    with pytest.raises(StoreError, match="does not end in a seal of bayes_gda"):
        files.read(path)
    body = b"\x89HDF\r\n\x1a\n" + bytes(100)
    path.write_bytes(body + files.seal(body))
    with pytest.raises(StoreError, match="valid seal but no readable content"):
        files.read(path)
    body = b"no HDF5 at all"
    path.write_bytes(body + files.seal(body))
    with pytest.raises(StoreError, match="is not a model"):
        files.read(path)


@pytest.mark.parametrize("bad", ["nowhere.nc", ".", "a\0b", "nowhere/model.nc"])
def test_paths_that_cannot_be_read_or_written(tmp_path, bad):
    with pytest.raises(StoreError, match=r"^Cannot open .*Check the path"):
        files.read(f"{tmp_path}/{bad}")
    if bad != "nowhere.nc":
        with pytest.raises(StoreError, match=r"^Cannot write .*Nothing was changed"):
            files.write(f"{tmp_path}/{bad}", a_tree())
        assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(path, monkeypatch, step):
    files.write(path, a_tree())
    before = path.read_bytes()

    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(StoreError, match="No space left on device"):
        files.write(path, a_tree(9))
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["model.nc"]


def test_an_interrupt_leaves_nothing_behind(path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.write(path, a_tree())
    assert os.listdir(path.parent) == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_disk_that_fills_up_gives_one_line(path):
    """A limit on the size of files stops the write in the middle, as a full disk does; in a process of its own."""
    script = f"""
import resource, xarray as xr, numpy as np
from bayes_gda.errors import StoreError
from bayes_gda.store import files
files.write({str(path)!r}, xr.DataTree(xr.Dataset({{"a": ("x", np.zeros(10))}})))
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
try:
    files.write({str(path)!r}, xr.DataTree(xr.Dataset({{"a": ("x", np.zeros(100_000))}})))
except StoreError as error:
    print(error, end="")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"Cannot write {str(path)!r}: File too large. Nothing was changed")
    assert "\n" not in done.stdout
    assert done.stderr == ""  # HDF5 has nothing to complain about at exit
    assert files.read(path)[0]["a"].shape == (10,)
    assert os.listdir(path.parent) == ["model.nc"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs links and modes")
def test_links_are_followed_and_modes_kept(tmp_path):
    real, link = tmp_path / "real.nc", tmp_path / "link.nc"
    files.write(real, a_tree())
    assert stat.S_IMODE(real.stat().st_mode) == 0o666 & ~umask()
    real.chmod(0o640)
    link.symlink_to(real)
    files.write(link, a_tree(9))
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert files.read(real)[0].identical(a_tree(9))


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_file_replaced_while_it_is_read_is_read_as_it_was(path, monkeypatch):
    """The check and the parser see the same file, whatever happens to the path in between."""
    files.write(path, a_tree())
    check = files._check_seal

    def check_then_replace(file, name):
        version = check(file, name)
        files.write(path, a_tree(9))
        return version

    monkeypatch.setattr(files, "_check_seal", check_then_replace)
    assert files.read(path)[0].identical(a_tree())


def test_an_error_while_reading_is_ours():
    class Broken(io.BytesIO):
        def read(self, *_):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.raises(StoreError, match=r"Cannot read 'x': Input/output error"):
        files._check_seal(Broken(), "'x'")


def test_the_folder_is_synced_after_the_rename(tmp_path, monkeypatch):
    """A power cut after `write` must not bring the old file back: the rename itself has to reach the disk."""
    order = []
    fsync, move = os.fsync, os.replace
    monkeypatch.setattr(
        os, "fsync", lambda fd: (order.append("folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file"), fsync(fd))[1]
    )
    monkeypatch.setattr(os, "replace", lambda a, b: (order.append("rename"), move(a, b))[1])
    files.write(tmp_path / "t.nc", xr.DataTree(xr.Dataset({"x": ("i", [1.0])})))
    assert order == ["file", "rename", "folder"]
