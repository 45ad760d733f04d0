"""Advice depends on public facts alone, and what it names can be published as it says."""

import inspect
import shlex
from fractions import Fraction

import pytest

import dpublish
from dpublish import datasets
from dpublish.cli.output import settings_from
from dpublish.cli.release import release
from dpublish.cli.stream import start
from dpublish.core.catalog import CATALOG, STREAMS
from dpublish.core.settings import make_method
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.ledger.ledger import Ledger
from dpublish.methods.streams.method import make_stream_method
from dpublish.planning.advice_rules import CONTRIBUTION, RULES, Facts, listed, propose
from dpublish.planning.advise import EPSILONS, Advice, advise
from dpublish.planning.goals import GOALS, Goal
from dpublish.publishing.plan import plan

CENSUS, HOSPITAL = datasets.schema("census"), datasets.schema("hospital")
STRANGE = Schema(
    (
        column("family name", "category", values=["a b", "c"]),
        column("-1", "integer", bounds=[0, 9]),
        column("'$(rm)'", "numeric", bounds=[0, 1]),
    )
)
ASKED = {
    "census": (
        *("rows", "rows:age,sex", "counts", "counts:age", "counts:age,sex"),
        *("counts:age,sex,education,work,hours,region,income", "statistics"),
        *("statistics:hours", "statistics:age,sex,region", "classify:income", "classify:work"),
        *("model:income", "model:age", "clusters", "clusters:age", "top", "top:work"),
        *("stream:sex", "stream:sex,region"),
    ),
    "hospital": (
        *("rows", "counts", "counts:ward,sex", "statistics:age,ward", "classify:ward"),
        *("model:readmitted", "clusters", "clusters:home_east,home_north", "top:diagnosis"),
        *("stream:ward",),
    ),
    "baskets": ("counts", "top", "rows", "stream:item"),
    "loans": ("rows", "classify:repaid", "model:repaid", "clusters", "statistics", "counts"),
    "points": ("rows", "clusters", "counts:x1,x2", "counts:x1,x2,x3", "statistics"),
    "shapes": ("rows", "clusters", "counts:x,y", "top:x"),
}
ALL = [(name, goal) for name, goals in ASKED.items() for goal in goals]


def steps(goal):
    return {"horizon": 100} if goal.startswith("stream") else {}


def read_back(command):
    """Build the method that a command runs, as the command line reads it; and its options."""
    program, *words = shlex.split(command)
    assert program == "dpublish"
    parser, own = (start, 2) if words[:2] == ["stream", "start"] else (release, 1)
    with parser.make_context("dpublish", words[own:]) as context:
        given, settings = context.params, settings_from(context.args, ())
    make = make_stream_method if given["method"] in STREAMS else make_method
    return make(given["method"], settings), given


def test_every_task_has_a_rule_and_is_asked_for_here():
    assert set(RULES) == set(GOALS) == {goal.partition(":")[0] for _, goal in ALL}
    assert set(ASKED) == set(datasets.NAMES)


@pytest.mark.parametrize("n_records", [None, 50, 20_000])
@pytest.mark.parametrize(("name", "goal"), ALL)
def test_every_goal_gets_one_or_two_methods_whose_commands_say_what_is_meant(name, goal, n_records):
    schema = datasets.schema(name)
    advice = advise(schema, goal, n_records=n_records, **steps(goal))
    assert isinstance(advice, Advice)
    assert 1 <= len(advice.choices) <= 2
    for choice in advice.choices:
        assert choice.name in {**CATALOG, **STREAMS}
        assert choice.epsilon == advice.epsilon
        method, given = read_back(choice.command(dataset="people"))
        assert method == choice.method
        assert Fraction(given["epsilon"]) == advice.epsilon
        assert given["dataset"] == "people"
        predicted = plan(method, schema, epsilon=advice.epsilon, n_records=n_records)
        assert predicted.summary in choice.gives
        assert dict(choice.expected_error) == dict(predicted.figures)
        assert any(column in choice.why for column in schema.names)


