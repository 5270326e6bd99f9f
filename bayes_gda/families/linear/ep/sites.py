"""Logistic sites: the Gaussian factors that stand for σ(±a)ᶜ in expectation propagation.

A unit is one factor σ(sa)ᶜ, s = ±1, 0 < c ≤ 1, of an activation a = wᵀφ. Its site e^{νa − τa²/2} is such that, with the
cavity N(a | μ_c, v_c) in front, site and factor give the same mean and variance:

    cavity   v_c = v/(1 − vτ),   μ_c = v_c(μ/v − ν)                       (μ, v) the moments of a under the Gaussian
    tilted   log Z = log ∫ σ(sa)ᶜ N(a | μ_c, v_c) da, ℓ_k its k-th derivative in μ_c, γ = −ℓ₂, D = 1 − γv_c
    site     τ = γ/D,   ν = (ℓ₁ + γμ_c)/D

The tilted third cumulant is v_c³ℓ₃, and v = v_cD once the moments agree, so u₃ = −ℓ₃/D³ is the third derivative of the
potential that the site leaves out: κ₃ = −u₃v³.

For small v there is no need of a cavity. With f = c log σ(sa) and its derivatives at μ, Stein's identities of the
tilted density give ν − τμ = E f′ and τ = −E[(a − μ)f′]/v under it; its third moment is v³f₃ to leading order, hence

    τ = −f₂ − vf₄/2 − v²(f₃²/2 + f₆/8),   ν = τμ + f₁ + vf₃/2 + v²f₅/8,   u₃ = −f₃ − vf₅/2       up to O(v³), O(v²)
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, ndtr

from bayes_gda.checks import Floats
from bayes_gda.families.linear.links import MIXTURE_SCALES, MIXTURE_WEIGHTS
from bayes_gda.families.linear.logistic import sigmoid

# Up to this variance the expansion serves: τ, the slope and the log ratio are off by less than 3e-5, for an eighth of
# the mixture's cost. Rows of a table that is long for its width are below: v is some 6m/n.
SMALL = 0.1
# The mixture has an absolute error of 2e-9; with v_c up to 36 Z is above 1e-3 (after the reflection), so that relative
# errors stay below 1e-5. Beyond, and for powers c < 1, the trapezoid takes over.
WIDE = 36.0
# Log-concavity: the tilted density falls at least as fast as N(0, v_c) on both sides of its mode, e^{−30} at 7.75 sd.
REACH = 7.75
# Nodes of the trapezoid for v_c ≤ 4 and beyond. A step of h in the activation errs by e^{−2π²/h}, for the poles of
# log σ at ±iπ: 2e-9 at h = 15.5·2/32; 1e-7 at h = 15.5·10/128.
NODES, MANY_NODES, FEW = 32, 128, 4.0
# The cavity's precision may not vanish, nor the tilted variance: the share of either that is left at least.
LEAST = 1e-9
# Where no site is kept, `match` begins with the expansion, and leaves the cavity at least this share of the precision.
# A step then leaves some .1 v of the error; it stops at a hundredth of what a pass may leave.
FIRST_CAVITY = 0.01
INNER_STEPS = 30
INNER_TOLERANCE = 1e-5


class Sites(NamedTuple):
    """Sites of n units, (n,) each.

    Parameters
    ----------
    tau
        τ, the precision.
    slope
        ν − τμ, the derivative at μ of the site's logarithm, which adds to the gradient.
    log_ratio
        log of ∫factor/∫site over the cavity, the site being written e^{slope(a − μ) − τ(a − μ)²/2}: its evidence.
    third
        u₃.
    """

    tau: Floats
    slope: Floats
    log_ratio: Floats
    third: Floats


def update(mu: Floats, v: Floats, tau: Floats, nu: Floats, sign: Floats, power: Floats) -> Sites:
    """Return the sites that match moments, from the Gaussian's moments and the present sites.

    Parameters
    ----------
    mu, v
        (n,) mean and variance of each activation.
    tau, nu
        (n,) present sites of one unit each, which the cavity leaves out.
    sign
        (n,) s, 1 for a success and −1 for a failure.
    power
        (n,) c.
    """
    out = expand(mu, v, sign, power)
    wide = _wide(v, power)
    if len(wide):
        for every, values in zip(out, _match(*(x[wide] for x in (mu, v, tau, nu, sign, power))), strict=True):
            every[wide] = values
    return out


def match(mu: Floats, v: Floats, sign: Floats, power: Floats) -> Sites:
    """Return the sites that match moments, from the Gaussian's moments alone: `update` repeated to its fixed point.

    Where v is so large that no cavity leads to it (as v > π² at μ = 0 and c = 1, the variance of σ(a)σ(−a), before all
    sites agree), the last step stands with a log ratio of nan.
    """
    out = expand(mu, v, sign, power)
    wide = _wide(v, power)
    if not len(wide):
        return out
    mu, v, sign, power = (x[wide] for x in (mu, v, sign, power))
    tau, slope = out.tau[wide], out.slope[wide]
    limit = (1 - FIRST_CAVITY) / v
    for _ in range(INNER_STEPS):
        tau = np.minimum(tau, limit)
        site = _match(mu, v, tau, slope + tau * mu, sign, power)
        moved = np.abs(site.tau - tau) * v > INNER_TOLERANCE
        tau, slope = site.tau, site.slope
        if not moved.any():
            break
    site.log_ratio[moved] = np.nan
    for every, values in zip(out, site, strict=True):
        every[wide] = values
    return out


def _wide(v: Floats, power: Floats) -> NDArray[np.intp]:
    """Return which units the expansion does not serve."""
    return np.flatnonzero((v > SMALL) & (power > 0))


def expand(mu: Floats, v: Floats, sign: Floats, power: Floats) -> Sites:
    """Return the sites by the expansion for small v, without regard to present ones.

    With q = N(μ, v) and g = log(factor/site), log E_q e^g = f₀ − v²f₄/8 − v³(f₃²/6 + f₆/24) up to O(v⁴).
    """
    p, q, e = sigmoid(mu)
    w, d = p * q, q - p
    f1 = power * np.where(sign > 0, q, -p)
    # f₂ = −cw, f₃ = −cwδ, f₄ = −cw(1 − 6w), f₅ = −cwδ(1 − 12w), f₆ = −cw(1 − 30w + 120w²); δ = q − p, δ² = 1 − 4w
    u2 = power * w
    u3, u4, u5, u6 = u2 * d, u2 * (1 - 6 * w), u2 * d * (1 - 12 * w), u2 * (1 - 30 * w + 120 * w * w)
    tau = u2 + v * (0.5 * u4 + v * (u6 / 8 - 0.5 * u3 * u3))
    slope = f1 - v * (0.5 * u3 + v * u5 / 8)
    log_factor = power * (np.minimum(sign * mu, 0) - np.log1p(e))
    log_ratio = log_factor + v * v * (u4 / 8 + v * (u6 / 24 - u3 * u3 / 6))
    return Sites(tau, slope, log_ratio, u3 + 0.5 * v * u5)


def _match(mu: Floats, v: Floats, tau: Floats, nu: Floats, sign: Floats, power: Floats) -> Sites:
    vc = v / np.maximum(1 - v * tau, LEAST)
    mc = vc * (mu / v - nu)
    log_z, l1, l2, l3 = tilted(sign * mc, vc, power)
    l1, l3 = sign * l1, sign * l3
    gamma = np.maximum(-l2, 0)  # log-concave
    D = np.maximum(1 - gamma * vc, LEAST)
    shift = mc - mu
    tau, slope = gamma / D, (l1 + gamma * shift) / D
    # log ∫N(a | μ_c, v_c) e^{slope(a − μ) − τ(a − μ)²/2} da, with 1/v_c + τ = 1/(v_cD)
    log_site = 0.5 * (np.log(D) + vc * D * (shift / vc + slope) ** 2 - shift * shift / vc)
    return Sites(tau, slope, log_z - log_site, -l3 / D**3)


def tilted(mu: Floats, v: Floats, power: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return log ∫σ(a)ᶜ N(a | μ, v)da and its first three derivatives in μ, (n,) each.

    For c = 1 by the mixture, Z = Σ p_kΦ(t_kμ), t_k = s_k/√(1 + s_k²v), where μ < −v/2 after the reflection
    log Z(μ) = μ + v/2 + log Z(−μ − v); else by the trapezoid.
    """
    reflected = mu < -v / 2
    x = np.where(reflected, -mu - v, mu)
    rough = np.flatnonzero((power < 1) | ((v > WIDE) & (x < 0)))
    if len(rough) == len(mu):
        return _trapezoid(mu, v, power)
    z0, z1, z2, z3 = np.zeros((4, *mu.shape))
    for p, s in zip(MIXTURE_WEIGHTS, MIXTURE_SCALES, strict=True):
        t = v * (s * s)
        t += 1
        np.sqrt(t, out=t)
        np.divide(s, t, out=t)
        z = t * x
        cumulative = ndtr(z)
        cumulative *= p
        z0 += cumulative
        # e = p t φ(z), the first derivative; then tφ′ = −z t²φ and t³(z² − 1)φ
        square = z * z
        e = np.exp(-0.5 * square)
        e *= t
        e *= p / np.sqrt(2 * np.pi)
        z1 += e
        e *= t
        z *= e
        z2 -= z
        square -= 1
        e *= t
        e *= square
        z3 += e
    z0[rough] = 1.0  # may be 0, and the trapezoid has these
    z1 /= z0
    z2 /= z0
    z3 /= z0
    l1, l2, l3 = z1, z2 - z1 * z1, z3 + z1 * (2 * z1 * z1 - 3 * z2)
    log_z = np.log(z0) + np.where(reflected, mu + 0.5 * v, 0)
    out = log_z, np.where(reflected, 1 - l1, l1), l2, np.where(reflected, -l3, l3)
    if len(rough):
        for all_rows, rows in zip(out, _trapezoid(mu[rough], v[rough], power[rough]), strict=True):
            all_rows[rough] = rows
    return out


