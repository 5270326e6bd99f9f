"""What a missing value does: one list of words for every door, each of which takes some of them.

error    stop, and name the columns
drop     leave the row out of what is learnt                     blank    leave the row's answer blank
keep     learn from what the row has                             use      answer from what the row has
"""

from typing import Literal, get_args

# Tables and estimators that need complete rows; tables for models that integrate gaps out; rows to predict.
Complete = Literal["error", "drop"]
Training = Literal["error", "drop", "keep"]
Predicted = Literal["error", "blank", "use"]

COMPLETE: tuple[str, ...] = get_args(Complete)
TRAINING: tuple[str, ...] = get_args(Training)