@pytest.mark.parametrize(("name", "goal"), ALL)
def test_advice_is_a_function_of_public_facts(name, goal):
    first, again = (advise(datasets.schema(name), goal, epsilon="1/2", **steps(goal)),) * 2
    assert first == again
    assert first == advise(datasets.schema(name), Goal.parse(goal), epsilon="0.5", **steps(goal))


def test_no_data_can_be_handed_over():
    taken = set(inspect.signature(advise).parameters)
    assert taken == {
        *("schema", "goal", "n_records", "epsilon", "ledger", "dataset"),
        *("n_clusters", "horizon", "window"),
    }
    assert dpublish.advise is advise


@pytest.mark.parametrize(
    ("goal", "figure", "per", "most"),
    [
        ("counts:age,sex", "one_cell_95", "records_per_cell", 0.1),
        ("counts", "range_count_95_per_record", None, 0.02),
        ("statistics:age,region", "worst_relative_error_95", None, 0.1),
        ("top:work", "omitted_excess_95_per_record", None, 0.01),
        ("stream:sex", "one_bin_95", "records_per_bin", 0.1),
    ],
)
@pytest.mark.parametrize("n_records", [1_000, 4_000, 15_000, 60_000])
def test_the_proposed_epsilon_is_the_smallest_that_theory_finds_useful(
    goal, figure, per, most, n_records
):
    advice = advise(CENSUS, goal, n_records=n_records, **steps(goal))

    def error(epsilon):
        figures = plan(
            advice.choices[0].method, CENSUS, epsilon=epsilon, n_records=n_records
        ).figures
        return figures[figure] / (figures[per] if per else 1)

    if "smallest" in advice.epsilon_why:
        assert error(advice.epsilon) <= most
    else:
        assert advice.epsilon == EPSILONS[-1]
        assert "it takes more" in advice.epsilon_why
        assert error(advice.epsilon) > most
    for smaller in EPSILONS[: EPSILONS.index(advice.epsilon)]:
        assert error(smaller) > most


@pytest.mark.parametrize("goal", ["rows", "classify:income", "model:income", "clusters"])
def test_where_no_formula_helps_advice_says_so(goal):
    advice = advise(CENSUS, goal, n_records=20_000)
    assert advice.epsilon == 1
    assert "no formula" in advice.epsilon_why
    assert "rehearse" in advice.choices[0].gives


def test_without_a_size_nothing_is_claimed_about_what_suffices():
    advice = advise(CENSUS, "counts:age,sex")
    assert advice.epsilon == 1
    assert "--rows" in advice.epsilon_why


def test_no_more_is_proposed_than_a_dataset_has_left(tmp_path):
    with Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("people", cap="0.3")
        ledger.add("poor", cap="0.01")
        advice = advise(CENSUS, "rows", ledger=ledger, dataset="people")
        assert advice.epsilon == Fraction(1, 5)
        assert "0.3 is left" in advice.epsilon_why
        with pytest.raises(InvalidParameter, match=r"0\.01 left.*--epsilon"):
            advise(CENSUS, "rows", ledger=ledger, dataset="poor")
        with pytest.raises(InvalidParameter, match="dataset="):
            advise(CENSUS, "rows", ledger=ledger)
    assert advise(CENSUS, "rows", ledger=tmp_path / "books.db", dataset="people") == advice


def test_a_unit_is_bounded_and_the_note_says_how():
    (choice,) = advise(HOSPITAL, "counts:ward,sex").choices
    assert choice.settings["contribution"] == str(CONTRIBUTION)
    assert any("'patient_id'" in note and "--contribution" in note for note in choice.notes)
    (ranking,) = advise(HOSPITAL, "top:diagnosis").choices
    assert "contribution" not in ranking.settings  # it hides units as it is
    (plain,) = advise(CENSUS, "counts:age,sex").choices
    assert "contribution" not in plain.settings


