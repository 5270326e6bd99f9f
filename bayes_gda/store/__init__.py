"""Fitted models in files: `save` writes one netCDF file, `load` reads it back, bit for bit, and executes nothing.

The file is netCDF-4: `xarray.open_datatree(path)` and ArviZ read its `posterior` group as they would any other.

    encodings         how the columns of a table became features
    trees, records    posterior and estimator as plain groups, JSON and arrays (by `codecs`, checked by `rules`)
    formats           their layout in the file, and that of older formats
    files             bytes on the disk: atomic, sealed
"""

import os
from typing import TYPE_CHECKING, Any

from bayes_gda.data.frames.encode import AnyEncoding
from bayes_gda.data.labels import to_datatree
from bayes_gda.errors import StoreError
from bayes_gda.estimators.base import BayesianClassifier
from bayes_gda.store import encodings, files, formats, records, trees

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["load", "load_encoding", "save"]

# Numbers that the posterior group of a model may have whose draws can be made again: 80 MB. The covariances of 4000
# draws of QDA with ten classes of 50 features would be ten times as many, for a model of a quarter of a million.
LIMIT = 10_000_000


def save(estimator: BayesianClassifier, path: str | os.PathLike[str], *, encoding: AnyEncoding | None = None) -> None:
    """Write a fitted estimator to one file.

    Whatever does not come back from the file as it went in is refused before the file is touched. A model that was
    sampled carries its training rows (`observed_data`, `constant_data`), as ArviZ has it; others do not.

    Parameters
    ----------
    estimator
        A fitted BayesianLDA, BayesianQDA, BayesianNaiveGaussian, BayesianRDA, BayesianLogisticRegression or
        FamilyClassifier, whose family must be registered when the file is read, too.
    path
        The file; one that exists is replaced, all at once.
    encoding
        How the raw columns of a table became the features, if the estimator does not know it; `load_encoding` returns
        it, and a loaded estimator predicts such tables.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from bayes_gda import BayesianLDA, load, load_example, save
    >>> data = load_example("iris")
    >>> model = BayesianLDA().fit(data.X, data.y)
    >>> with TemporaryDirectory() as folder:
    ...     save(model, Path(folder) / "model.nc")
    ...     again = load(Path(folder) / "model.nc")
    >>> np.array_equal(again.predict_proba(data.X), model.predict_proba(data.X))
    True
    """
    if type(estimator) not in records.ESTIMATORS.values():
        known = ", ".join(records.ESTIMATORS)
        raise StoreError(f"`estimator` must be one of {known}; got {type(estimator).__name__}. Save that step alone.")
    if not hasattr(estimator, "model_"):
        raise StoreError(f"`estimator` must be fitted; this {type(estimator).__name__} is not. Call fit(X, y) first.")
    record, arrays = records.to_record(estimator)
    records.from_record(record, arrays)  # what does not load is not saved
    encoding = estimator.encoding_ if encoding is None else encoding
    if encoding is not None:
        record["encoding"] = encodings.to_node(encoding)
        encodings.from_node(record["encoding"], len(estimator._names()))
    posterior = _posterior(estimator)
    groups, record["groups"] = trees.to_plain(posterior)
    files.write(path, formats.pack(formats.Content(record, arrays, groups)))


def load(path: str | os.PathLike[str]) -> BayesianClassifier:
    """Read the estimator that `save` wrote; it predicts what the saved one predicts, bit for bit.

    Parameters
    ----------
    path
        The file. One that is damaged, cut short, foreign or too new is a `StoreError`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from bayes_gda import BayesianLDA, load, load_example, save
    >>> data = load_example("iris")
    >>> model = BayesianLDA().fit(data.X, data.y)
    >>> with TemporaryDirectory() as folder:
    ...     save(model, Path(folder) / "model.nc")
    ...     again = load(Path(folder) / "model.nc")
    >>> np.array_equal(again.predict_proba(data.X), model.predict_proba(data.X))
    True
    """
    tree, version = files.read(path)
    try:
        content = formats.unpack(tree, version)
        estimator = records.from_record(content.record, content.arrays)
        encoding = _encoding(content.record)
        if encoding is not None and not encoding.plain:
            estimator._take_encoding(encoding)
        posterior = trees.restore(content.groups, content.record.get("groups"))
        if estimator.inference_ == "mcmc":
            records.check_sampled(estimator, posterior)
            estimator._tree = posterior  # others draw it again from their seed
    except records.UnknownFamilyError as error:
        raise StoreError(f"{os.fspath(path)!r} cannot be read yet: {error}") from error
    except Exception as error:  # whatever an edited file may hold, the user gets one line
        cause = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise StoreError(f"{os.fspath(path)!r} does not hold a valid model: {cause}. {files.RESTORE}") from error
    return estimator


def load_encoding(path: str | os.PathLike[str]) -> AnyEncoding | None:
    """Read how a table's columns become the features of a saved model; None if it was saved without.

    Parameters
    ----------
    path
        The file, as for `load`.
    """
    tree, version = files.read(path)
    try:
        return _encoding(formats.unpack(tree, version).record)
    except Exception as error:
        cause = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise StoreError(f"{os.fspath(path)!r} does not hold a valid model: {cause}. {files.RESTORE}") from error


def _encoding(record: Any) -> AnyEncoding | None:
    node = record.get("encoding")
    return None if node is None else encodings.from_node(node, record["fitted"]["n_features_in_"])


def _posterior(estimator: BayesianClassifier) -> "xr.DataTree":
    """Return the posterior for other readers: all that was sampled, or as many draws as LIMIT allows."""
    model, size = estimator.model_, estimator.draws * estimator.chains
    if estimator.inference_ == "mcmc":
        return estimator._draws()
    numbers = sum(x.size for x in model.draw_variables(1, random_seed=estimator.seed_).values())
    if numbers * size <= LIMIT:
        return estimator._draws()
    attrs = {"method": estimator.inference_, "random_seed": estimator.seed_, "draws_left_out": "too large to store"}
    draws = model.draw_variables(max(1, LIMIT // numbers), random_seed=estimator.seed_)
    return to_datatree(draws, estimator._coords(), attrs=attrs)
