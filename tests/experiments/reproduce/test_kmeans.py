"""The checks of the k-means chapter say yes to what was printed, and no to the opposite."""

import re

import pytest

from dpublish.experiments.kmeans import STUDY
from dpublish.experiments.reproduce import kmeans as module
from dpublish.experiments.reproduce.item import Outcome, Run, Verdict
from dpublish.experiments.reproduce.kmeans import ITEMS
from dpublish.experiments.trials import Result, Trial

FREE = "noise-free"


def made(figure, measured, dataset="s1"):
    """Results of a figure: what was measured by method, epsilon and further settings."""
    results = []
    for (method, epsilon, *more), value in measured.items():
        setting = {"part": figure, "dataset": dataset} | dict(more)
        many = value if isinstance(value, list) else [value]
        for seed, one in enumerate(many):
            found = one if isinstance(one, dict) else {"nicv": one}
            results.append(Result(Trial("kmeans", method, epsilon, seed, setting), found))
    return Outcome(STUDY, results)


def by_epsilon(lines, free=0.01, dataset="s1", figure="epsilon"):
    measured = {(FREE, "none"): free}
    for method, values in lines.items():
        measured |= {(method, epsilon): value for epsilon, value in values.items()}
    return made(figure, measured, dataset)


def flat(**lines):
    """The same means at two budgets, by method; names with _ for -."""
    return by_epsilon({k.replace("_", "-"): {"0.05": v, "0.7": v} for k, v in lines.items()})


def along(figure, key, lines):
    """Means along an axis that is no budget: line -> {value: mean}; epsilon after a space."""
    measured = {(FREE, "none"): 0.01}
    for line, values in lines.items():
        method, _, epsilon = line.partition(" ")
        for value, mean in values.items():
            measured[method, epsilon or "none", *([(key, value)] if value is not None else [])] = (
                mean
            )
    return made(figure, measured)


def clouds(lines, figure="heat-map"):
    measured = {}
    for k in (2, 10):
        for d in (2, 10):
            sizes = (("clusters", k), ("dimensions", d))
            measured[FREE, "none", *sizes] = 0.1
            for line, values in lines.items():
                method, _, theta = line.partition(" ")
                more = (("theta", int(theta)),) if theta else ()
                measured[method, "1", *more, *sizes] = 0.1 + values[k, d]
    return made(figure, measured, "clouds")


def corner(at_22, at_k, at_d, at_both):
    return {(2, 2): at_22, (10, 2): at_k, (2, 10): at_d, (10, 10): at_both}


def chosen(dataset="s1", **by_budget):
    measured = {(FREE, "none"): {"k": 15, "validity": 0.06}}
    for budget, numbers in by_budget.items():
        epsilon = budget.removeprefix("e").replace("_", ".")
        measured["eugkm", epsilon] = [{"k": k, "validity": 0.07} for k in numbers]
    return made("choose-k", measured, dataset)


def models(factor, at="one-round", steep="one-round"):
    """A round's error falls with the square of the budget, a grid's with the budget."""
    measured, results = {}, []
    for dataset in ("cubes", "clouds-pt", "s1"):
        for epsilon, scale in (("0.1", 1.0), ("1", 0.01)):
            for method, one in (
                ("model-round", 0.1 * scale),
                ("model-grid", 0.1 * scale**0.5),
                ("model-bias", 0.1 * scale**0.5),
                *(
                    (
                        name,
                        0.1
                        * scale ** (1 if steep == name else 0.5)
                        * (factor if at == name else 1),
                    )
                    for name in ("one-round", "one-grid")
                ),
            ):
                measured[method, epsilon] = {"mse": one}
        results += made("error-model", measured, dataset).results
    return Outcome(STUDY, results)


def shares(grid, after, rho):
    results = []
    for k in (2, 3, 5):
        for d in (2, 4, 7):
            said = {"variance": k**2 / 50, "bias": d / 60, "round": k * d / 100}
            error = grid * said["variance"] + after * said["round"]
            setting = {"part": "shares", "dataset": "clouds-pt", "percent": 50}
            trial = Trial(
                "kmeans", "hybrid-share", "1", 0, setting | {"clusters": k, "dimensions": d}
            )
            results.append(Result(trial, said | {"mse": error, "rho": rho}))
    return Outcome(STUDY, results)


def timed(fast, slow):
    return made(
        "time", {("dplloyd", "0.1"): {"seconds": fast}, ("eugkm", "0.1"): {"seconds": slow}}
    )


def sized(largest, smallest):
    return made(
        "epsilon", {(FREE, "none"): {"nicv": 0.2, "largest": largest, "smallest": smallest}}
    )


