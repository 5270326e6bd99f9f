"""Are the data sound, and does the model fit them? What findings and checks of assumptions mean, in sentences."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bayes_gda.data.table import Dataset
from bayes_gda.families.assumptions import Assumptions, Check
from bayes_gda.reporting.analysis.quality import Finding, Kind, coded_columns
from bayes_gda.reporting.analysis.words import (
    Conclusion,
    Light,
    listed_names,
    p_text,
    percent,
    short_name,
    significant,
)

# Family-wise level at which an assumption is rejected.
LEVEL = 0.05
# A part of a rejected check that far from what is expected, in standard deviations, is named beside the farthest.
CLEAR = 4.0
# Equal rows are no copies if so many of them would be equal by chance, were the features independent; they seldom are.
EXPECTED = 0.05
# What is said of a table in which nothing may mislead a model. Rows that repeat or contradict others are noted.
CLEAN = "No identifier, linearly dependent column, leak, outlier or rare class was found."
# AUC of two classes from which on an identifier gives them away: the rows are then in some order of the classes.
TELLING = 0.75
# In place of the option that left out incomplete rows.
KEEP = ("--missing", "keep")
# Names of a kind in a sentence; more are counted.
MOST_NAMES = 4


@dataclass(frozen=True, slots=True)
class Remark:
    """A finding in words.

    Parameters
    ----------
    light
        Green for what is only worth knowing.
    sentence, step
        What was found; what to do.
    columns
        The features that one would leave out.
    leak
        Whether scores may be too good to be true.
    options
        What to add to the command line of the next report, if no column is to be left out.
    """

    light: Light
    sentence: str
    step: str
    columns: tuple[str, ...] = ()
    leak: bool = False
    options: tuple[str, ...] = ()


def remarks(findings: Sequence[Finding], data: Dataset) -> list[Remark]:
    """Say what was found in the data, the gravest first; findings of one kind are said together."""
    kinds = dict.fromkeys(finding.kind for finding in findings)
    said = [_WORDS[kind]([f for f in findings if f.kind == kind], data) for kind in kinds]
    said = [replace(remark, columns=_in_table(remark, data)) for remark in said]
    return sorted([*_dropped(data), *said], key=lambda remark: remark.light == "green")


def _in_table(remark: Remark, data: Dataset) -> tuple[str, ...]:
    """Return the columns of the table that `--drop` leaves out: a category goes as a whole or not at all."""
    coded = {data.feature_names[j]: group for j, group in coded_columns(data).items()}
    columns = []
    for name in remark.columns:
        group = coded.get(name)
        if group is None:
            columns.append(name)
        elif remark.leak or set(data.feature_names[group.start : group.stop]) <= set(remark.columns):
            columns.append(group.name)
    return tuple(dict.fromkeys(columns))


def sound_data(remarks: Sequence[Remark], command: str) -> Conclusion:
    """Give the light: amber if something was found that may mislead a model.

    Parameters
    ----------
    remarks
        From `remarks`.
    command
        The command line of this report, to which columns to leave out are added.
    """
    topic = "Are the data sound?"
    grave = [remark for remark in remarks if remark.light != "green"]
    if not grave:
        sentence = CLEAN
        if remarks:
            notes = "1 note" if len(remarks) == 1 else f"{len(remarks)} notes"
            sentence += f" {notes} on rows or columns {'is' if len(remarks) == 1 else 'are'} in the section “The data”."
        return Conclusion(topic, "green", sentence, "No action is needed.")
    columns = list(dict.fromkeys(name for remark in grave for name in remark.columns))
    call = " ".join([command, *(f"--drop {_quoted(name)}" for name in columns)])
    if not columns:  # a new report as it is would find the same
        call = " ".join([command, *grave[0].options])
        if grave[0].options == KEEP:
            call = command.replace("--missing drop", " ".join(KEEP))
    steps = " ".join(dict.fromkeys(r.step for r in grave))
    return Conclusion(topic, "amber", " ".join(r.sentence for r in grave), steps, call)


def _quoted(name: str) -> str:
    import shlex

    return shlex.quote(name)


def _dropped(data: Dataset) -> list[Remark]:
    origin = data.origin
    if origin is None:
        absent = np.isnan(data.X)
        rows = int(absent.any(axis=1).sum())
        if not rows:
            return []
        coded = coded_columns(data)
        columns = dict.fromkeys(
            coded[j].name if j in coded else data.feature_names[j] for j in np.flatnonzero(absent.any(axis=0)).tolist()
        )
        sentence = (
            f"{_rows(rows)} of {data.n} ({percent(rows / data.n)}) {'has' if rows == 1 else 'have'} missing values, in "
            f"{_counted([short_name(name) for name in columns])}; they were kept."
        )
        return [Remark("green", sentence, "Missing values are integrated out, as missing at random given the rest.")]
    lost = origin.total - len(origin.rows)
    most = sorted(origin.missing, key=lambda name: -origin.missing[name])
    gaps = [f"{short_name(name)} ({origin.missing[name]})" for name in most[:MOST_NAMES]]
    if origin.unlabelled:
        gaps.append(f"the class ({origin.unlabelled})")
    share = lost / origin.total
    sentence = (
        f"{_rows(lost)} of {origin.total} ({percent(share)}) {'was' if lost == 1 else 'were'} left out for missing "
        f"values, which are in {listed_names(gaps)}."
    )
    step = (
        "If missingness depends on the class, the remaining rows are biased: compare with --missing keep (lda, qda, "
        "naive, mixed)."
    )
    return [Remark("amber" if share > LEVEL else "green", sentence, step, options=KEEP)]


def _separator(findings: Sequence[Finding], data: Dataset) -> Remark:
    names = _names(findings)
    single = len(findings) == 1
    sentence = (
        f"{names} {'alone tells' if single else 'each alone tell'} the classes apart (AUC "
        f"{min(f.value for f in findings):.3f}): {'it' if single else 'they'} may be another form of the class, or "
        "known only after it."
    )
    step = "Leave out what is not known when a prediction is needed."
    return Remark("amber", sentence, step, tuple(f.columns[0] for f in findings), leak=True)


def _identifier(findings: Sequence[Finding], data: Dataset) -> Remark:
    single = len(findings) == 1
    what = f"{'holds' if single else 'hold'} a different whole number in every row, as identifiers do"
    telling = [f for f in findings if f.value >= TELLING]
    if telling:  # a table that is sorted by class, or that grew class by class
        best = max(telling, key=lambda f: f.value)
        what += f"; {short_name(best.columns[0])} tells classes apart all the same (AUC up to {best.value:.3f})"
    sentence, columns = f"{_names(findings)} {what}.", tuple(f.columns[0] for f in findings)
    return Remark("amber", sentence, "Leave identifiers out.", columns, leak=bool(telling))


def _copies(findings: Sequence[Finding], data: Dataset) -> Remark:
    groups = "; ".join(listed_names([short_name(name) for name in f.columns]) for f in findings[:MOST_NAMES])
    sentence = f"These features are linear functions of each other: {groups}."
    step = "Keep one of each group: their separate effects are not identified."
    return Remark("amber", sentence, step, tuple(name for f in findings for name in f.columns[1:]))


def _sums(findings: Sequence[Finding], data: Dataset) -> Remark:
    parts = "; ".join(
        f"{short_name(f.columns[0])} of {_counted([short_name(name) for name in f.columns[1:]])}"
        for f in findings[:MOST_NAMES]
    )
    more = f"; and {len(findings) - MOST_NAMES} more" if len(findings) > MOST_NAMES else ""
    single = len(findings) == 1
    sentence = (
        f"{'This feature is' if single else 'These features are'} exact linear functions of others: {parts}{more}."
    )
    if single:
        sentence = f"{parts.replace(' of ', ' is an exact linear function of ', 1)}."
    step = "Leave it out: " if single else "Leave them out: "
    step += "the others say the same, and separate effects are not identified."
    return Remark("amber", sentence, step, tuple(f.columns[0] for f in findings))


def _outliers(findings: Sequence[Finding], data: Dataset) -> Remark:
    worst = findings[0]
    numbers = data.row_numbers[list(worst.places)]
    single = len(findings) == 1
    most = "" if single else f"{short_name(worst.columns[0])}: "
    sentence = (
        f"{_names(findings)} {'has' if single else 'have'} values more than 10 robust standard deviations from the "
        f"median ({most}up to {worst.value:.1f}; row{'' if len(numbers) == 1 else 's'} "
        f"{listed_names([str(i) for i in numbers[:MOST_NAMES]])}{' …' if worst.rows > MOST_NAMES else ''})."
    )
    return Remark(
        "amber",
        sentence,
        "Check these values: are they errors, codes for missing values, or heavy tails?",
        options=("--models", "lda,student"),
    )


def _conflict(findings: Sequence[Finding], data: Dataset) -> Remark:
    sentence = f"{_rows(findings[0].rows)} have the same features as a row of another class."
    return Remark("green", sentence, "No model of these features can separate them.")


def _repeated(findings: Sequence[Finding], data: Dataset) -> Remark:
    count = findings[0].rows
    share = count / data.n
    sentence = f"{_rows(count)} ({percent(share)}) {'repeats' if count == 1 else 'repeat'} an earlier one."
    if findings[0].value >= EXPECTED:
        step = "With so few different values equal rows are to be expected: nothing needs doing."
        return Remark("green", sentence, step)
    step = "If they are copies and not equal measurements, held-out rows are not new: remove them."
    return Remark("amber" if share > LEVEL else "green", sentence, step)


def _rare(findings: Sequence[Finding], data: Dataset) -> Remark:
    classes = _counted([f"“{short_name(f.columns[0])}” ({_rows(f.rows)}, {percent(f.value)})" for f in findings])
    single = len(findings) == 1
    sentence = f"Few rows are of {'class' if single else 'the classes'} {classes}."
    step = (
        f"Judge {'this class' if single else 'these classes'} by recall and precision, not by the accuracy; decide "
        "under costs, merge classes, or collect more rows."
    )
    return Remark("amber", sentence, step, options=("--cost", "COSTS.csv"))


def _two_values(findings: Sequence[Finding], data: Dataset) -> Remark:
    names = findings[0].columns
    what = "has two values" if len(names) == 1 else "have two values each"
    sentence = f"{_counted([short_name(name) for name in names])} {what}: not Gaussian within classes."
    return Remark("green", sentence, "Prefer a regression, or a model of columns by their type (mixed).")


def _codes(findings: Sequence[Finding], data: Dataset) -> Remark:
    names = findings[0].columns
    single = len(names) == 1
    sentence = (
        f"{_counted([short_name(name) for name in names])} {'has' if single else 'have'} only few different whole "
        "numbers and could be codes of categories."
    )
    options = " ".join(f"--categorical {_quoted(name)}" for name in names[:MOST_NAMES])
    return Remark("green", sentence, f"If the order of the codes means nothing, add {options}.")


_WORDS: dict[Kind, Callable[[Sequence[Finding], Dataset], Remark]] = {
    "separator": _separator,
    "identifier": _identifier,
    "copies": _copies,
    "sum": _sums,
    "outliers": _outliers,
    "conflict": _conflict,
    "repeated rows": _repeated,
    "rare class": _rare,
    "two values": _two_values,
    "codes": _codes,
}


def _names(findings: Sequence[Finding]) -> str:
    return _counted([short_name(f.columns[0]) for f in findings])


def _counted(names: list[str]) -> str:
    """Write names as a list; those beyond MOST_NAMES are counted."""
    more = [f"{len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
    return listed_names(names[:MOST_NAMES] + more)


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


# ── Assumptions ─────────────────────────────────────────────────────────────────────────────────────────────────────


def rejected(assumptions: Assumptions) -> list[tuple[Check, float]]:
    """Return the checks that are rejected at the family-wise level, with their adjusted p-values."""
    return [(c, p) for c, p in zip(assumptions.checks, assumptions.adjusted(), strict=True) if p < LEVEL]


def check_sentence(check: Check, p: float) -> str:
    """Say what a check found; `p` is its adjusted p-value, nan if there is none."""
    worst = check.worst
    if np.isnan(p) or worst is None:
        return check.note or "Not checked."
    figures = (
        f"{worst.where}: {significant(worst.observed)} where {significant(worst.expected)} is expected under the model "
        f"({abs(worst.z):.1f} standard deviations away)"
    )
    verdict = "Rejected" if p < LEVEL else "Not rejected"
    rest = f" {check.note}" if check.note else ""
    return f"{verdict} ({p_text(p)}); largest departure {figures}{_others(check)}.{rest}"


def _others(check: Check) -> str:
    """Name what departs clearly beside the farthest part."""
    others = sorted((part for part in check.parts if abs(part.z) > CLEAR), key=lambda part: -abs(part.z))[1:MOST_NAMES]
    return f"; also {listed_names([f'{part.where} ({abs(part.z):.1f})' for part in others])}" if others else ""


def assumptions_hold(assumptions: Assumptions, title: str, n: int, command: str, estimator: str) -> Conclusion:
    """Give the light: whether an assumption of the chosen model is rejected by its training rows.

    Parameters
    ----------
    assumptions
        The checks of the chosen model.
    title, n
        Its name; training rows.
    command, estimator
        The command line that compares models on these data; the Python class.
    """
    topic = "Do the assumptions hold?"
    known = [c for c in assumptions.checks if not np.isnan(c.p_value)]
    if not known:
        notes = " ".join(c.note for c in assumptions.checks if c.note)
        return Conclusion(
            topic,
            "amber",
            notes or f"Not checked: there is no check of the assumptions of {title}.",
            "Judge the model by its scores and its calibration, beside those of others.",
            command,
        )
    failed = rejected(assumptions)
    unknown = _unchecked(assumptions)
    joint = f"Holm-adjusted for {len(known)} checks" if len(known) > 1 else "one check"
    if not failed:
        names = listed_names([c.assumption for c in known])
        least = min(p for p in assumptions.adjusted() if not np.isnan(p))
        sentence = f"Not rejected on {n} training rows: {names} (smallest p = {least:.2f}, {joint}).{unknown}"
        return Conclusion(
            topic, "green", sentence, "Absence of a rejection is no proof: larger samples detect smaller departures."
        )
    parts = "; ".join(f"{c.assumption} ({p_text(p)}; {_departure(c)})" for c, p in failed)
    sentence = f"Rejected on {n} training rows ({joint}): {parts}.{unknown}"
    remedy = failed[0][0].remedy
    call = f"{estimator}(features=2).fit(X, y)" if "features=2" in remedy else command
    return Conclusion(topic, "amber", sentence, remedy, call)


def _unchecked(assumptions: Assumptions) -> str:
    """Name the checks that could not be made, and the classes that others leave out."""
    absent = [c.assumption for c in assumptions.checks if np.isnan(c.p_value)]
    words = [f"No check of {listed_names(absent)} was possible."] if absent else []
    words += dict.fromkeys(c.note for c in assumptions.checks if c.note)
    return "".join(f" {word}" for word in words)


def _departure(check: Check) -> str:
    worst = check.worst
    assert worst is not None
    return f"{worst.where}: {abs(worst.z):.1f} standard deviations from what is expected{_others(check)}"
