"""Columns of any type, independent within a class: a distribution and an exact posterior for each."""