def test_a_stream_of_rows_without_a_unit_is_vouched_for():
    (choice,) = advise(CENSUS, "stream:sex", horizon=100).choices
    assert choice.is_stream
    assert "--trust-rows" in choice.command()
    assert any("vouches" in note for note in choice.notes)
    (bounded,) = advise(HOSPITAL, "stream:ward", window=24).choices
    assert bounded.name == "dsat-w"
    assert "trust_rows" not in bounded.settings


def test_few_steps_get_a_histogram_each():
    assert [c.name for c in advise(CENSUS, "stream:sex", horizon=4).choices] == [
        "per-snapshot",
        "dsat",
    ]
    assert [c.name for c in advise(CENSUS, "stream:sex", horizon=500).choices] == ["dsat"]


def test_names_are_quoted_so_that_a_shell_reads_them_back():
    advice = advise(STRANGE, "counts:family name,-1,'$(rm)'")
    command = advice.choices[0].command(data="my data.csv", output="-o; ls", dataset="it's")
    method, given = read_back(command)
    assert method == advice.choices[0].method
    assert given["data"] == "my data.csv"
    assert given["output"] == "-o; ls"
    assert given["dataset"] == "it's"
    first = advise(STRANGE, "top:-1").choices[0]
    assert read_back(first.command())[0] == first.method


def test_the_schema_file_that_was_given_is_in_the_command(tmp_path):
    path = tmp_path / "people.toml"
    path.write_text('[columns.sex]\nkind = "category"\nvalues = ["F", "M"]\n')
    choice = advise(path, "counts").choices[0]
    assert f"--schema {path}" in choice.command()
    assert f"--schema {path}" in advise(str(path), "counts").choices[0].command()
    assert "--schema other.toml" in choice.command(schema="other.toml")


WORDS_ONLY = Schema((column("a", "category", values=["x", "y"]),))
DATES = Schema(
    (
        column("day", "date", bounds=["2024-01-01", "2024-12-31"], bins="month"),
        column("sex", "category", values=["F", "M"]),
    )
)
MISTAKES = [
    (CENSUS, "classify:age", {}, "model:age"),
    (CENSUS, "classify", {}, "classify:income"),
    (CENSUS, "classify:incme", {}, "did you mean 'income'"),
    (CENSUS, "clasify:income", {}, "did you mean 'classify'"),
    (CENSUS, "", {}, "known: classify"),
    (CENSUS, "clusters:sex", {}, r"distances.*age and hours.*counts:sex"),
    (CENSUS, "top:age,sex", {}, "counts:age,sex"),
    (CENSUS, "stream:sex", {}, "--horizon 365"),
    (CENSUS, "stream:sex", {"horizon": 9, "window": 9}, "one of two"),
    (CENSUS, "stream", {"horizon": 9}, "stream:age"),
    (CENSUS, "rows", {"epsilon": "-1"}, "greater than 0"),
    (CENSUS, "rows", {"epsilon": "abc"}, "epsilon"),
    (CENSUS, "rows", {"n_records": 0}, "at least 1"),
    (CENSUS, "rows", {"n_records": 1.5}, "integer"),
    (CENSUS, "clusters", {"n_clusters": 0}, "at least 1"),
    (CENSUS, "clusters", {"n_clusters": 5_000}, "at most 1,000"),
    (WORDS_ONLY, "clusters", {}, "no column of kind numeric"),
    (WORDS_ONLY, "statistics", {}, "take the goal counts"),
    (WORDS_ONLY, "classify:a", {}, "the only column"),
    (WORDS_ONLY, "model:a", {}, "the only column"),
    (DATES, "classify:day", {}, "weekday"),
    (DATES, "model:day", {}, "weekday"),
    (HOSPITAL, "top:patient_id", {}, "tells people apart"),
    (HOSPITAL, "counts:patient_id,ward", {}, "tells people apart"),
]


@pytest.mark.parametrize(("schema", "goal", "more", "told"), MISTAKES)
def test_a_goal_that_cannot_be_met_is_refused_with_what_to_do(schema, goal, more, told):
    with pytest.raises(InvalidParameter, match=told):
        advise(schema, goal, **more)


