"""Audit a method as it is installed: rerun its proof tests on simulated tables.

Every check but those of conformance is tried on a broken twin as well, so that it is known to
notice what it looks for.  Only simulated rows are read, and no ledger.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from importlib.metadata import version
from time import monotonic
from typing import Any, NamedTuple

from dpublish.auditing.black_box import DOUBT, measure
from dpublish.auditing.examples import EXAMPLES, SCHEMA, STREAM_EXAMPLES
from dpublish.auditing.result import NOT_CHECKED, Audit, Check
from dpublish.auditing.specimens import UNTESTED, Specimen, specimen_of, why_untested
from dpublish.auditing.subjects import StreamSubject, Subject, TableSubject
from dpublish.core.catalog import CATALOG, STREAMS
from dpublish.core.method import Method
from dpublish.core.progress import showing_progress
from dpublish.core.proofs import proofs_of
from dpublish.core.registry import list_methods, make_method
from dpublish.core.run import Progress
from dpublish.core.settings import canonical_name, default_words
from dpublish.errors import (
    DPublishError,
    InvalidParameter,
    plain_refusals,
    require_count,
    require_known,
)
from dpublish.methods.streams.method import StreamMethod, make_stream_method
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import ExactNumber, format_epsilon, format_rounded, parse_epsilon
from dpublish.randomness import RandomSource, secure, seeded
from dpublish.testing import frequency_p_value, privacy_loss
from dpublish.testing.replay import ROUNDING, Call, Diverged

EPSILON = "1"
RUNS = 900
_SLOW = {
    "model": 10,
    "synth": 30,
    **dict.fromkeys(("gkm", "hybrid", "eugkm", "ugkm", "mkm"), 200),
    **dict.fromkeys(("privpfc", "privgene", "pgkm", "private-svm", "output-perturbation"), 300),
    "kmeans": 600,
}
"""Methods of which one release takes long, and how often they run unless told otherwise."""
_TWINS: Mapping[str, Mapping[str, int]] = {
    "2 records counted as one": {"times": 2},
    "20 records counted as one": {"times": 20},
    "1,000 times the budget": {"spends": 1_000},
}
"""Broken twins of a replay on neighbors, the least fault first; the last where few records
hardly matter."""
_FACTORS, _FEW_RUNS = (2, 8), 100
"""How many times its budget a broken twin spends; the largest alone in few runs."""
_TRIED = 5
"""Calls of a kind that are tried for a specimen."""
_EXPECTED = 20
"""How often an outcome must be expected, or it is pooled: chi-squared is off for rare ones."""

Found = tuple[Mapping[str, str], str, bool | None]
"""Figures, the broken twin in words, and whether it was noticed."""


class Planned(NamedTuple):
    """A check that is going to be made."""

    part: str
    name: str
    says: str
    make: Callable[[], Found]


@plain_refusals
def audit(
    method: str | Method[Any] | StreamMethod,
    *,
    settings: Mapping[str, Any] | None = None,
    epsilon: ExactNumber = EPSILON,
    runs: int | None = None,
    seed: int | None = None,
    progress: Progress | bool | None = True,
) -> Audit:
    """Rerun the proof tests of an installed method, and return what was found.

    Reads simulated tables only; no ledger pays for it, and nothing is published.

    Args:
        method: Its name, or a method with its settings.
        settings: Other settings than those of the audit's own example; for a method of another
            package all that it needs.  The simulated table has the columns age, sex, height
            and town; that of streams has zone and hour.
        epsilon: What the audited releases spend.
        runs: How often the black box runs the method on each of two neighbors.
        seed: A seed for the draws of mechanisms and black box, so that an audit can be
            repeated; fresh randomness of the operating system without it.  Conformance and
            replay always run from the same seeds.
        progress: Shows progress on a terminal; or a function of (done, total, label).

    >>> found = audit("majority", runs=60, seed=1)
    >>> found.passed, found.failed
    (True, [])
    """
    began = monotonic()
    subject = subject_of(method, settings, parse_epsilon(epsilon))
    runs = _SLOW.get(subject.name, RUNS) if runs is None else runs
    require_count(runs=runs, at_least=10)
    if seed is not None:
        require_count(seed=seed, at_least=0)
    proofs = _proofs(subject)  # refuses settings that do not fit before anything is checked
    source = secure() if seed is None else seeded(seed)
    planned = _plan(subject, source, runs)
    checks = []
    with showing_progress(progress) as show:
        for number, each in enumerate(planned):
            if show is not None:
                show(number, len(planned), f"{each.part}: {each.name}")
            checks.append(_attempt(each))
    return Audit(
        method=subject.name,
        settings=_settings(subject.method),
        epsilon=format_epsilon(subject.epsilon),
        seed=seed,
        runs=runs,
        checks=checks,
        not_checked=(*NOT_CHECKED, *subject.beyond, *_unsure(subject), *_unnoticed(checks)),
        proofs=proofs,
        version=version("dpublish"),
        seconds=monotonic() - began,
    )


def _proofs(subject: Subject) -> tuple[str, ...]:
    """Name the proofs of a method; none if it breaks down, as its checks will."""
    try:
        return proofs_of(subject.paid()[1])
    except DPublishError:
        raise
    except (Exception, SystemExit):  # noqa: BLE001 - what it was is told by the checks
        return ()


def auditable() -> list[str]:
    """List the methods that can be audited by name alone."""
    return [*CATALOG, *STREAMS]


def planned_checks(
    method: str | Method[Any] | StreamMethod, settings: Mapping[str, Any] | None = None
) -> list[tuple[str, str, str]]:
    """List what an audit would check: part, name, and what holds if it passes."""
    subject = subject_of(method, settings, Fraction(EPSILON))
    return [each[:3] for each in _plan(subject, seeded(1), 10)]


def subject_of(
    method: str | Method[Any] | StreamMethod,
    settings: Mapping[str, Any] | None,
    epsilon: Fraction,
) -> Subject:
    """Build the method with the settings of an example, and others on top."""
    if isinstance(method, str):
        method = _by_name(canonical_name(method), dict(settings or {}))
    elif settings:
        raise InvalidParameter("settings go with the name of a method, not with a method")
    if isinstance(method, StreamMethod):
        return StreamSubject(method, epsilon)
    return TableSubject(method, epsilon)


def _by_name(name: str, settings: dict[str, Any]) -> Method[Any] | StreamMethod:
    require_known("method", name, [each.name for each in list_methods()])
    if name in STREAMS:
        example = next(found for other, found in STREAM_EXAMPLES if other == name)
        return make_stream_method(name, {**example, **settings})
    if name in EXAMPLES:
        return make_method(name, {**EXAMPLES[name][0], **settings})
    try:
        return make_method(name, settings)
    except InvalidParameter as refusal:
        columns = ", ".join(SCHEMA.names)
        raise InvalidParameter(
            f"{name} is a method of another package, so give its settings (--set NAME=VALUE) for "
            f"the simulated table with the columns {columns}: {refusal}"
        ) from None


def _settings(method: Any) -> dict[str, str]:
    """Write the settings that are not their defaults."""
    return {
        item.name: default_words(getattr(method, item.name))
        for item in fields(method)
        if getattr(method, item.name) != item.default
    }


# --- What is checked --------------------------------------------------------------------------


def _plan(subject: Subject, source: RandomSource, runs: int) -> list[Planned]:
    rules = [
        Planned("conformance", name, says, _without_figures(check))
        for name, says, check in subject.rules()
    ]
    specimens = [
        Planned(
            "mechanisms",
            each.name,
            "drawn as its exact distribution says, which costs at most its epsilon",
            _making(_check_specimen, each, source),
        )
        for each in _specimens(_calls_of(subject))
    ]
    summed = [
        Planned(
            "account",
            "mechanisms that ran",
            "together they are paid at most epsilon",
            _making(_check_calls, subject),
        )
    ]
    if _why_no_sum(subject):
        summed = []
    return [
        *rules,
        Planned(
            "replay",
            "unrelated rows",
            "given the same noise and choices, the other tables published the same",
            _making(_check_unrelated, subject),
        ),
        Planned(
            "replay",
            "plan",
            "what was drawn, and how much noise, was the same on all of them",
            _making(_check_planning, subject),
        ),
        Planned(
            "replay",
            "neighbors",
            f"{subject.one} cost at most epsilon where it was tried, all draws added up",
            _making(_check_neighbors, subject),
        ),
        Planned(
            "account",
            "receipt",
            "the budget, its shares and the receipt agree",
            _making(_check_receipt, subject),
        ),
        *summed,
        *specimens,
        Planned(
            "black box",
            "measured loss",
            f"no loss above epsilon shows on two neighbors (false alarms: {DOUBT:g})",
            _making(_check_black_box, subject, source, runs),
        ),
    ]


def _calls_of(subject: Subject) -> Sequence[Call]:
    """Return what was asked of mechanisms; nothing if that cannot be told, as the replay says."""
    try:
        return subject.calls()
    except (Exception, SystemExit):  # noqa: BLE001 - a check of its own fails for the same reason
        return ()


def _why_no_sum(subject: Subject) -> str:
    """Tell why what mechanisms were paid cannot be added up; nothing if it can."""
    try:
        calls, receipt = subject.calls(), subject.paid()[1]
    except (Exception, SystemExit):  # noqa: BLE001 - the check fails for the same reason
        return ""
    if receipt.parallel:
        return "disjoint parts cost the largest share, not the sum"
    if subject.is_sampled:
        return "records are drawn by lot, which amplifies shares"
    if any(_price(call) is None for call in calls if call.kind not in (*UNTESTED, "sample")):
        return "choices were paid by a share that they do not name"
    return ""


def _unsure(subject: Subject) -> list[str]:
    """Name what no check compared, although another method's audit would have."""
    calls, why = _calls_of(subject), _why_no_sum(subject)
    summed = [f"the sum of what mechanisms were paid: {why}; see neighbors"] if why else []
    return summed + _untested(calls)