def _trapezoid(mu: Floats, v: Floats, power: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Log Z and derivatives from the central moments of the tilted density, by equal steps about its mode."""
    out = tuple(np.empty(mu.shape) for _ in range(4))
    for rows, nodes in ((np.flatnonzero(v <= FEW), NODES), (np.flatnonzero(v > FEW), MANY_NODES)):
        step = max(1, 2**16 // nodes)
        for i in range(0, len(rows), step):
            block = rows[i : i + step]
            for all_rows, values in zip(out, _tilted_moments(mu[block], v[block], power[block], nodes), strict=True):
                all_rows[block] = values
    return out[0], out[1], out[2], out[3]


def _tilted_moments(mu: Floats, v: Floats, c: Floats, nodes: int) -> tuple[Floats, Floats, Floats, Floats]:
    # The mode solves x = μ + cvσ(−x); Newton's method on this increasing function of x, which is convex or concave on
    # either side of 0, from the end of the bracket [μ, μ + cv] that it approaches monotonically; 1e-3 sd is enough.
    mode = mu + c * v * sigmoid(mu + 0.5 * c * v)[1]
    for _ in range(8):
        p, q, _ = sigmoid(mode)
        mode = np.clip(mode - (mode - mu - c * v * q) / (1 + c * v * p * q), mu, mu + c * v)
    h = 2 * REACH / nodes
    grid = h * (np.arange(nodes) + 0.5) - REACH
    sd = np.sqrt(v)
    a = mode + grid[:, None] * sd
    log_f = c * log_expit(a) - 0.5 * (grid[:, None] + (mode - mu) / sd) ** 2
    top = log_f.max(axis=0)
    weight = np.exp(log_f - top)
    total = weight.sum(axis=0)
    weight /= total
    mean = np.einsum("jn,jn->n", weight, a)
    a -= mean
    square = a * a
    variance = np.einsum("jn,jn->n", weight, square)
    third = np.einsum("jn,jn->n", weight, np.multiply(square, a, out=square))
    log_z = top + np.log(total * (h / np.sqrt(2 * np.pi)))
    # ℓ₁ = (E a − μ)/v, ℓ₂ = (Var a/v − 1)/v, ℓ₃ = κ₃/v³
    return log_z, (mean - mu) / v, (variance / v - 1) / v, third / v**3
