"""Items of "WaveCluster with differential privacy": its figures, theorems and claims.

"PrivTHR" and "Baseline" are run as printed (`privthr-paper`, `wave-baseline-paper`).
"""

from collections.abc import Callable, Sequence

from dpublish.experiments.reproduce.item import Finding, Item, Outcome, Run

DOCUMENT = "wavecluster"
SETS = ("ds1", "ds2", "ds3", "gowalla", "gowalla-grid")
THR, EM, QT, BASE = "privthr-paper", "privthr-em", "privqt", "wave-baseline-paper"
FOUR = (THR, EM, QT, BASE)
NAMES = {THR: "PrivTHR", EM: "PrivTHR-EM", QT: "PrivQT", BASE: "Baseline", "plain": "true"}
_NEAR = 0.06
_LEVEL = 1.1  # a line that is at most this much higher than another is level with it

_ALL = Run(
    "wavecluster",
    figure="epsilon",
    repeats=20,
    options={"datasets": SETS, "methods": FOUR},
    full={"repeats": 50},
)
_SHARES = Run(
    "wavecluster",
    figure="shares",
    repeats=20,
    options={"datasets": ("ds1", "ds2", "ds3"), "methods": (THR,)},
    full={"repeats": 50},
)
_CELLS = Run(
    "wavecluster",
    figure="cells",
    repeats=5,
    options={"datasets": ("ds1", "ds2"), "methods": (THR, QT, BASE), "values": (24, 40, 64, 80)},
    full={"repeats": 20, "values": (24, 32, 40, 48, 64, 80)},
)
_RELEASES = Run(
    "wavecluster",
    figure="releases",
    repeats=5,
    options={"datasets": ("ds1", "ds2", "ds3"), "epsilons": ("0.1", "1")},
    full={"repeats": 20, "epsilons": ("0.1", "0.2", "0.5", "1", "2")},
)
_COARSE = Run(
    "wavecluster",
    figure="epsilon",
    repeats=10,
    options={
        "datasets": ("ds1",),
        "methods": (QT, BASE),
        "settings": {"cells": 48, "percentile": "0.7"},
    },
    full={"repeats": 50},
)


def _values(
    outcome: Outcome, measure: str, dataset: str, methods: Sequence[str], point: float
) -> dict[str, float]:
    return {
        method: outcome.mean(method=method, measure=measure, dataset=dataset, point=point)
        for method in methods
    }


def _said(values: dict[str, float], digits: int = 2) -> str:
    return ", ".join(
        f"{NAMES.get(name, name)} {value:.{digits}f}" for name, value in values.items()
    )


def check_sets(outcome: Outcome) -> Finding:
    """Compare the clusters that plain WaveCluster finds."""
    found = {
        name: outcome.mean(method="plain", measure="clusters", dataset=name, point=1.0)
        for name in ("ds1", "ds2", "ds3")
    }
    said = ", ".join(f"{name} {value:g}" for name, value in found.items())
    return Finding(said, list(found.values()) == [15, 3, 5])


def check_baseline_shapes(outcome: Outcome) -> Finding:
    """Look whether the baseline's clusters are others than the true ones."""
    true = _values(outcome, "clusters", "ds2", ("plain",), 1.0)["plain"]
    private = _values(outcome, "clusters", "ds2", (BASE,), 1.0)[BASE]
    apart = _values(outcome, "dsg", "ds2", (BASE,), 1.0)[BASE]
    said = f"ds2 at ε = 1: {true:g} true clusters, {private:.1f} of Baseline, DSG_C {apart:.2f}"
    return Finding(said, apart > 1)


def check_numbers(printed: dict[str, float], point: float) -> Callable[[Outcome], Finding]:
    """Compare mean numbers of significant cells of DS2 with the printed ones."""

    def check(outcome: Outcome) -> Finding:
        found = _values(outcome, "cells", "ds2", tuple(printed), point)
        holds = all(abs(found[name] / value - 1) <= _NEAR for name, value in printed.items())
        return Finding(_said(found, 1), holds)

    return check


