"""The perceptron: all threshold rules are learnt, others are recognised, and Novikoff's bound holds."""

from itertools import combinations, product

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning

from bayes_gda.baselines import Perceptron, Steps
from bayes_gda.baselines.separable import mistake_bound, separating_weights
from bayes_gda.errors import DataError

BOOLEAN = np.array(list(product([0, 1], repeat=4)))
# At least m of the variables: 32 rules over four features; with m = n they are the 15 conjunctions.
RULES = [(m, v) for n in range(1, 5) for v in combinations(range(4), n) for m in range(1, n + 1)]
# The notes' training set of seven rows, (x1, x2, x3, x4, y).
SEVEN = np.array(
    [[0, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 1, 1], [1, 0, 0, 1, 1],
     [0, 1, 1, 0, 0], [1, 1, 0, 0, 0], [0, 1, 0, 1, 0]]
)  # fmt: skip
XOR = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1, 0])


def at_least(m, variables, X):
    return (X[:, list(variables)].sum(axis=1) >= m).astype(int)


def signed(X, y):
    return np.where(y == 1, 1.0, -1.0)[:, None] * np.column_stack([np.ones(len(X)), X])


def textbook(S, epochs):
    """The notes' online algorithm, row by row, with ≤ for <; corrections of each epoch and the weights."""
    w, mistakes = np.zeros(S.shape[1]), []
    for _ in range(epochs):
        count = 0
        for s in S:
            if s @ w <= 0:
                w = w + s
                count += 1
        mistakes.append(count)
        if count == 0:
            break
    return w, mistakes


@pytest.mark.parametrize(
    "model",
    [
        Perceptron(random_state=0),
        Perceptron(shuffle=False),
        Perceptron(online=False),
        Perceptron(normalize=True, random_state=0),
        Perceptron(online=False, normalize=True),
        Perceptron(step=Steps(a=1, b=100), random_state=0),
        Perceptron(online=False, step=Steps(a=1, b=100)),
    ],
    ids=str,
)
def test_all_m_of_n_rules_are_learnt_exactly(model):
    assert len(RULES) == 32
    for m, variables in RULES:
        y = at_least(m, variables, BOOLEAN)
        fitted = clone(model).fit(BOOLEAN, y)
        assert fitted.converged_
        assert fitted.separable_
        assert (fitted.predict(BOOLEAN) == y).all()


def test_the_notes_seven_rows_have_one_m_of_n_rule_and_are_separable():
    X, y = SEVEN[:, :4], SEVEN[:, 4]
    consistent = [(m, v) for m, v in RULES if (at_least(m, v, X) == y).all()]
    assert consistent == [(2, (0, 2, 3))]
    assert Perceptron(random_state=0).fit(X, y).score(X, y) == 1


@pytest.mark.parametrize(("d", "threshold_functions"), [(2, 14), (3, 104)])
def test_as_many_boolean_functions_are_separable_as_there_are_threshold_functions(d, threshold_functions):
    """2, 4, 14, 104, 1882, …: OEIS A000609. The two constant ones have a single class and count without a look."""
    X = np.array(list(product([0, 1], repeat=d)))
    separable = 2
    for y in product([0, 1], repeat=2**d):
        if 0 < sum(y) < 2**d and separating_weights(signed(X, np.array(y))) is not None:
            separable += 1
            assert Perceptron(random_state=0).fit(X, y).score(X, y) == 1
    assert separable == threshold_functions


@pytest.mark.parametrize("online", [True, False])
def test_xor_cannot_be_learnt_and_is_said_so(online):
    with pytest.warns(ConvergenceWarning, match="no hyperplane separates 0 from 1.*Add features such as products"):
        model = Perceptron(online=online, random_state=1, max_epochs=200).fit(*XOR)
    assert not model.converged_
    assert not model.separable_
    # Three of four rows is the best that a line can do. All four cancel in batch, which stays at w = 0.
    assert model.score(*XOR) == (0.75 if online else 0.5)


def test_xor_is_learnt_with_the_product_as_a_feature():
    X, y = XOR
    X = np.column_stack([X, X[:, 0] * X[:, 1]])
    assert Perceptron(random_state=0).fit(X, y).score(X, y) == 1


def test_a_disjunction_of_conjunctions_is_not_separable():
    y = (BOOLEAN[:, 0] & BOOLEAN[:, 1]) | (BOOLEAN[:, 2] & BOOLEAN[:, 3])
    with pytest.warns(ConvergenceWarning, match="no hyperplane"):
        model = Perceptron(random_state=0, max_epochs=50).fit(BOOLEAN, y)
    assert not model.separable_


def test_the_notes_three_points_by_hand():
    """(1, 1) and (½, 3) against (2, 2): w = 0 → (1, 1, 1) → (0, −1, −1) in the first epoch."""
    X, y = np.array([[1.0, 1.0], [0.5, 3.0], [2.0, 2.0]]), np.array([1, 1, 0])
    S = signed(X, y)
    assert textbook(S, 1)[0].tolist() == [0, -1, -1]
    w, mistakes = textbook(S, 1000)
    model = Perceptron(shuffle=False).fit(X, y)
    assert [*model.intercept_, *model.coef_[0]] == w.tolist()
    # The last epoch of the textbook finds nothing to correct; the weights are then known to be right an epoch earlier.
    assert model.learning_curve_["mistakes"].tolist() == mistakes[: model.n_iter_]
    assert sum(mistakes[model.n_iter_ :]) == 0
    assert model.mistakes_ == sum(mistakes)


