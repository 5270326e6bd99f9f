"""Faults that once survived the tests of their subject, by hand: `make mutants` tries them before all others."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Named:
    """A fault: what stands in a module, what is put in its place, and the tests that must find it out."""

    module: str
    before: str
    after: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        """What it is called in the tables."""
        return f"{self.module} by hand: {self.before} -> {self.after} #0"


_TRUST = ("tests/methods/importance/test_trust.py",)
_LKJ = ("tests/families/gaussian/test_lkj.py",)
_DENSITIES = ("tests/families/test_densities.py",)
_NUTS = ("tests/methods/nuts/test_behaviour.py",)

NAMED = (
    Named("bayes_gda/families/gaussian/lkj.py", "(p.eta - 1) * log_det_R", "p.eta * log_det_R", _LKJ),
    Named(
        "bayes_gda/families/gaussian/lkj.py",
        "2 * self.prior.eta - 2 + d",
        "2 * self.prior.eta - 1 + d",
        _DENSITIES,
    ),
    Named("bayes_gda/methods/importance/trust.py", "STEADY = 0.995", "STEADY = 0.9", _TRUST),
    Named("bayes_gda/methods/importance/trust.py", "ENOUGH = 400.0", "ENOUGH = 40.0", _TRUST),
    Named(
        "bayes_gda/methods/importance/trust.py",
        "shift.largest + ERRORS * shift.error <= tolerance",
        "shift.largest <= tolerance",
        _TRUST,
    ),
    Named("bayes_gda/methods/importance/trust.py", "SHARE_TOLERANCE = 0.5", "SHARE_TOLERANCE = 0.0", _TRUST),
    Named(
        "bayes_gda/methods/importance/trust.py",
        "smooth(log_p - (logsumexp(log_q, axis=0) - np.log(len(proposals))))",
        "smooth(log_p - log_q[-1])",
        _TRUST,
    ),
    Named(
        "bayes_gda/methods/importance/proposal.py",
        "INFLATION = 1.1",
        "INFLATION = 1.0",
        ("tests/methods/importance/test_without.py",),
    ),
    Named(
        "bayes_gda/evaluation/distances.py",
        "np.random.default_rng(random_seed).permuted(label[:, 1:], axis=0)",
        "label[:, 1:]",
        ("tests/evaluation/test_distances.py",),
    ),
    Named("bayes_gda/methods/nuts/sampling.py", "OVERDISPERSION = 1.5", "OVERDISPERSION = 0.0", _NUTS),
    Named(
        "bayes_gda/methods/nuts/sampling.py",
        "QuadPotentialFull(shape) if n <= DENSE_LIMIT else QuadPotentialDiag(np.diag(shape))",
        "QuadPotentialFull(np.eye(n))",
        _NUTS,
    ),
    Named("bayes_gda/methods/hmc/split.py", "OVERDISPERSION = 1.5", "OVERDISPERSION = 0.0", ("tests/methods/hmc",)),
    Named(
        "bayes_gda/methods/ladder.py",
        '"random_seed": settings.random_seed,',
        '"random_seed": 0,',
        ("tests/methods/test_ladder.py",),
    ),
    Named(
        "bayes_gda/families/gaussian/novelty.py",
        "    rng = np.random.default_rng(random_seed)\n    ",
        "    rng = np.random.default_rng(0)\n    ",
        ("tests/families/gaussian/test_novelty.py",),
    ),
    Named(
        "bayes_gda/evaluation/calibration.py",
        "np.random.default_rng(random_seed)",
        "np.random.default_rng(0)",
        ("tests/evaluation/test_calibration.py",),
    ),
    Named("bayes_gda/evaluation/loo.py", "SMALL, BEYOND = 4.0, 2.0", "SMALL, BEYOND = 0.0, 2.0", ("tests/evaluation",)),
    Named(
        "bayes_gda/evaluation/loo.py", "SUM_TOLERANCE = 1e-6", "SUM_TOLERANCE = 1e-2", ("tests/evaluation/test_loo.py",)
    ),
    Named(
        "bayes_gda/families/gaussian/exact.py",
        "COLLINEAR = 1e-12",
        "COLLINEAR = 0.0",
        ("tests/families/gaussian/test_exact.py",),
    ),
    Named(
        "bayes_gda/data/moments.py",
        "slack = 1e-9 * self.count",
        "slack = 0 * self.count",
        ("tests/data/test_moments.py",),
    ),
    Named(
        "bayes_gda/store/rules.py",
        "nu=posterior.nu - (d - 1), alpha=posterior.alpha)",
        "nu=posterior.nu - (d - 1))",
        ("tests/store/test_rules.py",),
    ),
    Named(
        "bayes_gda/methods/laplace.py",
        "value + SUFFICIENT * slope * t - rounding",
        "value - SUFFICIENT * slope * t - rounding",
        ("tests/methods/test_laplace.py",),
    ),
    Named("bayes_gda/store/files.py", "        _sync_folder(target.parent)\n", "", ("tests/store/test_files.py",)),
)
