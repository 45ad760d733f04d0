"""All items again: runs that are shared, resumed, estimated and refused; pages with verdicts."""

import json

import pytest
from click.testing import CliRunner

from dpublish.cli.main import command
from dpublish.errors import InvalidParameter
from dpublish.experiments.reproduce import documents, reproduction
from dpublish.experiments.reproduce.item import Finding, Item, Run
from dpublish.experiments.reproduce.pages import NOT_RUN, Judged, write_pages
from dpublish.experiments.reproduce.reproduction import Reproduction
from dpublish.experiments.reproduce.rerun import Job, estimated_seconds, jobs_of, run_jobs

RUN = Run(
    "svt-vs-em",
    repeats=1,
    options={"methods": ("EM", "SVT-S 1:1"), "epsilons": ("0.5",)},
    full={"repeats": 3},
)
ABSENT = Run("kmeans", repeats=1, options={"datasets": ("s1",), "methods": ("eugkm",)})


def is_low(outcome):
    mean = outcome.mean(method="EM", measure="ser", point=100)
    return Finding(f"{mean:.3f}", mean < 0.5)


def is_negative(outcome):
    return Finding("no", holds=False)


def asks_for_an_absent_line(outcome):
    return Finding("", outcome.mean(method="SVT-DPBook", measure="ser", point=100) < 1)


ITEMS = (
    Item({"su-thesis": "Table 5.4"}, "who finds most", "EM .033", RUN, is_low),
    Item({"su-thesis": "Claim, 5.4"}, "a wrong claim", "no", RUN, is_negative, because="of us"),
    Item({"su-thesis": "Claim, 5.5"}, "an odd claim", "no", RUN, is_negative),
    Item({"su-thesis": "Figure 4.1"}, "k-means", "low", ABSENT, is_low),
    Item({"su-thesis": "Claim, 5.6"}, "another", "low", RUN, asks_for_an_absent_line),
    Item({"privgene": "Figure 3"}, "census", "low", because="the table cannot be passed on"),
    Item({"privgene": "Lemma 1"}, "private", "yes", tested="tests/mechanisms"),
)


@pytest.fixture
def alone(monkeypatch, tmp_path):
    monkeypatch.delenv("DPUBLISH_DATA", raising=False)
    monkeypatch.setattr(reproduction, "all_items", lambda: ITEMS)
    return tmp_path


def test_items_with_the_same_run_share_it():
    jobs = jobs_of(ITEMS, is_full=False, data_folder=None)
    assert [job.run for job in jobs] == [RUN, ABSENT]
    assert Job(RUN, False, None).name != Job(RUN, True, None).name


def test_verdicts_are_those_of_the_run(alone):
    again = Reproduction.plan(alone / "results")
    verdicts = again.run(alone / "pages")
    said = {one.item.title: one.sentence for one in verdicts["su-thesis"]}
    assert said == {
        "who finds most": "reproduced in order",
        "a wrong claim": "differs because of us",
        "an odd claim": "differs; we do not know why",
        "k-means": NOT_RUN,
        "another": NOT_RUN,
    }
    assert [one.verdict for one in verdicts["privgene"]] == ["cannot be had", "tested"]


def test_pages_have_commands_figures_and_plots(alone):
    Reproduction.plan(alone / "results").run(alone / "pages")
    text = (alone / "pages" / "su-thesis.md").read_text()
    command = 'dpublish experiment svt-vs-em --repeats 1 --methods "EM,SVT-S 1:1" --epsilons 0.5'
    assert command in text
    assert "--repeats 3 --methods" in text
    assert "**Printed.** EM .033" in text
    plot = Job(RUN, False, None).name
    assert text.count(f"(plots/{plot}.svg)") == 1
    assert text.count("The plot is that of Table 5.4.") == 2
    assert (alone / "pages" / "plots" / f"{plot}.svg").is_file()
    assert "it needs clustering_s_sets.parquet" in text
    index = (alone / "pages" / "index.md").read_text()
    assert "- Claim, 5.4 (a wrong claim): differs because of us." in index
    assert "5 items: 1 reproduced in order, 2 differs, 2 not run" in text


def test_a_second_run_computes_nothing_and_the_estimate_knows(alone):
    again = Reproduction.plan(alone / "results")
    left = estimated_seconds(again.jobs, again.output)
    assert left > 0
    again.run(alone / "pages")
    path = alone / "results" / f"{Job(RUN, False, None).name}.jsonl"
    before = path.read_bytes()
    assert estimated_seconds(again.jobs, again.output) == 0
    again.run(alone / "pages")
    assert path.read_bytes() == before
    full = Reproduction.plan(alone / "results", is_full=True)
    seconds = json.loads((alone / "results" / "seconds.json").read_text())
    trials = len(Job(RUN, True, None).plan().trials)
    assert estimated_seconds(full.jobs, full.output) == pytest.approx(
        trials * seconds[path.stem], rel=0.1, abs=0.01 * trials
    )


def test_processes_side_by_side_find_the_same(alone):
    jobs = jobs_of(ITEMS[:1], is_full=False, data_folder=None)
    one = run_jobs(jobs, alone / "one", workers=1)
    two = run_jobs(jobs, alone / "two", workers=2)
    name = jobs[0].name
    assert one[name].outcome.results == two[name].outcome.results


def test_some_experiments_can_be_run_alone(alone):
    again = Reproduction.plan(alone, studies=("svt-vs-em",))
    assert {item.run.study for item in again.items} == {"svt-vs-em"}
    with pytest.raises(InvalidParameter, match="experiment"):
        Reproduction.plan(alone, studies=("svt",))
    with pytest.raises(InvalidParameter, match="no item"):
        Reproduction.plan(alone, studies=("streams",))


def test_the_command_estimates_first_and_refuses_foreign_options(alone):
    run = CliRunner().invoke
    words = ["experiment", "all", "--jobs", "1", "-o", str(alone / "r")]
    ran = run(command, words)
    assert ran.exit_code == 0, ran.output
    assert ran.output.startswith("7 items, 2 runs, about 1 minute on 1 core")
    assert (alone / "r" / "reproduce" / "su-thesis.md").is_file()
    assert "--methods is no option" in str(run(command, [*words, "--methods", "EM"]).exception)
    alone_words = ["experiment", "kmeans", "--full"]
    assert "options of `all`" in str(run(command, alone_words).exception)


def test_a_reason_is_a_clause_or_a_sentence_of_its_own():
    def sentence(because):
        item = Item({"su-thesis": "1"}, "t", "p", RUN, is_negative, because=because)
        return Judged(item, "differs", "", is_full=False).sentence

    assert sentence("tables are stand-ins.") == "differs because tables are stand-ins"
    assert sentence("Tables are stand-ins.") == "differs: Tables are stand-ins"
    assert sentence("") == "differs; we do not know why"


def test_pages_of_some_documents_only(alone):
    done = run_jobs(jobs_of(ITEMS, is_full=False, data_folder=None), alone / "r")
    write_pages(ITEMS, done, alone / "p", is_full=False, documents=("privgene",))
    assert sorted(path.name for path in (alone / "p").glob("*.md")) == ["index.md", "privgene.md"]


def test_every_document_has_a_name():
    assert set(documents.DOCUMENTS) >= {
        key for item in documents.all_items() for key in item.numbers
    }