@pytest.mark.parametrize("normalize", [False, True])
def test_blocks_give_the_textbook_weights(normalize):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3))
    a = X @ [1.0, -2.0, 0.5] + 0.3
    X, y = X[np.abs(a) > 0.1], (a[np.abs(a) > 0.1] > 0).astype(int)
    S = signed(X, y)
    if normalize:
        S = S / np.linalg.norm(S, axis=1, keepdims=True)
    w, mistakes = textbook(S, 1000)
    model = Perceptron(shuffle=False, normalize=normalize).fit(X, y)
    np.testing.assert_allclose([*model.intercept_, *model.coef_[0]], w, rtol=1e-12)
    assert model.mistakes_ == sum(mistakes)


@pytest.mark.parametrize("seed", range(10))
def test_novikoff_bounds_the_corrections(seed):
    rng = np.random.default_rng(seed)
    X, v = rng.normal(size=(200, 3)), np.array([0.3, *rng.normal(size=3)])
    a = (v[0] + X @ v[1:]) / np.linalg.norm(v)
    keep = np.abs(a) > 0.2
    X, y = X[keep], (a[keep] > 0).astype(int)
    gamma, R = np.abs(a[keep]).min(), np.sqrt(1 + (X**2).sum(axis=1)).max()
    model = Perceptron(random_state=seed).fit(X, y)
    assert model.converged_
    assert model.mistakes_ <= (R / gamma) ** 2
    S = signed(X, y)
    assert mistake_bound(S, v) == pytest.approx((R / gamma) ** 2)
    w = separating_weights(S)
    assert (S @ w > 0).all()
    assert model.mistakes_ <= mistake_bound(S, w)


def test_a_factor_of_the_steps_only_scales_the_weights():
    X, y = BOOLEAN, at_least(2, (0, 2, 3), BOOLEAN)
    for online in (True, False):
        one, quarter = (Perceptron(online=online, step=a, shuffle=False).fit(X, y) for a in (1.0, 0.25))
        assert (one.coef_ == 4 * quarter.coef_).all()
        assert one.mistakes_ == quarter.mistakes_


def test_too_few_epochs_on_separable_data_say_so():
    X = np.arange(20.0)[:, None]
    with pytest.warns(ConvergenceWarning, match="a hyperplane separates 'a' from 'b', but 3 epochs.*Raise max_epochs"):
        model = Perceptron(max_epochs=3, random_state=0).fit(X, np.where(X[:, 0] > 14.5, "b", "a"))
    assert model.separable_
    assert not model.converged_
    with pytest.warns(ConvergenceWarning, match="may need more than 1e308 corrections"):
        Perceptron(max_epochs=20).fit([[-5e-161], [-2e-160]], [0, 1])
    with pytest.warns(ConvergenceWarning, match="finite sum"):
        Perceptron(max_epochs=3, step=Steps(power=2), random_state=0).fit(X, X[:, 0] > 14.5)


def test_the_pocket_holds_the_best_weights_of_all_epochs():
    X, y = make_blobs(200, centers=[[0, 0], [1.5, 0]], random_state=0)
    for online in (True, False):
        with pytest.warns(ConvergenceWarning, match="no hyperplane"):
            model = Perceptron(online=online, max_epochs=30, random_state=0).fit(X, y)
        assert (model.predict(X) != y).sum() <= model.learning_curve_["errors"].min()


def test_more_classes_one_against_the_rest():
    X, y = make_blobs(150, centers=[[0, 6], [6, -3], [-6, -3]], random_state=0)
    model = Perceptron(random_state=0).fit(X, y)
    assert model.converged_
    assert model.coef_.shape == (3, 2)
    # Every row is on the right side of all three hyperplanes.
    assert ((model.decision_function(X) > 0) == (y[:, None] == np.arange(3))).all()


def test_iris_names_the_classes_that_are_not_separable():
    data = load_iris()
    labels = data.target_names[data.target]
    with pytest.warns(ConvergenceWarning, match="no hyperplane separates 'versicolor' from the rest and 'virginica'"):
        model = Perceptron(max_epochs=30, random_state=0).fit(data.data, labels)
    setosa = labels == "setosa"
    assert ((model.decision_function(data.data)[:, 0] > 0) == setosa).all()


def test_bad_arguments_are_named():
    X, y = XOR
    for bad in (0, 2.5, True, "10"):
        with pytest.raises(DataError, match="`max_epochs` must be a whole number of at least 1"):
            Perceptron(max_epochs=bad).fit(X, y)
    with pytest.raises(DataError, match="`step` must be finite and greater than 0"):
        Perceptron(step=-1).fit(X, y)
    with pytest.raises(DataError, match="`y` has one class only, 7; a classifier needs at least 2 classes"):
        Perceptron().fit(X, [7, 7, 7, 7])


@pytest.mark.parametrize("online", [True, False])
def test_the_recorded_path_is_made_of_corrections(online):
    X, y = np.array([[1.0, 1.0], [0.5, 3.0], [2.0, 2.0]]), np.array([1, 1, 0])  # the notes' three examples
    model = Perceptron(online=online, shuffle=False, record=True).fit(X, y)
    [path] = model.path_
    assert len(path) == model.mistakes_ + 1
    np.testing.assert_array_equal(path[0], 0)
    np.testing.assert_array_equal(path[-1], [model.intercept_[0], *model.coef_[0]])
    S = signed(X, y)
    for before, step in zip(path, np.diff(path, axis=0), strict=False):
        wrong = S[S @ before <= 0]
        expected = wrong if online else wrong.sum(axis=0, keepdims=True)
        assert (expected == step).all(axis=1).any()
    if online:
        np.testing.assert_array_equal(path[-1], textbook(S, 1000)[0])
    assert not hasattr(Perceptron().fit(X, y), "path_")
