"""Labelled draws: every variable has the dims of the notation table, and a label finds its own numbers."""

import numpy as np
import pytest

from bayes_gda._version import __version__
from bayes_gda.data.examples import load_example
from bayes_gda.data.labels import coordinates, to_datatree
from bayes_gda.data.moments import Moments
from bayes_gda.families.gaussian.exact import lda_posterior, naive_posterior, qda_posterior
from bayes_gda.priors import NIG, NIW

IRIS = load_example("iris")
MOMENTS = Moments.from_arrays(IRIS.X, IRIS.y, 3)
COORDS = coordinates(class_names=IRIS.class_names, feature_names=IRIS.feature_names)
PAIR = ("feature", "feature_bis")


@pytest.mark.parametrize(
    ("make", "family", "spread"),
    [
        (lda_posterior, NIW, {"Sigma": PAIR}),
        (qda_posterior, NIW, {"Sigma": ("class", *PAIR)}),
        (naive_posterior, NIG, {"sigma2": ("class", "feature")}),
    ],
    ids=["lda", "qda", "naive"],
)
def test_a_label_finds_the_draws_of_its_class_and_feature(make, family, spread):
    draws = make(MOMENTS, family.default(MOMENTS)).draw(20, random_seed=0)
    posterior = to_datatree(draws, COORDS)["posterior"]
    dims = {"pi": ("class",), "mu": ("class", "feature"), **spread}
    assert {name: posterior[name].dims for name in posterior.data_vars} == {
        name: ("chain", "draw", *inner) for name, inner in dims.items()
    }
    for k, label in enumerate(IRIS.class_names):
        np.testing.assert_array_equal(posterior["pi"].sel({"class": label})[0], draws["pi"][:, k])
        for j, feature in enumerate(IRIS.feature_names):
            found = posterior["mu"].sel({"class": label, "feature": feature})[0]
            np.testing.assert_array_equal(found, draws["mu"][:, k, j])
    # A covariance carries the names of the features twice, and is symmetric in them.
    if "Sigma" in draws:
        a, b = IRIS.feature_names[:2]
        one, other = ({"feature": a, "feature_bis": b}, {"feature": b, "feature_bis": a})
        np.testing.assert_array_equal(posterior["Sigma"].sel(one), posterior["Sigma"].sel(other))


def test_weights_have_a_class_only_if_every_class_has_its_own():
    coords = coordinates(class_names=["no", "yes"], coefficient_names=["intercept", "a", "b"])
    binary = to_datatree({"w": np.zeros((10, 3)), "tau": np.ones(10)}, coords)["posterior"]
    assert binary["w"].dims == ("chain", "draw", "coefficient")
    assert binary["tau"].dims == ("chain", "draw")
    assert set(binary.coords) == {"chain", "draw", "coefficient"}  # no variable here has classes
    softmax = to_datatree({"w": np.zeros((10, 2, 3))}, coords)["posterior"]
    assert softmax["w"].dims == ("chain", "draw", "class", "coefficient")
    assert softmax["class"].to_numpy().tolist() == ["no", "yes"]


def test_chains_are_consecutive_parts_of_the_draws():
    w = np.arange(24.0).reshape(12, 2)
    coords = {"coefficient": ["intercept", "a"]}
    posterior = to_datatree({"w": w}, coords, chains=3)["posterior"]
    assert dict(posterior.sizes) == {"chain": 3, "draw": 4, "coefficient": 2}
    for chain in range(3):
        np.testing.assert_array_equal(posterior["w"].sel(chain=chain), w[4 * chain : 4 * (chain + 1)])
    with pytest.raises(ValueError, match="reshape"):
        to_datatree({"w": w}, coords, chains=5)


@pytest.mark.parametrize(
    ("class_names", "labels"),
    [((0, 1), ["0", "1"]), ((False, True), ["False", "True"]), (("a", "b"), ["a", "b"])],
)
def test_labels_of_classes_are_text(class_names, labels):
    """Coordinates of other types would not be the same after a file."""
    assert coordinates(class_names=class_names) == {"class": labels}


def test_variables_of_other_models_are_numbered_unless_their_dims_are_given():
    draws = {"beta": np.zeros((6, 2, 3)), "w": np.zeros((6, 2))}
    numbered = to_datatree(draws, {"coefficient": ["p", "q"]})["posterior"]
    assert numbered["beta"].dims == ("chain", "draw", "beta_dim_0", "beta_dim_1")
    assert numbered["w"].dims == ("chain", "draw", "coefficient")
    given = to_datatree(draws, {"site": ["north", "south"]}, dims={"beta": ("site", None)})["posterior"]
    assert given["beta"].dims == ("chain", "draw", "site", "beta_dim_1")
    assert given["site"].to_numpy().tolist() == ["north", "south"]


def test_labels_must_be_as_many_as_the_values():
    with pytest.raises(ValueError, match="class"):
        to_datatree({"pi": np.full((5, 3), 1 / 3)}, coordinates(class_names=["a", "b"]))


def test_the_posterior_says_who_made_it():
    attrs = to_datatree({"pi": np.ones((2, 2))}, {}, attrs={"method": "exact", "seed": 3})["posterior"].attrs
    assert attrs == {
        "inference_library": "bayes_gda",
        "inference_library_version": __version__,
        "method": "exact",
        "seed": 3,
    }