def check_theory(outcome: Outcome) -> Finding:
    """Compare PrivQT's number of cells on DS2 with that which the noise lets expect."""
    found = _values(outcome, "cells", "ds2", (QT, "plain"), 1.0)
    expected = _values(outcome, "expected", "ds2", (QT,), 1.0)[QT]
    excess = found[QT] - found["plain"]
    said = (
        f"k' − k = {excess:.1f}; the distribution of our integer noise predicts "
        f"{expected - found['plain']:.1f}"
    )
    return Finding(said, abs(found[QT] / expected - 1) < _NEAR)


def check_relative_errors(outcome: Outcome) -> Finding:
    """Compare relative errors of the mean number of cells from ε = 0.5 on."""
    errors: dict[str, list[float]] = {name: [] for name in FOUR}
    for dataset in SETS:
        true = _values(outcome, "cells", dataset, ("plain",), 1.0)["plain"]
        for point in (0.5, 1.0, 2.0):
            for name, value in _values(outcome, "cells", dataset, FOUR, point).items():
                errors[name].append(abs(value / true - 1))
    mean = {name: 100 * sum(several) / len(several) for name, several in errors.items()}
    worst = {name: 100 * max(several) for name, several in errors.items()}
    said = "; ".join(
        f"{NAMES[name]} {mean[name]:.1f} % on average, {worst[name]:.1f} % at most" for name in FOUR
    )
    least = min(100 * min(errors[name]) for name in (QT, BASE))
    return Finding(said, max(mean[THR], mean[EM]) < 4.7 and least > 25)


def check_sensitive(outcome: Outcome) -> Finding:
    """Look whether PrivTHR-EM loses more than PrivTHR as ε falls."""
    missed = {
        name: _values(outcome, "k_error", "ds2", (name,), 0.1)[name]
        - _values(outcome, "k_error", "ds2", (name,), 2.0)[name]
        for name in (THR, EM)
    }
    said = f"relative error of k' on ds2, ε = 0.1 less ε = 2: {_said(missed)}"
    return Finding(said, missed[EM] > missed[THR])


def check_order(
    measure: str, points: Sequence[float], datasets: Sequence[str] = SETS
) -> Callable[[Outcome], Finding]:
    """Look whether PrivTHR and PrivTHR-EM are below PrivQT and Baseline everywhere."""

    def check(outcome: Outcome) -> Finding:
        broken = []
        for dataset in datasets:
            for point in points:
                here = _values(outcome, measure, dataset, FOUR, point)
                better, worse = max(here[THR], here[EM]), min(here[QT], here[BASE])
                if better > worse:
                    broken.append(f"{dataset} at ε = {point:g} ({_said(here)})")
        all_points = len(datasets) * len(points)
        said = f"so at {all_points - len(broken)} of {all_points} points"
        return Finding("; not on ".join([said, *broken]), not broken)

    return check


def check_little_gain(outcome: Outcome) -> Finding:
    """Look whether PrivQT's DSG_C hardly falls from ε = 0.1 to 2 while PrivTHR's does."""
    said, holds = [], True
    for dataset in ("ds1", "ds2", "ds3"):
        kept = {}
        for name in (QT, THR):
            line = outcome.means(method=name, measure="dsg", dataset=dataset)
            kept[name] = line[2.0] / line[0.1]
        holds &= kept[QT] > 0.6 and kept[THR] < kept[QT] / 2
        said.append(f"{dataset}: {_said(kept)}")
    return Finding("DSG_C at ε = 2 as a part of that at 0.1: " + "; ".join(said), holds)


def check_f_measure(outcome: Outcome) -> Finding:
    """Look whether the F-measure of PrivQT and Baseline is above 0.8 on DS1."""
    lines = {name: outcome.means(method=name, measure="f", dataset="ds1") for name in (QT, BASE)}
    said = "; ".join(
        f"{NAMES[name]} {min(line.values()):.2f} to {max(line.values()):.2f}"
        for name, line in lines.items()
    )
    return Finding(said, min(min(line.values()) for line in lines.values()) > 0.8)


def check_many_clusters(outcome: Outcome) -> Finding:
    """Count the clusters of PrivQT and Baseline on DS1 at ε = 0.1."""
    found = _values(outcome, "clusters", "ds1", (QT, BASE), 0.1)
    return Finding(_said(found, 1), min(found.values()) > 30)


