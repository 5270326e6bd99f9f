"""Benchmarks measure what a user gets: the settings that make tests quick are taken back before PyTensor is imported."""

import os

os.environ.pop("PYTENSOR_FLAGS", None)
os.environ.pop("OPENBLAS_NUM_THREADS", None)
