"""The published network: its rows, its predictions, and what it refuses to be."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.probabilities import add_up, conditional
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter, InvalidQuery
from dpublish.methods.privbayes.network import Node, joint_sets
from dpublish.methods.privbayes.released import PrivBayesRelease
from dpublish.methods.privbayes.report import section
from dpublish.privacy.budget import Budget
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import seeded
from dpublish.testing import frequency_p_value

WORK = column("work", "category", taxonomy={"Paid": ["Private", "State"], "Unpaid": {}})
SEX = column("sex", "category", values=["F", "M"])
AGE = column("age", "integer", bounds=[0, 7], branching=2)
CLASS = column("income", "category", values=["low", "high", "none"])
SCHEMA = Schema((AGE, SEX, WORK, CLASS))
NODES = (
    Node("income", 1),
    Node("work", 2, (("income", 1),)),
    Node("age", 2, (("work", 1), ("income", 1))),
    Node("sex", 1, (("age", 1), ("income", 1))),
)


def network(nodes=NODES, counts=None, **changes):
    budget = Budget.seeded(1)
    budget.spend()
    receipt = Receipt.issue(
        method="privbayes",
        settings={},
        budget=budget,
        neighbors=SCHEMA.neighbors,
        rng=seeded(1),
    )
    sizes = [
        int(np.prod([SCHEMA[name].axis(level).size for name, level in one]))
        for one in joint_sets(nodes)
    ]
    if counts is None:
        counts = np.random.Generator(np.random.Philox(6)).integers(-5, 40, sum(sizes))
    settings = {
        "receipt": receipt,
        "schema": SCHEMA,
        "nodes": nodes,
        "counts": counts,
        "noise_rate": Fraction(1, 3),
        "size": 300,
        "size_rate": Fraction(1, 30),
        "target": "income",
    }
    return PrivBayesRelease(**settings | changes)


def chain_distribution(release):
    """Probability of each combination of drawn cells, by the chain rule."""
    distribution = {}
    sizes = [release.axes[node.column].size for node in release.nodes]
    for cells in product(*map(range, sizes)):
        at = dict(zip([node.column for node in release.nodes], cells, strict=True))
        probability = 1.0
        for node in release.nodes:
            row = 0
            for axis in node.axes(SCHEMA)[1:]:
                leaf = release.axes[axis.column].leaf_starts[at[axis.column]]
                row = row * axis.size + int(axis.leaf_to_cell[leaf])
            probability *= release.probabilities[node.column][row, at[node.column]]
        distribution[cells] = probability
    return distribution


def test_what_a_later_joint_holds_is_not_counted_again():
    assert joint_sets(NODES) == (NODES[1].columns, NODES[2].columns, NODES[3].columns)
    assert [joint.shape for joint in network().joints] == [(3, 3), (4, 2, 3), (2, 2, 3)]
    finer = (NODES[0], NODES[1], replace(NODES[2], parents=(("work", 2), ("income", 1))))
    assert joint_sets(finer) == (finer[2].columns,)  # it holds the second node's set, too


def test_counts_add_up_to_coarser_and_fewer_axes_in_any_order():
    counts = np.arange(24.0).reshape(4, 3, 2)
    axes = (AGE.axis(2), WORK.axis(2), SEX.axis(1))
    found = add_up(counts, axes, (WORK.axis(1), AGE.axis(1)))
    by_work = np.stack([counts[:, :2].sum(axis=1), counts[:, 2]])  # work, age, sex
    assert np.array_equal(found, by_work.reshape(2, 2, 2, 2).sum(axis=(2, 3)))
    assert add_up(counts, axes, ()) == counts.sum()


def test_probabilities_add_up_to_one_also_where_nothing_was_counted():
    probabilities = conditional(np.array([[2.0, 0.0, 1.0], [2.0, 0.0, 0.0]]))
    assert probabilities.tolist() == [[0.5, 0.5], [0.6, 0.4], [1.0, 0.0]]
    assert conditional(np.zeros((4, 2))).tolist() == [[0.25] * 4] * 2


def test_rows_follow_the_chain_rule():
    release = network()
    rows = release.rows(20_000, seed=4)
    cells = {}
    for name, axis in release.axes.items():
        codes, _ = SCHEMA[name].encode(rows[name])
        cells[name] = axis.leaf_to_cell[codes]
    seen = list(zip(*(cells[node.column].tolist() for node in NODES), strict=True))
    distribution = chain_distribution(release)
    assert sum(distribution.values()) == pytest.approx(1)
    assert frequency_p_value(seen, distribution) > 1e-4
    # A twin that draws every column by itself has the same marginals and fails.
    alone = {key: np.prod([sum(p for other, p in distribution.items() if other[i] == cell)
                           for i, cell in enumerate(key)]) for key in distribution}  # fmt: skip
    assert frequency_p_value(seen, alone) < 1e-20


def test_rows_are_as_many_as_were_counted_or_wanted_and_repeat_with_their_seed():
    release = network()
    assert release.rows().num_rows == round(release.total)
    assert release.rows(7, seed=1).equals(release.rows(7, seed=1))
    assert release.rows(0).column_names == ["age", "sex", "work", "income"]
    with pytest.raises(InvalidParameter):
        release.rows(-1)


def test_nothing_but_negative_counts_gives_uniform_rows():
    release = network(counts=np.full(45, -10), size=-100)
    assert release.total == 0
    assert release.rows().num_rows == 0
    assert all(np.ptp(probabilities) == 0 for probabilities in release.probabilities.values())
    assert release.rows(5, seed=1).num_rows == 5


def leaves_of(names):
    codes = np.array(list(product(*(range(SCHEMA[name].size) for name in names))))
    return {name: codes[:, index] for index, name in enumerate(names)}


@pytest.mark.parametrize("start", [0, 1])
def test_the_predicted_class_has_the_highest_joint_probability(start):
    nodes = NODES
    if start:  # the class comes last
        nodes = (
            Node("work", 2),
            Node("age", 3),
            Node("sex", 1),
            Node("income", 1, (("age", 2), ("work", 1))),
        )
    sizes = sum(int(np.prod([SCHEMA[n].axis(at).size for n, at in one]))
                for one in joint_sets(nodes))  # fmt: skip
    release = network(nodes, counts=np.random.Generator(np.random.Philox(2)).integers(9, 40, sizes))
    distribution, order = chain_distribution(release), [node.column for node in nodes]
    codes = leaves_of(["age", "sex", "work"])
    found = release.predict_codes(codes)
    for row, predicted in enumerate(found):
        cells = {n: int(release.axes[n].leaf_to_cell[codes[n][row]]) for n in codes}
        probabilities = [
            distribution[tuple((cells | {"income": y})[n] for n in order)] for y in range(3)
        ]
        assert probabilities[predicted] == pytest.approx(max(probabilities))
    assert len(set(found.tolist())) > 1


def test_an_unknown_value_says_nothing():
    release = network(counts=np.random.Generator(np.random.Philox(2)).integers(9, 40, 45))
    size = np.full(1, -1)
    blind = release.predict_codes({"age": size, "sex": size, "work": size})
    assert blind.tolist() == [int(np.argmax(release.probabilities["income"][0]))]
    rows = pa.table({"age": [None, 3], "sex": ["?", "F"], "work": ["Paid", "State"]})
    labels = release.predict(rows).to_pylist()
    assert labels[0] == CLASS.axis().labels[blind[0]]
    known = {"age": np.array([3]), "sex": np.array([0]), "work": np.array([1])}
    assert labels[1] == CLASS.axis().labels[release.predict_codes(known)[0]]


def test_a_network_of_the_class_alone_predicts_the_most_frequent():
    alone = network(
        (Node("income", 1),), counts=np.array([3, 9, 1]), schema=Schema((CLASS,))
    )  # fmt: skip
    assert alone.predict(pa.table({"note": [1, 2]})).to_pylist() == ["high", "high"]


def test_without_a_target_nothing_is_predicted():
    with pytest.raises(InvalidQuery, match="target"):
        network(target=None).predict(pa.table({"age": [1]}))


def test_it_is_rebuilt_from_its_parts():
    release = network()
    metadata = json.loads(json.dumps(release.metadata()))
    parts = {"receipt": release.receipt, "schema": release.schema}
    assert (
        PrivBayesRelease.from_parts(**parts, metadata=metadata, tables=release.tables()) == release
    )
    assert network(size=301) != release
    assert network(counts=release.counts + 1) != release


BAD = [
    {"nodes": ()},
    {"nodes": NODES[:3]},
    {"nodes": (*NODES, NODES[0])},
    {"nodes": (NODES[1], NODES[0], *NODES[2:])},
    {"nodes": (replace(NODES[0], level=0), *NODES[1:])},
    {"nodes": (replace(NODES[0], level=True), *NODES[1:])},
    {"nodes": (replace(NODES[0], level=5), *NODES[1:])},
    {"nodes": (*NODES[:3], Node("sex", 1, (("age", 3),)))},
    {"nodes": (*NODES[:3], Node("sex", 1, (("age", 1), ("age", 2))))},
    {"nodes": (*NODES[:3], Node("sex", 1, (("sex", 1),)))},
    {"nodes": (*NODES[:3], Node("wealth", 1))},
    {"counts": np.zeros(44, dtype=np.int64)},
    {"counts": np.zeros(45)},
    {"noise_rate": 0.5},
    {"size": 3.5},
    {"target": "age"},
    {"target": "wealth"},
]


@pytest.mark.parametrize("bad", BAD)
def test_what_no_method_publishes_is_refused(bad):
    good = network()
    with pytest.raises(InvalidParameter):
        replace(good, **bad)


def test_marginals_are_sums_of_noisy_counts():
    release = network()
    marginal = release.marginal("age")
    assert marginal.counts.tolist() == release.joints[1].sum(axis=(1, 2)).tolist()
    assert marginal.labels == AGE.axis(2).labels
    assert marginal.half_width > network().expected_error()["one_cell_95"]


def test_the_report_lists_what_depends_on_what():
    shown = section(network(), with_charts=True)
    assert [row[1] for row in shown.listings[0].rows] == [
        "nothing",
        "income (3)",
        "work (2), income (3)",
        "age (2), income (3)",
    ]
    assert len(shown.figures) == 5
    assert "predict" in shown.python
    assert "predict" not in section(network(target=None), with_charts=False).python
