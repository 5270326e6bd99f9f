"""What ArviZ can do with a posterior, by name, and what has no meaning for which: the calls of its matrix."""

import warnings

import arviz as az


def loo(posterior):
    return az.loo(posterior, var_name="y", pointwise=True)


FUNCTIONS = {
    "summary": lambda t: az.summary(t),
    "loo": loo,
    "loo of the features": lambda t: az.loo(t, var_name="x"),
    "loo_expectations": lambda t: az.loo_expectations(t, var_name="y", log_likelihood_var_name="y"),
    "loo_pit": lambda t: az.loo_pit(t, var_names="y"),
    "psense_summary": lambda t: az.psense_summary(t),
    "ess": lambda t: az.ess(t),
    "rhat": lambda t: az.rhat(t),
    "mcse": lambda t: az.mcse(t),
    "hdi": lambda t: az.hdi(t),
}


def of_posterior(plot):
    return lambda t, v: getattr(az, f"plot_{plot}")(t, var_names=v, backend="none")


def of_labels(plot, **more):
    return lambda t, v: getattr(az, f"plot_{plot}")(t, var_names=["y"], backend="none", **more)


def first(t, v):
    """The first entry of a variable, which most plots of two axes are about."""
    return t["posterior"][v[0]].isel(dict.fromkeys(t["posterior"][v[0]].dims[2:], 0))


def two_entries(t, v):
    return az.plot_pair(t, var_names=v, coords={t["posterior"][v[0]].dims[-1]: some(t, v)}, backend="none")


def some(t, v):
    return t["posterior"][t["posterior"][v[0]].dims[-1]].to_numpy()[:2].tolist()


def kind(t):
    return "binary" if int(t["observed_data"]["y"].max()) == 1 else "categorical"


PLOTS = {
    **{
        plot: of_posterior(plot)
        for plot in (
            *("autocorr", "convergence_dist", "dgof", "dgof_dist", "dist", "ess", "ess_evolution", "forest", "mcse"),
            *("parallel", "rank", "rank_dist", "ridge", "trace", "trace_dist"),
        )
    },
    **{
        plot: of_labels(plot)
        for plot in (
            *("loo_interval", "loo_pit", "ppc_dist", "ppc_dist_pit", "ppc_interval", "ppc_pit", "ppc_rootogram"),
            "ppc_tstat",
        )
    },
    "loo_pava": lambda t, v: az.plot_loo_pava(t, var_names=["y"], data_type=kind(t), backend="none"),
    "ppc_pava": lambda t, v: az.plot_ppc_pava(t, var_names=["y"], data_type=kind(t), backend="none"),
    "khat": lambda t, v: az.plot_khat(loo(t), backend="none"),
    "compare": lambda t, v: az.plot_compare(az.compare({"a": t, "b": t}, var_name="y"), backend="none"),
    "pair": two_entries,
    "pair_focus": lambda t, v: az.plot_pair_focus(t, var_names=v, focus_var=first(t, v), backend="none"),
    "prior_posterior": of_posterior("prior_posterior"),
    "bf": lambda t, v: az.plot_bf(t, var_names=v, ref_val=0.3, backend="none"),
    "psense_dist": of_posterior("psense_dist"),
    "psense_quantities": of_posterior("psense_quantities"),
    "energy": lambda t, v: az.plot_energy(t, backend="none"),
}
# Plots that no classifier of ours has a use for, and why.
NOT_FOR_US = {
    "collection": "draws what it is given",
    "matrix": "draws what it is given",
    "lm": "of a regression with a continuous outcome",
    "ppc_censored": "of censored times",
    "ppc_pava_residuals": "of one covariate in constant_data; ours is a matrix X (row, feature)",
    "ecdf_pit": "of a group prior_sbc, of simulation-based calibration",
}


def refusal(call, *, generative, proper, several, prior, nuts):
    """Return why a call has no meaning for a posterior; None if it must run.

    Parameters
    ----------
    generative
        Whether its model has a density of the features.
    proper
        Whether its prior has a density.
    several
        Whether it has several variables.
    prior
        Whether there are draws of the prior.
    nuts
        Whether it was sampled by NUTS.
    """
    if call == "loo of the features" and not generative:
        return "features are not modelled"
    if call in ("prior_posterior", "bf") and not prior:
        return "there are no draws of the prior"
    if call.startswith("psense") and not proper:
        return "the prior has no density"
    if call in ("psense_dist", "psense_quantities") and not several:
        return "ArviZ 1.3 takes a posterior of one variable for an array, and fails, whoever made it"
    if call == "energy" and not nuts:
        return "nothing was sampled by NUTS"
    return None


def run(call, tree, variable):
    """Make a call on a posterior; plots are of this variable."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (UserWarning, RuntimeWarning))  # k̂ of few draws
        if call in FUNCTIONS:
            assert FUNCTIONS[call](tree) is not None
        else:
            PLOTS[call](tree, [variable])