def _unnoticed(checks: Sequence[Check]) -> list[str]:
    """Name the checks that passed, and passed their broken twin, too."""
    return [
        f"what {each.part} would show with more power: no broken twin was noticed"
        for each in checks
        if each.passed and each.twin and each.noticed is False
    ]


def _making(check: Callable[..., Found], *given: Any) -> Callable[[], Found]:
    return lambda: check(*given)


def _without_figures(check: Callable[[], None]) -> Callable[[], Found]:
    def checked() -> Found:
        check()
        return {}, "", None

    return checked


class _Fault(AssertionError):
    """A check that failed, with what was measured."""

    def __init__(self, reason: str, found: Found) -> None:
        super().__init__(reason)
        self.found = found


def _attempt(planned: Planned) -> Check:
    """Make a check; whatever it raises is why it failed."""
    found: Found = ({}, "", None)
    reason = ""
    try:
        found = planned.make()
    except _Fault as fault:
        found, reason = fault.found, str(fault)
    except AssertionError as broken:
        reason = str(broken) or "a rule is broken"
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a method that breaks down has failed
        reason = f"{type(error).__name__}: {error}"
    figures, twin, noticed = found
    return Check(
        part=planned.part,
        name=planned.name,
        says=planned.says,
        passed=not reason,
        figures=figures,
        twin=twin,
        noticed=noticed,
        reason=" ".join(reason.split()),
    )


