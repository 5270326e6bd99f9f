"""`python -m bayes_gda.cli`, for where the script `bayes-gda` is not on the path."""

from bayes_gda.cli import main

main()
