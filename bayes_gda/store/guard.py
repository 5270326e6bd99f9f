"""What an HDF5 file may contain before it is read as a model, so that a file from a stranger is harmless.

The seal is a checksum that anyone can compute. So the structure is looked at first, without reading a value:

    depth       groups in the root, variables in the groups, nothing deeper
    links       hard ones only, each to an object of its own: no path of another file, no cycle
    types       numbers and text; references only where netCDF itself keeps its dimensions
    storage     in the file itself, contiguous and not compressed, as `save` writes it: what is declared is there, and
                nothing becomes larger in memory than it is in the file
    counts      groups, variables and attributes are as few as any model has
    heaps       where HDF5 keeps texts, object after object, each of which ends behind its start: HDF5 itself goes round
                for ever in a heap in which one takes no room
"""

from typing import IO, Any

from bayes_gda.errors import StoreError

# A model has some ten groups, each with some dozens of variables; one attribute a column at most.
MOST_GROUPS, MOST_VARIABLES, MOST_ATTRIBUTES = 100, 5_000, 1_000
# Entries of an attribute: a list of dimensions, or one for each variable that has a dimension.
MOST_ENTRIES = MOST_VARIABLES
# Of netCDF: where it keeps which variable has which dimensions. h5netcdf reads them as such.
_DIMENSIONS = ("DIMENSION_LIST", "REFERENCE_LIST")
# What h5netcdf writes as the name of a dimension without values, and by which it knows that there are none to read.
_WITHOUT_VALUES = b"This is a netCDF dimension but not a netCDF variable."
# Attributes by which xarray changes values as it reads them; `save` writes none of them.
_DECODED = {"scale_factor", "add_offset", "missing_value", "units", "calendar", "_Unsigned", "flag_meanings"}

# Bytes by which HDF5 refers to a text of any length: its length, the address of its heap, its number there.
_TEXT_ENTRY = 16

# A heap: its signature and version, three bytes and its size; then objects: a number (2 bytes), 6 more, its size.
_HEAP, _HEAD, _ALIGNED = b"GCOL\x01", 16, 8


def check_heaps(file: IO[bytes], length: int) -> None:
    """Raise `StoreError` unless the objects of every heap follow each other to its end; leave the file at its start.

    Parameters
    ----------
    file
        The file, open for reading bytes, before HDF5 looks at it.
    length
        Bytes of it that HDF5 will see.
    """
    file.seek(0)
    content = file.read(length)  # as large as the arrays that are read next
    file.seek(0)
    start = content.find(_HEAP)
    while start >= 0:
        at, end = start + _HEAD, start + int.from_bytes(content[start + 8 : start + _HEAD], "little")
        while at + _HEAD <= min(end, length):
            number, size = (int.from_bytes(content[at + i : at + j], "little") for i, j in ((0, 2), (8, _HEAD)))
            # The free room at the end has number 0, and its size counts its head.
            step = _HEAD + -(-size // _ALIGNED) * _ALIGNED if number else size
            if not _HEAD <= step <= end - at:
                raise StoreError(f"The texts at byte {start} must follow each other; one takes {step} bytes.")
            at += step
        start = content.find(_HEAP, start + len(_HEAP))


def check_structure(file: Any, length: int) -> None:
    """Raise `StoreError` unless an open HDF5 file is built as `save` builds it.

    Parameters
    ----------
    file
        An `h5py.File`.
    length
        Size of the file in bytes.
    """
    import h5py

    seen: set[int] = set()
    _check_attributes(file, "/")
    groups: list[tuple[str, Any]] = [("/", file)]
    room = length
    for at, group in groups:
        for name, member in _members(group, MOST_GROUPS if group is file else MOST_VARIABLES, at, seen):
            where = name if group is file else f"{at}/{name}"
            _check_attributes(member, where)
            if isinstance(member, h5py.Group) and group is file:
                groups.append((where, member))  # looked at in its turn; there is none within it
                continue
            if not isinstance(member, h5py.Dataset):
                raise StoreError(f"{where!r:.60} must be a variable.")
            room -= _size(member, where, length)
            if room < 0:
                raise StoreError("The variables must not be larger than the file.")


def _members(group: Any, most: int, where: str, seen: set[int]) -> Any:
    """Yield the names and objects of a group, each of which must be linked to once."""
    import h5py

    if len(group) > most:
        raise StoreError(f"{where!r:.60} must have at most {most} members; it has {len(group)}.")
    for name in group:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise StoreError(f"{name!r:.60} in {where!r:.60} is a link to another place.")
        member = group[name]
        identity = hash(member.id)  # by its address in the file
        if identity in seen:
            raise StoreError(f"{name!r:.60} in {where!r:.60} stands at several places.")
        seen.add(identity)
        yield name, member


def _check_attributes(thing: Any, where: str) -> None:
    from h5py import h5a, h5t

    count = h5a.get_num_attrs(thing.id)
    if count > MOST_ATTRIBUTES:
        raise StoreError(f"{where!r:.60} must have at most {MOST_ATTRIBUTES} attributes; it has {count}.")
    for i in range(count):
        attribute = h5a.open(thing.id, index=i)
        name = attribute.name.decode("utf-8", "replace")
        kind, entries = attribute.get_type().get_class(), attribute.get_space().get_simple_extent_npoints()
        if name in _DECODED:
            raise StoreError(f"{where!r:.60} has an attribute {name!r} that changes its values.")
        if name in _DIMENSIONS:
            allowed = entries <= MOST_ENTRIES
        elif kind == h5t.STRING:
            allowed = entries <= 1  # many could be one long text, many times over
        else:
            allowed = kind in (h5t.INTEGER, h5t.FLOAT) and entries <= MOST_ENTRIES
        if not allowed:
            raise StoreError(f"Attribute {name!r:.60} of {where!r:.60} is none that bayes_gda writes.")


def _size(variable: Any, where: str, length: int) -> int:
    """Return the bytes that a variable takes in memory; raises unless they stand in the file."""
    from h5py import h5d, h5t

    plan, kind = variable.id.get_create_plist(), variable.id.get_type().get_class()
    if plan.get_external_count() or plan.get_layout() not in (h5d.CONTIGUOUS, h5d.COMPACT) or plan.get_nfilters():
        raise StoreError(f"{where!r:.60} must be stored in the file itself, in one piece and not compressed.")
    if kind not in (h5t.INTEGER, h5t.FLOAT, h5t.STRING) or variable.shape is None:
        raise StoreError(f"{where!r:.60} must hold numbers or text.")
    free = kind == h5t.STRING and variable.id.get_type().is_variable_str()
    if variable.shape and not {"DIMENSION_LIST", "CLASS"} & set(variable.attrs):
        raise StoreError(f"{where!r:.60} must name its dimensions.")
    stored = variable.id.get_storage_size()
    declared = variable.size * (_TEXT_ENTRY if free else variable.id.get_type().get_size())
    if not stored and bytes(variable.attrs.get("NAME", b"")).startswith(_WITHOUT_VALUES):
        return 0
    if stored != declared or stored > length:
        raise StoreError(f"{where!r:.60} must have the {variable.size} values that it declares.")
    if free:
        return stored + _text_size(variable, where, length)
    return int(stored)


def _text_size(variable: Any, where: str, length: int) -> int:
    """Return the bytes of texts of any length, one after the other: many may be the same one of the file."""
    import numpy as np

    total = 0
    for index in np.ndindex(variable.shape):
        total += len(variable[index])
        if total > length:
            raise StoreError(f"{where!r:.60} must not hold more text than the file.")
    return total
