"""Data frames of every library, text files of every dialect, and formulas: what comes before `data.columns`."""
