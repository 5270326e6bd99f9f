"""Whether the probabilities are calibrated: the conclusion."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_gda.evaluation.calibration import JOINT_PROB
from bayes_gda.reporting.analysis.settings import ReportSettings
from bayes_gda.reporting.analysis.words import Conclusion, short_name, signed

if TYPE_CHECKING:
    import pandas as pd

# Level of the test of the ECE over all events, and the calibration error that misleads a user: five percentage points.
LEVEL, LARGE_ERROR = 0.05, 0.05


def calibrated(table: "pd.DataFrame", n: int, estimator: str, settings: ReportSettings) -> Conclusion:
    """Say whether the probabilities are calibrated, as far as the held-out rows can show.

    The light goes by the intervals of the calibration error, of all classes and the top label together: green if all
    end below LARGE_ERROR, red if one begins above it. In between it is amber, whether calibration is rejected or the
    rows are too few to tell: not rejected does not mean calibrated.

    Parameters
    ----------
    table
        From `calibration_table`.
    n
        Held-out rows.
    estimator, settings
        For the next call.
    """
    topic = "Are the probabilities calibrated?"
    events = table.drop(index="all classes", level="event")
    if len(events) == 3:  # of two classes one is the other's mirror image
        events = events.iloc[1:]
    lower, upper = events["error_lower"].to_numpy(), events["error_upper"].to_numpy()
    ece_rejected = (len(events) * events["ece_p_value"] < LEVEL).to_numpy()
    rejected = (lower > 0) | ece_rejected
    # The event that decides: among those that are rejected, if there are any, the one whose error may be largest.
    place = int(np.where(rejected, 1 + upper, upper).argmax())
    row: Any = events.iloc[place]
    kind, name = events.index[place]
    event = f"class “{short_name(name)}”" if kind == "class" else "the most probable class"
    slope = "slope and intercept cannot be estimated"
    if np.isfinite(row["slope"]):
        slope = f"slope {row['slope']:.2f} (SE {row['slope_se']:.2f}), intercept {signed(row['intercept'], 2)} "
        slope += f"(SE {row['intercept_se']:.2f})"
    figures = (
        f"Of {event}, the mean calibration error is between {row['error_lower']:.3f} and {row['error_upper']:.3f} "
        f"({100 * JOINT_PROB:.0f} % intervals for {len(events)} events together, {n} held-out rows); {slope}; "
        f"likelihood-ratio test of calibration {row['lr']:.2f} on 2 df, p = {row['lr_p_value']:.3f}; "
        f"ECE {row['ece']:.3f}, p = {row['ece_p_value']:.3f} under perfect calibration."
    )
    recalibrate = f"sklearn.calibration.CalibratedClassifierCV({estimator}(), method='sigmoid').fit(X, y)"
    if (lower > LARGE_ERROR).any():
        return Conclusion(
            topic, "red", f"No. {figures}", "Recalibrate before anyone acts on a probability.", recalibrate
        )
    if rejected.any():
        sentence = f"Perfect calibration is rejected. {figures}"
        return Conclusion(topic, "amber", sentence, "Recalibrate, or quote the probabilities with care.", recalibrate)
    if (upper <= LARGE_ERROR).all():
        sentence = f"To within {upper.max():.3f} on average. {figures}"
        return Conclusion(topic, "green", sentence, "Use the probabilities as they are.")
    # The width of the interval falls with the root of the rows.
    wanted = int(np.ceil(n * (upper.max() / LARGE_ERROR) ** 2 / 10) * 10)
    return Conclusion(
        topic,
        "amber",
        f"The data cannot tell: calibration is not rejected, nor is an error above {LARGE_ERROR:g} excluded. {figures}",
        f"Hold out more rows: some {wanted} would show an error above {LARGE_ERROR:g}, or its absence.",
        settings.command("report", "--test-size", str(wanted)),
    )