def _require(holds: bool, reason: str, found: Found) -> None:
    if not holds:
        raise _Fault(reason, found)


def _require_noticed(found: Found) -> Found:
    """A check that its broken twin passes proves nothing."""
    _require(found[2] is True, "this check does not notice its broken twin", found)
    return found


def _raises(run: Callable[[], Any]) -> bool:
    try:
        run()
    except AssertionError:
        return True
    return False


# --- Replay -----------------------------------------------------------------------------------


def _check_unrelated(subject: Subject) -> Found:
    tapes = subject.replayed()
    leaks = _raises(lambda: subject.replay_unrelated(subject.leaking_run))
    calls = sum(len(tape.calls) for tape in tapes)
    figures = {"tables compared": str(subject.compared), "calls played back": f"{calls:,}"}
    return _require_noticed((figures, subject.leak, leaks))


def _check_planning(subject: Subject) -> Found:
    subject.replayed()
    try:
        noticed = not subject.replay_unrelated(subject.branching_run)
    except Diverged:
        noticed = True
    return _require_noticed(({}, "more noise for one table than for others", noticed))


def _check_neighbors(subject: Subject) -> Found:
    losses = subject.replay_neighbors()
    worst = max(losses, key=lambda loss: loss.lost / loss.allowed)
    noticed = next((words for words, twin in _TWINS.items() if _is_noticed(subject, twin)), "")
    found: Found = (
        {
            "largest loss": f"{worst.lost:.4g}",
            "allowed": f"{worst.allowed:.4g}",
            "neighbors tried": str(len(losses)),
        },
        noticed or next(iter(_TWINS)),
        bool(noticed),
    )
    _require(worst.lost <= worst.allowed + ROUNDING, "a record costs more than epsilon", found)
    return _require_noticed(found)