@pytest.mark.parametrize("wrong", [3, None, ["rows"]])
def test_another_type_is_a_type_error_that_says_what_to_pass(wrong):
    with pytest.raises(TypeError, match="path of a schema file"):
        advise(wrong, "rows")
    with pytest.raises(TypeError, match="classify:income"):
        advise(CENSUS, wrong)


def test_a_method_that_cannot_be_published_like_this_is_not_advised():
    with pytest.raises(InvalidParameter, match="epsilon"):
        advise(CENSUS, "rows", epsilon="1e-18")
    few = Schema(tuple(column(f"c{i}", "category", values=["x", "y"]) for i in range(450)))
    with pytest.raises(InvalidParameter, match="400"):
        advise(few, "rows", epsilon="1")


def test_more_numbers_than_epsilon_can_serve_are_left_out_and_named():
    many = Schema(tuple(column(f"n{i}", "numeric", bounds=[0, 1]) for i in range(6)))
    (choice,) = advise(many, "statistics").choices
    assert "mean(n3)" in choice.settings["measures"]
    assert "n4" not in choice.settings["measures"]
    assert "statistics:n4,n5" in choice.notes[0]
    (named,) = advise(many, "statistics:" + ",".join(many.names)).choices
    assert "median(n5)" in named.settings["measures"]


def test_names_are_listed_as_in_a_sentence():
    assert listed(list("abcde")) == "a, b, c, d and e"
    assert listed(list("abcdef"), "or") == "a, b, c, d or 2 other columns"


def test_what_is_spent_on_a_record_depends_on_the_unit():
    goal = Goal.parse("rows")
    assert Facts(CENSUS, goal, Fraction(1)).record_epsilon == 1
    assert Facts(HOSPITAL, goal, Fraction(1)).record_epsilon == Fraction(1, CONTRIBUTION)
    assert propose(Facts(CENSUS, goal, Fraction(1)))[0].name == "synth"


@pytest.mark.parametrize(
    ("bins", "n_records", "named"),
    [(10, 20_000, "histogram"), (100, 20_000, "ag"), (100, 4_000, "synth")],
)
def test_a_map_is_counted_as_finely_as_its_records_allow(bins, n_records, named):
    plane = Schema(tuple(column(name, "numeric", bounds=[0, 1], bins=bins) for name in "xy"))
    advice = advise(plane, "counts:x,y", n_records=n_records, epsilon="1")
    assert advice.choices[0].name == named


@pytest.mark.parametrize(
    ("goal", "n_records", "named"),
    [
        ("counts:age,sex,region", 2_000, "histogram"),
        ("counts:age,sex,region", 300, "synth"),
        ("rows", 500, "dpcopula-hybrid"),
        ("rows", 20_000, "synth"),
        ("rows", 50, "synth"),
        ("rows:sex,work", 150, "synth"),  # no numbers to correlate
    ],
)
def test_the_method_follows_the_records_for_each_cell_or_value(goal, n_records, named):
    assert advise(CENSUS, goal, n_records=n_records, epsilon="1").choices[0].name == named


def test_one_long_column_with_few_records_is_left_to_a_model():
    long = Schema((column("x", "numeric", bounds=[0, 1], bins=500),))
    for n_records, named in ((None, "histogram"), (10_000, "synth"), (100_000, "histogram")):
        advice = advise(long, "counts:x", n_records=n_records, epsilon="1")
        assert advice.choices[0].name == named


def test_advice_shows_itself_in_a_line_and_in_a_notebook():
    found = advise(CENSUS, "classify:income")
    assert repr(found) == "Advice(classify:income: privpfc or model, epsilon 1)"
    assert "privpfc" in found._repr_html_()
    assert list(found.to_pandas()["method"]) == ["privpfc", "model"]


def test_shapes_are_not_told_of_centers():
    _, shapes = advise(HOSPITAL, "clusters:home_east,home_north").choices
    assert shapes.name == "privthr"
    assert "another cluster" in shapes.gives
    assert "centers" not in shapes.gives
