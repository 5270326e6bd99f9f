"""Small tables with a class column, and a data set to take parts of, that several tests share."""

import numpy as np
import pandas as pd

from bayes_gda.data.table import Dataset


def table(**columns):
    """Four rows of two classes, with the columns given and one that is fine."""
    return pd.DataFrame({**columns, "fine": [1.0, 2.0, 3.0, 5.0], "y": ["u", "v", "u", "v"]})


def islands():
    return pd.DataFrame(
        {
            "mass": [3.5, 4.25, 1 / 3, 5.0, 4.5, 3.0],
            "island": ["Dream", "Biscoe", "Torgersen", "Dream", "Biscoe", "Biscoe"],
            "tagged": [True, False, True, True, False, False],
            "count": [1, 2, 3, 4, 5, 60],
            "species": ["Gentoo", "Adelie", "Adelie", "Gentoo", "Gentoo", "Adelie"],
        }
    )


def sixty_rows():
    """Sixty rows of classes with 36, 18 and 6 of them."""
    rng = np.random.default_rng(3)
    return Dataset.from_arrays(rng.normal(size=(60, 3)), rng.permutation(np.repeat(["a", "b", "c"], [36, 18, 6])))