def rounds(five, many, gkm):
    values = {2: five, 5: five, 20: many, 80: many, 200: many}
    return along("rounds", "rounds", {"dplloyd-uniform 1": values, "gkm-loose 1": {None: gkm}})


def genetic(mine, other):
    lines = {f"{m} {e}": {3: v, 15: v} for e in ("0.1", "1")
             for m, v in (("pgkm", mine), ("pgkm-paper", mine), ("gkm-loose", other))}  # fmt: skip
    return along("clusters", "clusters", lines)


def blocks(gkm, sag):
    noise = dict(zip((3, 30, 300), (0.9, 0.5, 0.2), strict=True))
    lines = {"gkm 0.1": gkm, "sag 0.1": dict.fromkeys(gkm, sag), "noise 0.1": noise}
    return along("blocks", "blocks", lines)


GOOD_MAPS = clouds(
    {
        "eugkm": corner(0, 0.001, 0.02, 0.08),
        "ugkm": corner(0, 0.001, 0.1, 0.3),
        "dplloyd-impr": corner(0, 0.03, 0.001, 0.1),
        "hybrid": corner(0, 0.001, 0.001, 0.07),
        "gkm": corner(0.3, 0.3, 5, 5),
        "pgkm-paper": corner(0.01, 0.1, 0.5, 0.9),
    }
)
BAD_MAPS = clouds(
    {
        "eugkm": corner(0, 0.1, 0.001, 0.08),
        "ugkm": corner(0, 0.001, 0.0, 0.0),
        "dplloyd-impr": corner(0.2, 0.2, 0.9, 0.9),
        "hybrid": corner(0.1, 0.2, 0.3, 0.7),
        "gkm": corner(0.1, 0.1, 0.1, 0.1),
        "pgkm-paper": corner(0.01, 0.1, 0.5, 0.8),
    }
)
GRIDS = flat(eugkm=0.03, ugkm=0.031, mkm=0.05, hybrid=0.025, dplloyd_impr=0.06,
             dplloyd_uniform=0.09, pgkm_paper=0.1, gkm_loose=0.7)  # fmt: skip
WRONG = flat(eugkm=0.08, ugkm=0.03, mkm=0.02, hybrid=0.2, dplloyd_impr=0.095,
             dplloyd_uniform=0.09, pgkm_paper=0.08, gkm_loose=0.01)  # fmt: skip
FALLING = by_epsilon(
    {"eugkm": {"0.05": 0.03, "2": 0.02}, "dplloyd-impr": {"0.05": 0.09, "2": 0.03}}
)
RISING = by_epsilon({"eugkm": {"0.05": 0.03, "2": 0.02}, "dplloyd-impr": {"0.05": 0.04, "2": 0.09}})
LLOYD = {1: 0.03, 5: 0.02, 50: 0.02}
STEPS, FAST_STEPS = (
    along("convergence", "iterations", {"lloyd": LLOYD, "gene": gene})
    for gene in ({1: 0.05, 5: 0.04, 50: 0.01}, {1: 0.01, 5: 0.01, 50: 0.01})
)
HALVING = {"dplloyd": {"0.1": 0.1, "1": 0.02}, "dplloyd-halving": {"0.1": 0.11, "1": 0.05}}
EQUAL = {"dplloyd": {"0.1": 0.1, "1": 0.05}, "dplloyd-halving": {"0.1": 0.1, "1": 0.02}}

