"""Values in notebooks: one short line, escaped HTML, frames and charts."""

import sys

import polars as pl
import pytest

import dpublish
from dpublish import datasets
from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.display import Card
from dpublish.errors import InputError, InvalidParameter, InvalidType
from dpublish.methods.personalized.method import PersonalSettings
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from method_examples import EXAMPLES, SCHEMA, arrow_table

ODD = '<script>alert("x")</script>'


def released(name):
    method = make_method(name, EXAMPLES[name][0])
    is_personal = isinstance(method, PersonalSettings)
    schema = method.prepare(SCHEMA) if is_personal else SCHEMA
    epsilon = method.levels[-1] if is_personal else 3
    table = open_table(arrow_table(), schema)
    return method.release(table, budget=Budget.seeded(epsilon), rng=seeded(1))


@pytest.mark.parametrize(
    "name",
    [
        "histogram",
        "statistics",
        "marginals",
        "kmeans",
        "privpfc",
        "topk",
        "diffpid3",
        "model",
        "bounds",
        "psd",
        "weighting",
    ],
)
def test_a_release_shows_itself(name):
    release = released(name)
    line = repr(release)
    assert len(line) <= 160
    assert "\n" not in line
    assert "array(" not in line
    assert line.startswith(f"{type(release).__name__}(")
    html = release._repr_html_()
    for words in ("NOT PRIVATE", "guarantee", "cost"):
        assert words in html
    assert "http" not in html
    frame = release.to_pandas()
    assert frame.shape == release.to_arrow().shape
    assert isinstance(release.to_polars(), pl.DataFrame)
    for table in release.tables():
        assert release.to_pandas(table).shape == release.tables()[table].shape
    with pytest.raises(InvalidParameter, match="there is no table 'nonsense'; there are: "):
        release.to_pandas("nonsense")


@pytest.mark.parametrize("name", ["histogram", "statistics", "marginals"])
def test_a_chart_is_a_figure_that_shows_itself(name):
    from matplotlib.figure import Figure

    figure = released(name).plot()
    assert isinstance(figure, Figure)
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_a_chart_is_chosen_by_number_or_word(tmp_path):
    release = released("histogram")
    assert release.plot("sex").axes[0].get_title(loc="left") == "sex"
    assert release.plot(0).axes[0].get_title(loc="left") == "age"
    with pytest.raises(InvalidParameter, match="no chart is about 'wealth'; there are: Noisy"):
        release.plot("wealth")
    with pytest.raises(InvalidParameter, match="there are charts 0 to 2, not 9"):
        release.plot(9)
    with pytest.raises(InvalidType, match="which must be the number"):
        release.plot([1])
    with pytest.raises(InvalidParameter, match="has no chart"):
        released("bounds").plot()
    picture = released("kmeans").plot()
    assert picture._repr_html_().count("<svg") == 1
    assert "xmlns" in picture.save(tmp_path / "centers.svg").read_text()


def test_the_report_still_writes_svg_after_a_plot():
    release = released("histogram")
    release.plot()
    from dpublish.report.page import render_report

    assert render_report(release).count("<svg") == 3


def test_an_answer_shows_itself():
    answer = released("histogram").count("sex = Female")
    assert repr(answer).startswith("Answer(")
    assert "95 % confidence interval" in repr(answer)
    assert "counts" in answer._repr_html_()
    assert answer.to_pandas().loc[0, "value"] == answer.value
    assert answer.to_polars().height == 1
    assert answer.plot()._repr_png_()
    assert (
        repr(dpublish.Answer(3, None, None, 0.95)) == "Answer(3, no confidence interval is offered)"
    )


def test_a_plan_shows_itself_and_draws_its_error_over_epsilon():
    plan = dpublish.plan("histogram", SCHEMA, columns=["age", "sex"], epsilon=0.5)
    assert repr(plan) == f"Plan({plan})"
    assert "one record added or removed" in plan._repr_html_() or "record" in plan._repr_html_()
    assert plan.to_pandas().loc[0, "epsilon"] == 0.5
    line = plan.plot().axes[0].lines[0]
    errors = list(line.get_ydata())
    assert len(errors) > 5
    assert errors == sorted(errors, reverse=True)
    assert list(plan.plot([0.1, 1]).axes[0].lines[0].get_xdata()) == [0.1, 1.0]


def test_the_status_of_a_dataset_shows_grants_and_no_fingerprint(tmp_path):
    from dpublish.privacy.neighbors import AddRemoveRecord

    with dpublish.Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("people", cap=2)
        empty = ledger.status("people")
        ledger.grant(
            "people",
            epsilon=0.5,
            purpose=ODD,
            hides=AddRemoveRecord(),
            rng=dpublish.secure(),
            fingerprint="secret-mark",
        )
        status = ledger.status("people")
    assert repr(status) == "Status('people', cap=2, spent=0.5, left=1.5, 1 grant)"
    assert "<script" not in status._repr_html_()
    assert "&lt;script&gt;" in status._repr_html_()
    assert "secret-mark" not in status._repr_html_() + repr(status) + status.to_pandas().to_csv()
    assert status.to_pandas()["epsilon"].tolist() == [0.5]
    assert empty.to_pandas().shape == (0, 7)
    assert [patch.get_width() for patch in status.plot().axes[0].patches] == [0.5, 1.5]


def test_a_schema_shows_its_columns():
    schema = Schema(
        (column("age", "integer", bounds=[17, 90]), column(ODD, "category", values=["a", "b"])),
        name="census",
    )
    assert len(repr(schema)) <= 160
    assert "17 to 90" in schema._repr_html_()
    assert "<script" not in schema._repr_html_()
    assert schema.to_pandas()["cells"].tolist() == [74, 2]
    assert schema.plot().axes[0].get_title(loc="left") == "Schema census"
    assert datasets.schema("census").to_polars().height == len(datasets.schema("census").columns)


def test_a_long_table_is_cut():
    html = Card("many", {}, ("n",), [[str(n)] for n in range(50)]).html()
    assert "and 30 more" in html


@pytest.mark.parametrize(
    ("package", "verb", "told"),
    [
        ("pandas", "to_pandas", "pip install pandas"),
        ("polars", "to_polars", "pip install polars"),
        ("matplotlib", "plot", "pip install matplotlib"),
    ],
)
def test_a_missing_package_is_named_with_how_to_install_it(monkeypatch, package, verb, told):
    answer = dpublish.Answer(3, 1, 5, 0.95)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=told):
        getattr(answer, verb)()