def check_small_ocm(outcome: Outcome) -> Finding:
    """Look whether OCM is below 0.15 above ε = 0.5, and below 0.1 for PrivTHR-EM on DS2."""
    worst = {
        dataset: max(
            value
            for point in (1.0, 2.0)
            for value in _values(outcome, "ocm", dataset, (THR, EM), point).values()
        )
        for dataset in ("ds1", "ds3", "gowalla", "gowalla-grid")
    }
    spirals = {
        name: max(_values(outcome, "ocm", "ds2", (name,), point)[name] for point in (1.0, 2.0))
        for name in (THR, EM)
    }
    said = "; ".join(f"{name} at most {value:.3f}" for name, value in worst.items())
    holds = max(worst.values()) < 0.15 and spirals[EM] < 0.1
    return Finding(f"{said}; ds2 at most: {_said(spirals, 3)}", holds)


def check_small_pairs(outcome: Outcome) -> Finding:
    """Look whether 2CE is below 0.1 on DS1 for all methods, and below OCM."""
    lines = {name: outcome.means(method=name, measure="2ce", dataset="ds1") for name in FOUR}
    others = {name: outcome.means(method=name, measure="ocm", dataset="ds1") for name in FOUR}
    worst = {name: max(line.values()) for name, line in lines.items()}
    below = all(lines[n][p] <= others[n][p] for n in FOUR for p in lines[n])
    return Finding(f"at most {_said(worst, 3)}", max(worst.values()) < 0.1 and below)


def check_share(datasets: Sequence[str]) -> Callable[[Outcome], Finding]:
    """Look whether 90 % for the counts is the best share, or level with it."""

    def check(outcome: Outcome) -> Finding:
        said, holds = [], True
        for dataset in datasets:
            for epsilon in ("0.2", "1"):
                line = outcome.means(method=THR, measure="dsg", dataset=dataset, epsilon=epsilon)
                best = min(line, key=lambda share: line[share])
                holds &= line[0.9] <= _LEVEL * line[best]
                said.append(
                    f"{dataset}, ε = {epsilon}: best {100 * best:g} % ({line[best]:.2f}), "
                    f"90 % has {line[0.9]:.2f}"
                )
        return Finding("; ".join(said), holds)

    return check


def check_fine_grids(outcome: Outcome) -> Finding:
    """Look whether DSG_C of PrivQT rises with the number of cells."""
    said, holds = [], True
    for dataset in ("ds1", "ds2"):
        line = outcome.means(method=QT, measure="dsg", dataset=dataset, epsilon="1")
        first, last = min(line), max(line)
        holds &= line[last] > 1.5 * line[first]
        said.append(
            f"{dataset}: {line[first]:.2f} with {first:g} cells a side, {line[last]:.2f} with "
            f"{last:g}"
        )
    return Finding("DSG_C of PrivQT, " + "; ".join(said), holds)


def check_releases(outcome: Outcome) -> Finding:
    """Look whether WaveCluster on releases made for counting is behind PrivTHR."""
    others = ("psd", "privelet", "ug", "ag")
    said, holds = [], True
    for dataset in ("ds1", "ds2", "ds3"):
        here = _values(outcome, "dsg", dataset, ("privthr", *others), 1.0)
        holds &= here["privthr"] < min(here[name] for name in others)
        said.append(f"{dataset}: {_said(here)}")
    return Finding("DSG_C at ε = 1: " + "; ".join(said), holds)


_GRID = (
    "The paper prints its grid for DS2 only; on DS1, DS3 and Gowalla ours were chosen so that "
    "plain WaveCluster finds the clusters it describes, and Gowalla is a stand-in."
)
_BASELINE = (
    "The baseline follows the printed steps (adaptive grid, rounded counts, drawn points) with a "
    "noisy number of records; which constants the paper's adaptive grid has, and on which grid "
    "DS1 was clustered, it does not say."
)


def _item(where: str, title: str, printed: str, **rest: object) -> Item:
    return Item({DOCUMENT: where}, title, printed, **rest)  # type: ignore[arg-type]