CASES = {
    "all methods": (module.all_methods(with_mkm=True), GRIDS, WRONG),
    "all but mkm": (module.all_methods(with_mkm=False), GRIDS, WRONG),
    "gkm last": (module.check_gkm_last, GRIDS, WRONG),
    "pgkm": (module.check_pgkm, GRIDS, WRONG),
    "grids at small budgets": (module.check_grids_small, FALLING, RISING),
    "impr first": (module.check_impr_first, flat(dplloyd_impr=0.2, eugkm=0.3), GRIDS),
    "improvement": (module.check_improvement, GRIDS, WRONG),
    "mkm": (module.check_mkm, GRIDS, WRONG),
    "ugkm": (module.check_ug_close, GRIDS, WRONG),
    "hybrid": (module.check_hybrid, GRIDS, WRONG),
    "round on adult": (
        module.check_adult_hybrid, flat(eugkm=0.375, hybrid=0.25), flat(eugkm=0.3, hybrid=0.25),
    ),
    "fallback": (
        module.check_fallback, flat(eugkm=0.37, hybrid=0.37), flat(eugkm=0.37, hybrid=0.25),
    ),
    "gowalla": (
        module.check_gowalla_digits, flat(eugkm=0.02174, hybrid=0.02172),
        flat(eugkm=0.02, hybrid=0.03),
    ),
    "sizes": (module.check_sizes, sized(13_900, 3_150), sized(13_776, 2_140)),
    "maps": (module.check_maps, GOOD_MAPS, BAD_MAPS),
    "hybrid maps": (module.check_hybrid_maps, GOOD_MAPS, BAD_MAPS),
    "ugkm maps": (module.check_ug_columns, GOOD_MAPS, BAD_MAPS),
    "gkm maps": (module.check_gkm_maps, GOOD_MAPS, BAD_MAPS),
    "theta": (
        module.check_theta,
        clouds({"eugkm 10": corner(0, 0, 0, 0.01), "eugkm 50": corner(0, 0, 0.1, 0)}, "theta"),
        clouds({"eugkm 10": corner(0, 0.1, 0.1, 0.1), "eugkm 50": corner(0, 0, 0, 0)}, "theta"),
    ),
    "blocks": (
        module.check_blocks, blocks({3: 0.9, 30: 0.5, 300: 0.2}, 0.02),
        blocks({3: 0.2, 30: 0.5, 300: 0.9}, 0.02),
    ),
    "blocks without noise": (
        module.check_blocks, blocks({3: 0.9, 30: 0.5, 300: 0.2}, 0.02),
        blocks({3: 0.9, 30: 0.5, 300: 0.2}, 0.4),
    ),
    "steps": (module.check_steps, STEPS, FAST_STEPS),
    "times": (module.check_times, timed(0.1, 2.0), timed(2.0, 0.1)),
    "numbers of s1": (
        module.check_s1_numbers, chosen(e0_5=[14, 14, 15, 7], e2=[15, 15, 14]),
        chosen(e0_5=[14, 14, 15, 7], e2=[16, 16, 15]),
    ),
    "numbers": (module.mostly(2), chosen(e0_1=[2, 2, 5]), chosen(e0_1=[2, 5, 5])),
    "rounds": (module.check_rounds, rounds(0.02, 0.1, 0.15), rounds(0.09, 0.1, 0.15)),
    "misled": (module.check_misled, rounds(0.02, 0.3, 0.15), rounds(0.02, 0.1, 0.15)),
    "halving": (
        module.check_halving, by_epsilon(HALVING, figure="published"),
        by_epsilon(EQUAL, figure="published"),
    ),
    "round model": (
        module.model_of("one-round", "model-round"), models(1.2), models(3.0),
    ),
    "grid bound": (
        module.model_of("one-grid", "model-grid", "model-bias"), models(1.5, "one-grid"),
        models(2.5, "one-grid"),
    ),
    "slopes": (module.check_slopes, models(1.0), models(1.0, steep="one-grid")),
    "weights": (module.check_weights, shares(0.14, 0.42, 0.2), shares(0.9, 0.42, 0.2)),
    "rho": (module.check_mean_coordinate, shares(0.1, 0.4, 0.22), shares(0.1, 0.4, 0.1)),
    "genetic": (module.check_genetic, genetic(0.1, 0.4), genetic(0.4, 0.1)),
    "two orders": (module.check_two_orders, genetic(0.001, 0.4), genetic(0.1, 0.4)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_check_says_yes_and_no(name):
    check, good, bad = CASES[name]
    assert check(good).holds
    assert not check(bad).holds


@pytest.mark.parametrize("name", CASES)
def test_a_check_quotes_what_was_measured(name):
    check, good, bad = CASES[name]
    assert re.search(r"\d", check(good).ours)
    assert check(good).ours != check(bad).ours


def test_every_check_of_an_item_is_tested():
    checked = {check for check, _, _ in CASES.values()}
    named = {check.__qualname__.split(".")[0] for check in checked}
    assert {item.check.__qualname__.split(".")[0] for item in ITEMS if item.check} <= named


def test_items_name_figures_that_can_be_planned(real_data):
    for run in {item.run.command(is_full=False): item.run for item in ITEMS if item.run}.values():
        for is_full in (False, True):
            given = run.given(is_full=is_full)
            repeats = given.pop("repeats")
            planned = STUDY.plan(repeats, data_folder=real_data, **given)
            assert planned.trials


def test_items_are_numbered_once_and_judged():
    numbers = [(name, number) for item in ITEMS for name, number in item.numbers.items()]
    assert len(set(numbers)) == len(numbers)
    absent = [item for item in ITEMS if item.judge(None)[0] is Verdict.CANNOT and not item.run]
    assert {item.because for item in absent} == {"TIGER, Image and Lifesci could not be had"}
    assert all(isinstance(item.run, Run) for item in ITEMS if item.check)