def _is_noticed(subject: Subject, twin: Mapping[str, int]) -> bool:
    """Check whether a twin costs more than a record may."""
    try:
        return any(each.lost > each.allowed for each in subject.replay_neighbors(**twin))
    except AssertionError:  # one call cost more than it was paid
        return True


# --- The account ------------------------------------------------------------------------------


def _check_receipt(subject: Subject) -> Found:
    budget, receipt = subject.paid()
    figures = {
        "epsilon": format_rounded(receipt.epsilon),
        "shares": " + ".join(
            f"{format_rounded(share)} {purpose.rpartition('/')[2]}".strip()
            for purpose, share in receipt.shares[:12]
        ),
    }
    if len(receipt.shares) > 12:
        figures["shares"] += f" and {len(receipt.shares) - 12} more"
    if receipt.parallel:
        figures["disjoint parts"] = "cost the largest, not the sum"
    stated = _Stated(receipt.epsilon, tuple(receipt.shares))
    wrong = _Stated(2 * stated.epsilon, stated.shares), _Stated(stated.epsilon, stated.shares[1:])
    noticed = all(_disagree(budget, each) for each in wrong)
    found: Found = (figures, "twice the epsilon, or a share that is not listed", noticed)
    fault = _disagree(budget, stated)
    _require(not fault, fault, found)
    return _require_noticed(found)


class _Stated(NamedTuple):
    """What a receipt states of the budget."""

    epsilon: Fraction
    shares: tuple[tuple[str, Fraction], ...]


def _disagree(budget: Budget, stated: _Stated) -> str:
    """Say where a budget and a receipt disagree; nothing if they agree."""
    if not all(share.is_used for share in budget.account()):
        return "a share of the budget was not spent"
    if not budget.cost() == budget.epsilon == stated.epsilon:
        return "the receipt states another epsilon than the budget cost"
    if stated.shares != tuple((share.purpose, share.epsilon) for share in budget.account()):
        return "the receipt lists other shares than the budget had"
    return ""


def _check_calls(subject: Subject) -> Found:
    calls, (_, receipt) = [each for each in subject.calls() if _price(each)], subject.paid()
    figures: dict[str, str] = {}
    for kind in dict.fromkeys(call.kind for call in calls):
        prices = [_price(call) or Fraction(0) for call in calls if call.kind == kind]
        most = format_rounded(max(prices))
        times = "once" if len(prices) == 1 else f"{len(prices)} times"
        figures[kind] = f"{times}, epsilon {most}{'' if len(prices) == 1 else ' at most'}"
    paid = sum((_price(call) or Fraction(0) for call in calls), Fraction(0))
    figures["sum"] = f"{format_rounded(paid)} of {format_rounded(receipt.epsilon)}"
    if subject.spans > 1:
        figures["sum"] += f" in each of {subject.spans} windows"
    allowed = subject.spans * receipt.epsilon
    found: Found = figures, "everything is paid twice", 2 * paid > allowed
    _require(paid <= allowed, "mechanisms were paid more than the receipt states", found)
    return found


def _price(call: Call) -> Fraction | None:
    """Return what a call was paid; None if it was paid with another one."""
    if call.kind == "sparse vector":
        paid: Fraction = call.public[0]
        return paid
    if call.kind == "stored vector":
        stored: Fraction = call.public[2]
        return stored
    return call.epsilon


