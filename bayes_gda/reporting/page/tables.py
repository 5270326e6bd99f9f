"""The tables of a report: their columns, headings and kinds of numbers."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    key, head
        Key of the row's value; heading.
    kind
        `text`, `name` (chosen by the user), or a kind of number.
    tip
        What the heading means, if it is not plain.
    """

    key: str
    head: str
    kind: str = "text"
    tip: str = ""


_ELPD = Column("elpd", "elpd", "f1", "sum of log p(y | x) over the rows; higher is better")
_SE = Column("se", "SE", "f1")
_DIFF = Column("difference", "difference", "f1", "elpd minus that of the best model")
_DIFF_SE = Column("difference_se", "SE", "f1", "standard error of the paired difference")
_SCORES = (
    Column("log_score", "log score", "f3", "mean log probability of the true class; higher is better"),
    Column("log_score_se", "SE", "f3"),
    Column("brier", "Brier", "f3", "summed over the classes: 0 is perfect, 2 the worst"),
    Column("brier_se", "SE", "f3"),
    Column("accuracy", "accuracy", "pct"),
    Column("accuracy_se", "SE", "pct", "not estimable where all rows, or none, are classified correctly"),
)
_PARTS = (
    Column("log_score", "log score", "f3"),
    Column("brier", "Brier", "f3"),
    Column("miscalibration", "miscalibration", "f4", "what isotonic recalibration would gain"),
    Column("discrimination", "discrimination", "f4", "what the forecasts gain over the constant share"),
    Column("uncertainty", "uncertainty", "f4", "score of the constant share"),
    Column("ece", "ECE", "f3", "expected calibration error"),
    Column("ece_debiased", "ECE excess", "f3", "ECE minus its mean under perfect calibration"),
)
TABLES: dict[str, tuple[Column, ...]] = {
    "balance": (
        Column("class", "class", "name"),
        Column("train", "training rows", "int"),
        Column("test", "held-out rows", "int"),
        Column("share", "share", "pct"),
    ),
    "features": (
        Column("feature", "feature", "name"),
        Column("mean", "mean", "g3"),
        Column("sd", "sd", "g3"),
        Column("least", "smallest", "g3"),
        Column("most", "largest", "g3"),
    ),
    "models": (
        Column("name", "model"),
        Column("family", "family"),
        Column("parameters", "parameters", "int", "free parameters"),
        Column("method", "used", "text", "the method behind the predictions of this report"),
        Column("verdict", "verdict", "text", "on Laplace's approximation"),
        Column("laplace_error", "error, Laplace", "f4", "the largest on training rows, a cautious estimate"),
        Column("better_error", "error, ep or variational", "f4", "the same of the better Gaussian"),
        Column("pareto_k", "k̂", "f2", "of importance weights from Laplace's Gaussian; good below 0.7"),
        Column("ess_fraction", "effective", "pct", "effective share of these weighted draws"),
        Column("corrected_k", "k̂, corrected", "f2", "of the corrected posterior; reliable below 0.7"),
    ),
    "sampling": (
        Column("model", "model"),
        Column("verdict", "verdict"),
        Column("chains", "chains", "int"),
        Column("draws", "draws each", "int"),
        Column("r_hat", "largest R-hat", "f3", "good below 1.01"),
        Column("ess_bulk", "least ESS, bulk", "int", "effective draws for the middle; 400 are enough"),
        Column("ess_tail", "least ESS, tail", "int", "for the 5 % and 95 % quantiles; az.summary: 11 % and 89 %"),
        Column("divergences", "divergences", "int"),
        Column("e_bfmi", "least E-BFMI", "f2", "good from 0.3"),
        Column("acceptance", "acceptance", "f2"),
        Column("seconds", "seconds", "f1"),
    ),
    "worst": (
        Column("parameter", "parameter", "name"),
        Column("mean", "mean", "g3"),
        Column("sd", "sd", "g3"),
        Column("r_hat", "R-hat", "f3"),
        Column("ess_bulk", "ESS, bulk", "int"),
        Column("ess_tail", "ESS, tail", "int", "for the 5 % and 95 % quantiles; az.summary: 11 % and 89 %"),
        Column("mcse_mean", "MCSE", "g3", "Monte Carlo standard error of the mean"),
    ),
    "joint": (
        Column("method", "method"),
        Column("largest_mean_difference_sd", "largest shift, sd", "f2", "of a posterior mean, in posterior sd"),
        Column("parameter", "of", "name"),
        Column("kl", "KL", "f3", "divergence of the Gaussians with the same moments, in nats"),
        Column("kl_noise", "KL by chance", "f3", "expected for equal distributions with these draws"),
        Column("kl_excess", "KL excess", "f3", "the difference; about 0 if the distributions are equal"),
        Column("energy_distance", "energy", "f4", "energy distance of all parameters together"),
        Column("energy_p_value", "p", "p", "of the energy distance, if the posteriors are equal"),
    ),
    "parameters": (
        Column("method", "method"),
        Column("parameter", "parameter", "name"),
        Column("mean", "mean", "g3"),
        Column("sd", "sd", "g3"),
        Column("mean_difference_sd", "shift, sd", "f2", "mean less that of the reference, in its sd"),
        Column("sd_ratio", "sd ratio", "f2"),
        Column("accuracy", "overlap, %", "f1", "100 (1 − total variation)"),
        Column("skewness", "skewness", "f2"),
    ),
    "methods": (
        Column("method", "method"),
        Column("max_change", "largest difference", "f4", "of a probability, over rows"),
        Column("q95_change", "95th percentile", "f4", "over rows"),
        Column("mean_change", "mean difference", "f4"),
        Column("flips", "decisions changed", "pct"),
        Column("mean_kl", "log score lost", "f4", "mean KL to the reference, in nats"),
    ),
    "evidence": (
        Column("method", "method"),
        Column("log_evidence", "log evidence", "f2"),
        Column("error", "error", "f3", "standard error; unknown for Laplace"),
        Column("difference", "difference", "f3"),
        Column("z", "difference / error", "f1"),
    ),
    "uncertain": (
        Column("row", "row", "int"),
        Column("class", "true class", "name"),
        Column("predicted", "most probable", "name"),
        Column("probability", "probability", "f3"),
        Column("lower", "from", "f3"),
        Column("upper", "to", "f3"),
        Column("entropy", "entropy", "f3", "in nats"),
        Column("epistemic", "epistemic part", "f4", "due to uncertain parameters, in nats"),
    ),
    "novel": (
        Column("row", "row", "int"),
        Column("class", "true class", "name"),
        Column("nearest", "nearest class", "name", "for which the tail probability is largest"),
        Column("tail", "tail probability", "g3", "of a row at least as far out, under the nearest class"),
        Column("threshold", "novel below", "g3"),
        Column("predicted", "most probable", "name"),
        Column("probability", "probability", "f3", "of the chosen model"),
    ),
    "calibration": (
        Column("model", "model"),
        *_PARTS,
        Column("impossible", "impossible", "int", "rows whose truth had probability 0, to the precision of numbers"),
    ),
    "events": (
        Column("event", "event"),
        Column("class", "class", "name"),
        *_PARTS,
    ),
    "recalibration": (
        Column("event", "event"),
        Column("class", "class", "name"),
        Column("ece", "ECE", "f3", "expected calibration error"),
        Column("ece_p_value", "p (ECE)", "p", "under perfect calibration"),
        Column("intercept", "intercept", "f2", "0 if calibrated"),
        Column("intercept_se", "SE", "f2"),
        Column("slope", "slope", "f2", "1 if calibrated; below 1 the forecasts are too extreme"),
        Column("slope_se", "SE", "f2"),
        Column("lr", "LR", "f2", "likelihood-ratio statistic of intercept 0 and slope 1, 2 degrees of freedom"),
        Column("lr_p_value", "p (LR)", "p"),
        Column("error_lower", "calibration error, from", "f3", "interval for the mean calibration error"),
        Column("error_upper", "to", "f3"),
    ),
    "findings": (Column("sentence", "finding"), Column("step", "what to do")),
    "missing": (Column("column", "column", "name"), Column("missing", "missing values", "int")),
    "gaps": (Column("model", "model"), Column("use", "what it does")),
    "repeated": (
        Column("model", "model"),
        Column("method", "fitted by"),
        Column("log_score", "log score", "f3", "mean log probability of the true class; higher is better"),
        Column("log_score_se", "SE", "f3"),
        Column("difference", "difference", "f3", "log score minus that of the best model"),
        Column("difference_se", "SE", "f3", "standard error of the paired difference"),
        Column("least", "range from", "f3", "of the log score over the repetitions"),
        Column("most", "to", "f3"),
        Column("brier", "Brier", "f3", "summed over the classes: 0 is perfect, 2 the worst"),
        Column("brier_se", "SE", "f3"),
        Column("accuracy", "accuracy", "pct"),
        Column("accuracy_se", "SE", "pct"),
    ),
    "performance": (
        Column("class", "class", "name"),
        Column("rows", "rows", "int", "held-out rows of the class"),
        Column("recall", "recall", "pct", "share of these rows that are predicted to be of the class"),
        Column("recall_lower", "from", "pct"),
        Column("recall_upper", "to", "pct"),
        Column("decided", "predicted", "int", "held-out rows whose most probable class it is"),
        Column("precision", "precision", "pct", "share of the predicted rows that are of the class"),
        Column("precision_lower", "from", "pct"),
        Column("precision_upper", "to", "pct"),
    ),
    "ranking": (
        Column("class", "class", "name"),
        Column("auc", "AUC", "f3", "probability that a row of the class is ranked above another"),
        Column("auc_lower", "from", "f3"),
        Column("auc_upper", "to", "f3"),
        Column("average_precision", "average precision", "f3", "area under the precision-recall curve"),
        Column("average_precision_lower", "from", "f3"),
        Column("average_precision_upper", "to", "f3"),
    ),
    "effects": (
        Column("feature", "feature", "name"),
        Column("change", "change"),
        Column("class", "class", "name"),
        Column("estimate", "average change", "f3", "of the probability; mean over training rows and posterior"),
        Column("lower", "from", "f3"),
        Column("upper", "to", "f3"),
        Column("positive", "P(> 0)", "prob", "posterior probability of a positive effect"),
    ),
    "odds": (
        Column("feature", "feature", "name"),
        Column("class", "class", "name"),
        Column("unit", "unit", "unit"),
        Column("per_unit", "odds ratio per unit", "ratio", "exp of the posterior mean of the log odds ratio"),
        Column("per_unit_lower", "from", "ratio"),
        Column("per_unit_upper", "to", "ratio"),
        Column("per_sd", "odds ratio per sd", "ratio"),
        Column("per_sd_lower", "from", "ratio"),
        Column("per_sd_upper", "to", "ratio"),
        Column("positive", "P(> 1)", "prob", "posterior probability of an odds ratio above 1"),
    ),
    "assumptions": (
        Column("model", "model"),
        Column("assumption", "assumption"),
        Column("statistic", "statistic"),
        Column("p_value", "p", "p", "under the model"),
        Column("adjusted", "adjusted p", "p", "by Holm's method, for the checks of the model"),
        Column("where", "largest departure", "name"),
        Column("observed", "observed", "g3"),
        Column("expected", "expected", "g3", "mean under the model"),
        Column("z", "in sd", "f1", "departure in standard deviations under the model"),
    ),
    "decisions": (
        Column("model", "model"),
        Column("expected_loss", "expected cost", "f4", "mean cost of a row expected by the model itself"),
        Column("realised_loss", "observed cost", "f4", "mean cost of a held-out row"),
        Column("realised_se", "SE", "f4"),
        Column("firm", "firm decisions", "pct", "posterior probability of being the best action 95 % or more"),
        Column("value_of_information", "value of information", "g3", "expected gain per row from known parameters"),
    ),
    "loo": (
        Column("model", "model"),
        _ELPD, _SE, _DIFF, _DIFF_SE, *_SCORES,
        Column("stacking", "stacking", "f2", "weight in the best mixture"),
        Column("p_eff", "p_eff", "f1", "effective number of parameters"),
        Column("refitted", "refitted", "int", "rows scored by a fit without them, since weighting fails"),
        Column("bad_k", "unreliable", "int", "rows with a bad k̂ that could not be refitted"),
    ),
    "held_out": (Column("model", "model"), _ELPD, _SE, _DIFF, _DIFF_SE, *_SCORES),
    "model_evidence": (
        Column("model", "model"),
        Column("of", "kind"),
        Column("log_evidence", "log evidence", "f2"),
        Column("error", "error", "f3"),
        Column("probability", "probability", "f3", "of the model among those of the same kind"),
    ),
    "sensitivity_models": (
        Column("model", "model"),
        Column("prior", "largest sensitivity, prior", "f3", "limit 0.05"),
        Column("worst", "of", "name"),
        Column("likelihood", "largest sensitivity, likelihood", "f3"),
        Column("marked", "parameters flagged", "int", "sensitivity above the limit"),
        Column("parameters", "of", "int"),
        Column("pareto_k", "largest k̂", "f2", "of the power-scaling weights; reliable below 0.7"),
    ),
    "sensitivity_parameters": (
        Column("parameter", "parameter", "name"),
        Column("prior", "prior", "f3"),
        Column("likelihood", "likelihood", "f3"),
        Column("diagnosis", "diagnosis"),
    ),
    "sensitivity_rows": (
        Column("row", "row", "int"),
        Column("class", "most probable", "name"),
        Column("probability", "probability", "f3"),
        Column("lower", "weaker prior", "f3", "probability under the prior to the lower power"),
        Column("upper", "stronger prior", "f3", "probability under the prior to the higher power"),
        Column("prior", "change per doubling", "f4", "of the power of the prior"),
    ),
    "versions": (Column("package", "package"), Column("version", "version")),
    "timings": (Column("stage", "stage"), Column("seconds", "seconds", "f1"), Column("share", "share", "pct")),
}  # fmt: skip
