"""One page of every kind that the toolkit writes, of simulated tables."""

from dpublish import datasets
from dpublish.core.registry import make_method
from dpublish.evaluation.evaluate import make_request
from dpublish.evaluation.evaluations import evaluate
from dpublish.evaluation.synthetic_page import evaluation_page
from dpublish.experiments.study import run_experiment
from dpublish.methods.streams.folder import load_stream
from dpublish.privacy.budget import Budget
from dpublish.publishing.streams.operator import StreamOperator
from dpublish.randomness import seeded
from dpublish.report.certificate import render_certificate
from dpublish.report.checks import examine
from dpublish.report.html import render_page
from dpublish.report.keep import write_keep as write_report_to_keep
from dpublish.report.page import render_report
from owners_world import make_plain
from stream_world import METHOD, SCHEMA, arguments, make_ledger, rows

LEVELS = {"preference": "sex", "rule": "Female=2; Male=3", "levels": ("2", "3"), "derived": True}
RELEASES = {
    "histogram": ("census", "histogram", {"columns": ("age", "sex")}),
    "statistics": ("census", "statistics", {"measures": "count, mean(hours)", "by": ("region",)}),
    "privpfc": ("loans", "privpfc", {"target": "repaid"}),
    "pph": ("loans", "pph", {"target": "repaid"}),
    "diffgen": ("loans", "diffgen", {"target": "repaid"}),
    "diffpid3": ("loans", "diffpid3", {"target": "repaid"}),
    "model": ("loans", "model", {"target": "repaid"}),
    "privbayes": ("census", "privbayes", {}),
    "marginals": ("census", "marginals", {}),
    "synth": ("census", "synth", {}),
    "dpcopula": ("census", "dpcopula", {"columns": ("age", "hours", "education")}),
    "copula-network": ("census", "dpcopula-hybrid", {"design": "network"}),
    "copula-cells": ("census", "dpcopula-hybrid", {"design": "cells"}),
    "psd": ("census", "psd", {"columns": ("age", "hours")}),
    "privelet": ("census", "privelet", {"columns": ("age", "sex")}),
    "filter-priority": ("census", "filter-priority", {"columns": ("age", "sex"), "sample": 50}),
    "eugkm": ("shapes", "eugkm", {"n_clusters": 5}),
    "kmeans": ("points", "kmeans", {"n_clusters": 5}),
    "dplloyd": ("points", "dplloyd", {"n_clusters": 5}),
    "wavecluster": ("shapes", "privthr-em", {"cells": 32}),
    "topk": ("census", "topk", {"column": "education", "count": 5, "with_counts": True}),
    "bounds": ("census", "bounds", {"column": "hours"}),
    "minimum": ("census", "minimum", {"inner": "histogram columns=age", **LEVELS}),
    "personal-answer": (
        "census",
        "personalized-em",
        {"statistic": "count", "query": "age >= 31", "most": "5000", **LEVELS},
    ),
}


def _release(dataset, method, settings):
    table = datasets.table(dataset, 3_000)
    return make_method(method, settings).release(
        table, budget=Budget.seeded(2), rng=seeded(20240229)
    )


def write_release(kind, folder):
    path = folder / f"{kind}.html"
    path.write_text(render_report(_release(*RELEASES[kind])), "utf-8")
    return path


def write_stream(folder):
    make_ledger(folder)
    with StreamOperator.start(folder / "s.stream", METHOD, SCHEMA, **arguments(folder)) as operator:
        for number in range(1, 7):
            operator.next(rows(number), f"2024-01-{number:02}", allow_new_labels=True)
    path = folder / "stream.html"
    path.write_text(render_report(load_stream(folder / "out")), "utf-8")
    return path


def write_keep(folder):
    made = make_plain(folder)
    path = folder / "keep.html"
    write_report_to_keep(made.folder, made.ledger, path, key=made.key, released_by="the owner")
    return path


def write_certificate(folder):
    made = make_plain(folder)
    path = folder / "certificate.html"
    path.write_text(render_certificate(examine(made.folder, made.ledger, key=made.key)), "utf-8")
    return path


def write_evaluation(folder):
    release = _release("census", "synth", {"columns": ("age", "sex", "hours", "income")})
    rows_of = datasets.census(3_000).select(release.schema.names)
    request = make_request(release, rows_of)
    path = folder / "evaluation.html"
    page = evaluation_page(release, evaluate(request), request.comparison)
    path.write_text(render_page(page), "utf-8")
    return path


def write_experiment(folder):
    return run_experiment("svt-variants", repeats=1, output=folder).page