# --- Mechanisms -------------------------------------------------------------------------------


def _specimens(calls: Sequence[Call]) -> list[Specimen]:
    """Make one specimen of each kind of call."""
    found = (_specimen(calls, kind) for kind in dict.fromkeys(call.kind for call in calls))
    return [each for each in found if each is not None]


def _specimen(calls: Sequence[Call], kind: str) -> Specimen | None:
    """Make a specimen from the call that was paid most, of those whose draws tell a fault."""
    alike = {(repr(call.public), call.epsilon): call for call in calls if call.kind == kind}
    paid = sorted(alike.values(), key=lambda call: _price(call) or Fraction(0), reverse=True)
    for call in paid[:_TRIED]:
        specimen = specimen_of(call)
        if specimen is None or specimen.is_telling(DOUBT, _EXPECTED):
            return specimen
    return None


def _untested(calls: Sequence[Call]) -> list[str]:
    """Name the calls that have no test of their own."""
    return [
        f"{kind}: no test of its own ({why_untested(kind)})"
        for kind in dict.fromkeys(call.kind for call in calls)
        if _specimen(calls, kind) is None
    ]


def _check_specimen(specimen: Specimen, source: RandomSource) -> Found:
    expected = specimen.expected(1)

    def drawn(factor: int) -> tuple[float, int]:
        outcomes = list(specimen.draw(factor, source))
        return frequency_p_value(outcomes, expected, min_expected=_EXPECTED), len(outcomes)

    p_value, draws = drawn(1)
    if again := p_value < DOUBT:  # a fault shows again; a false alarm does not
        p_value = max(p_value, drawn(1)[0])
    noticed = drawn(2)[0] < DOUBT
    figures = {"epsilon": format_rounded(specimen.epsilon)} if specimen.epsilon else {}
    if specimen.sensitivity is not None:
        figures["sensitivity"] = f"{format_rounded(specimen.sensitivity)}"
    epsilon, fault = float(specimen.epsilon), ""
    if specimen.worst is not None:
        loss, twin_loss = (privacy_loss(*specimen.worst(factor)) for factor in (1, 2))
        figures["exact loss"] = f"{loss:.4g}"
        noticed = noticed and twin_loss > epsilon * (1 + ROUNDING)
        if loss > epsilon * (1 + ROUNDING) + ROUNDING:
            fault = "worst-case neighbors lose more than epsilon"
        elif specimen.is_attained and loss < epsilon * (1 - 1e-6) - ROUNDING:
            fault = "worst-case neighbors lose less than epsilon, so the noise is too much"
    figures["draws"] = f"{draws:,}{', twice' if again else ''}"
    figures["p-value"] = f"{p_value:.2g}"
    found: Found = (figures, specimen.twin, noticed)
    _require(not fault, fault, found)
    _require(p_value >= DOUBT, f"what is drawn has another distribution (p below {DOUBT:g})", found)
    return _require_noticed(found)


# --- Black box --------------------------------------------------------------------------------


def _check_black_box(subject: Subject, source: RandomSource, runs: int) -> Found:
    allowed = subject.allowed
    measured = measure(*subject.publishers(subject.epsilon, source), runs)
    figures = {
        "measured loss at least": f"{measured.loss:.3f}",
        "allowed": f"{allowed:.4g}",
        "runs": f"{measured.runs:,} on each",
    }
    if measured.loss > allowed:
        raise _Fault("outcomes tell two neighbors apart too well", (figures, "", None))
    twin, noticed = _spending_twin(subject, source, runs)
    return figures, twin, noticed


def _spending_twin(subject: Subject, source: RandomSource, runs: int) -> tuple[str, bool | None]:
    """Find how many times its budget a method must spend for this number of runs to notice."""
    twin, noticed = "", None
    for factor in _FACTORS if runs >= _FEW_RUNS else _FACTORS[-1:]:
        try:
            pair = subject.publishers(subject.epsilon * factor, source)
            found = measure(*pair, runs).loss
        except InvalidParameter:  # no level pays so much
            break
        twin, noticed = f"spends {factor} times its budget", found > subject.allowed
        if noticed:
            break
    return twin, noticed