ITEMS: tuple[Item, ...] = (
    _item(
        "Figure 1",
        "One record merges two clusters",
        "An illustration: with one individual more, two clusters become one.",
        tested="tests/methods/wavecluster/test_plain.py::test_one_record_can_merge_two_clusters",
    ),
    _item(
        "Figure 2",
        "Clusters of the baseline beside the true ones",
        "The baseline's clusters are inaccurate: noise joins and splits them.",
        run=_ALL,
        check=check_baseline_shapes,
    ),
    _item(
        "Figure 3",
        "The steps of WaveCluster",
        "An illustration: counts, transform, significant cells, connected components.",
        tested="tests/methods/wavecluster/test_wavecluster.py",
    ),
    _item(
        "Section 4.1",
        "Any publication of the data can be clustered",
        "Trees, grids and Privelet are made for range queries; WaveCluster on them is inaccurate.",
        run=_RELEASES,
        check=check_releases,
    ),
    _item(
        "Section 4.2",
        "Finer grids hurt",
        "A finer grid shows shapes better, but its counts are too small to withstand the noise.",
        run=_CELLS,
        check=check_fine_grids,
    ),
    _item(
        "Theorems 1 to 3",
        "PrivQT, PrivTHR and PrivTHR-EM are ε-differentially private",
        "By composition; sensitivity 1 with Haar's wavelet, thresholds up to the largest value.",
        tested="tests/methods/wavecluster/test_private_variants.py, "
        "tests/methods/wavecluster/test_privthr_em.py, "
        "tests/methods/wavecluster/test_sensitivities.py",
        because="Repaired: thresholds end at a public bound, since with the private maximum the "
        "third claim fails, and other wavelets than Haar's get their own sensitivity.",
    ),
    _item(
        "Theorems 4 to 6",
        "How many significant cells there are after noise",
        "γ = 8/ε · ln(4(|L|+|Z|)/ω), β = 2/ε₂ · ln(1/ω), with probability (1 − ω)² and (1 − ω)³.",
        tested="tests/methods/wavecluster/test_bounds.py",
        because="With the constants of the noise in use: γ = 4/ε · ln(4(|L|+|Z|)/ω) or less, "
        "β = ln(1/ω)/ε₂, and probabilities that add up (1 − 2ω, 1 − 3ω).",
    ),
    _item(
        "Section 5.2.1",
        "The excess of PrivQT is about half of the empty cells",
        "DS2 at ε = 1: k' − k = 105.2; (1 − p)|Z|/2 = 108.45.",
        run=_ALL,
        check=check_theory,
    ),
    _item(
        "Figure 4",
        "The sets and their clusters",
        "DS1 has 15 clusters, DS2 3 spirals, DS3 5 shapes; Gowalla looks like a world map.",
        run=_ALL,
        check=check_sets,
        exact=True,
    ),
    _item(
        "Figure 5",
        "k' of PrivTHR, PrivTHR-EM and PrivQT on DS2 at ε = 1 (within 6 %)",
        "k is 144; PrivTHR 141.0, PrivTHR-EM 142.8, PrivQT 249.2.",
        run=_ALL,
        check=check_numbers({THR: 141.0, EM: 142.8, QT: 249.2}, 1.0),
        exact=True,
        because="Few repeats; PrivTHR's k' has a standard deviation of about 10.",
    ),
    _item(
        "Figure 5",
        "k' of the baseline on DS2 at ε = 1 (within 6 %)",
        "284.0",
        run=_ALL,
        check=check_numbers({BASE: 284.0}, 1.0),
        exact=True,
        because=_BASELINE,
    ),
    _item(
        "Figure 5",
        "k' on DS2 at ε = 0.1 (within 6 %)",
        "PrivTHR 131.2, PrivTHR-EM 82.8.",
        run=_ALL,
        check=check_numbers({THR: 131.2, EM: 82.8}, 0.1),
        exact=True,
        because="At ε = 0.1 single runs of both differ by half of k; the paper has 10 runs.",
    ),
    _item(
        "Section 7.2",
        "Relative errors of k' from ε = 0.5 on",
        "Below 4.7 % on average for PrivTHR and PrivTHR-EM; 32.2 to 150.5 % for the others.",
        run=_ALL,
        check=check_relative_errors,
        because="Below that on DS1, DS2 and DS3 from ε = 1 on, but not on the Gowalla stand-ins, "
        "where few cells are filled and PrivTHR-EM mostly keeps too few. " + _GRID,
    ),
    _item(
        "Section 7.2",
        "PrivTHR-EM depends more on ε than PrivTHR",
        "DS2 at ε = 0.1: relative errors of k' of 42.5 % and 8.9 %.",
        run=_ALL,
        check=check_sensitive,
    ),
    _item(
        "Figure 6",
        "DSG_C from ε = 0.5 on",
        "PrivTHR and PrivTHR-EM are below PrivQT and Baseline on all sets for all budgets.",
        run=_ALL,
        check=check_order("dsg", (0.5, 1.0, 2.0)),
        because=_GRID,
    ),
    _item(
        "Figure 6",
        "DSG_C below ε = 0.5",
        "PrivTHR and PrivTHR-EM are below PrivQT and Baseline on all sets for all budgets.",
        run=_ALL,
        check=check_order("dsg", (0.1, 0.2)),
        because="On DS1 PrivTHR-EM is behind PrivQT at ε = 0.1: three tenths of ε are too little "
        "for its threshold, and in many runs no cell is left. " + _GRID,
    ),
    _item(
        "Section 7.3",
        "PrivQT gains little from more budget",
        "Half of the empty cells pass for filled ones, whatever ε is.",
        run=_ALL,
        check=check_little_gain,
    ),
    _item(
        "Figure 7",
        "The F-measure forgives: DS1",
        "PrivQT and Baseline are above 0.8 for almost all budgets.",
        run=_ALL,
        check=check_f_measure,
        because="PrivQT is, Baseline only at ε = 2; with 48 cells a side and p = 0.7 both are "
        "(next item). " + _BASELINE,
    ),
    _item(
        "Figure 7",
        "The F-measure forgives: DS1 on one of seven other grids that were tried",
        "PrivQT and Baseline are above 0.8 for almost all budgets.",
        run=_COARSE,
        check=check_f_measure,
        because=_BASELINE,
    ),
    _item(
        "Figure 7",
        "Clusters on DS1 at ε = 0.1",
        "PrivQT and Baseline have more than 30 clusters; 15 are true.",
        run=_ALL,
        check=check_many_clusters,
        because="PrivQT has; Baseline merges clusters instead, on every grid that was tried (32 to "
        "80 cells a side). " + _BASELINE,
    ),
    _item(
        "Figure 8",
        "OCM from ε = 0.5 on",
        "PrivTHR and PrivTHR-EM are below Baseline and PrivQT on all sets.",
        run=_ALL,
        check=check_order("ocm", (0.5, 1.0, 2.0)),
        because="On the Gowalla stand-ins PrivTHR-EM needs more budget. " + _GRID,
    ),
    _item(
        "Figure 8",
        "OCM above ε = 0.5",
        "Below 0.15 on DS1, DS3 and Gowalla; on DS2 PrivTHR-EM below 0.1, PrivTHR 0.1 to 0.2.",
        run=_ALL,
        check=check_small_ocm,
        because="So on DS1, DS2 and DS3; on the sparse stand-in `gowalla` PrivTHR-EM needs ε = 2. "
        + _GRID,
    ),
    _item(
        "Figure 8",
        "2CE from ε = 0.5 on",
        "PrivTHR and PrivTHR-EM are below Baseline and PrivQT on all sets.",
        run=_ALL,
        check=check_order("2ce", (0.5, 1.0, 2.0)),
        because="On the Gowalla stand-ins PrivTHR-EM needs more budget. " + _GRID,
    ),
    _item(
        "Figure 8",
        "2CE on DS1",
        "Below 0.1 for all four, and far below OCM.",
        run=_ALL,
        check=check_small_pairs,
        because="So from ε = 0.5 on; below, PrivTHR-EM often keeps no cell at all, so that all "
        "points are in one class.",
    ),
    _item(
        "Section 7.4",
        "How PrivTHR divides its budget: DS1",
        "90 % for the counts is best.",
        run=_SHARES,
        check=check_share(("ds1",)),
    ),
    _item(
        "Section 7.4",
        "How PrivTHR divides its budget: the other sets",
        "The other sets show similar results.",
        run=_SHARES,
        check=check_share(("ds2", "ds3")),
        because="On DS2 and DS3 less than 90 % for the counts is better: their k is smaller in "
        "relation to the noise of the number of empty cells. Our default is 70 %.",
    ),
)
