"""StreamAccount of a stream: no window costs more than epsilon, whatever a policy does."""

import json
from fractions import Fraction

import numpy as np
import pytest

from dpublish.errors import BudgetExhausted
from dpublish.methods.streams import snapshot
from dpublish.methods.streams.dsat_w import DSATw
from dpublish.methods.streams.dsft import DSFT
from dpublish.methods.streams.policy import Publish
from dpublish.privacy.budget import Budget, Grant
from dpublish.privacy.stream_account import StreamAccount
from dpublish.randomness import plain_generator, seeded
from methods.streams.stream_distribution import BINS, SCHEMA, SHARED

TENTH = Fraction(1, 10)


class ForgetfulStreamAccount(StreamAccount):
    """Counts a run of comparisons only where it began."""

    def continue_run(self, number, epsilon):
        """Note nothing."""


def walk(account, choices):
    """Make random entries; give what was entered, and what the account refused, if it did."""
    entries, runs = [], []
    has_run = False
    for number in range(1, 60):
        account.begin_step(number)
        act = choices.choice(["nothing", "nothing", "publish", "ask", "ask", "end"])
        amount = TENTH * (int(choices.integers(1, 4)) if act == "publish" else 1)
        try:
            if act == "publish":
                account.draw(number, amount, "histogram")
                entries.append((number, amount))
            elif act == "ask" and has_run:
                account.continue_run(number, TENTH)
                runs[-1].append(number)
            elif act == "ask":
                account.open_run(number, TENTH)
                runs.append([number])
                has_run = True
            elif act == "end":
                has_run = False
        except BudgetExhausted:
            return entries, runs, (number, amount)
    return entries, runs, None


def cost(entries, runs, first, window):
    """What one window costs: publications in it, and runs that asked in it, however often."""
    steps = range(first, first + window)
    published = sum((amount for number, amount in entries if number in steps), Fraction(0))
    return published + TENTH * sum(any(number in steps for number in run) for run in runs)


def most(entries, runs, window):
    return max(cost(entries, runs, first, window) for first in range(1 - window, 60))


@pytest.mark.parametrize("window", [1, 2, 5, 12])
def test_the_account_knows_the_worst_window(window):
    for seed in range(40):
        account = StreamAccount(Fraction(10**6), window)
        entries, runs, refused = walk(account, plain_generator(seed))
        assert refused is None
        assert account.worst == most(entries, runs, window)


@pytest.mark.parametrize("window", [2, 5, 12])
def test_the_account_refuses_just_what_would_be_too_much(window):
    refusals = 0
    for seed in range(40):
        account = StreamAccount(Fraction(1, 2), window)
        entries, runs, refused = walk(account, plain_generator(seed))
        assert most(entries, runs, window) <= Fraction(1, 2)
        if refused:
            refusals += 1
            assert most([*entries, refused], runs, window) > Fraction(1, 2)
    assert refusals > 10


def test_an_account_that_forgets_runs_is_caught():
    window, differs = 5, 0
    for seed in range(40):
        account = ForgetfulStreamAccount(Fraction(10**6), window)
        entries, runs, _ = walk(account, plain_generator(seed))
        differs += account.worst < most(entries, runs, window)
    assert differs >= 5


def test_without_windows_everything_counts_for_ever():
    account = StreamAccount(Fraction(1, 2), None)
    account.draw(1, TENTH, "histogram")
    account.open_run(2, TENTH)
    for number in range(3, 50):
        account.begin_step(number)
        account.continue_run(number, TENTH)
    assert account.spent == account.worst == 2 * TENTH
    with pytest.raises(BudgetExhausted, match=r"only 0\.3 is left"):
        account.draw(50, 4 * TENTH, "histogram")
    assert account.spent == 2 * TENTH


@pytest.mark.parametrize("amount", [0, -TENTH])
def test_nothing_is_free_and_nothing_is_paid_back(amount):
    with pytest.raises(BudgetExhausted):
        StreamAccount(Fraction(1), None).draw(1, Fraction(amount), "histogram")


def test_the_budget_holds_what_was_debited():
    account = StreamAccount(Fraction(1), 3)
    assert account.draw(1, TENTH, "histogram").epsilon == TENTH
    assert account.open_run(1, 2 * TENTH).epsilon == 2 * TENTH
    assert account.spent == 3 * TENTH


def test_what_a_ledger_granted_pays_for_every_step():
    grant = Grant("taxis", 3, "f" * 64, "2026-01-01T00:00:00+00:00")
    account = StreamAccount(Fraction(1), 3, grant)
    for budget in (account.draw(1, TENTH, "histogram"), account.open_run(1, TENTH)):
        assert (budget.grant, budget.opened) == (grant, grant.time)
    again = StreamAccount.from_dict(json.loads(json.dumps(account.to_dict())), grant)
    assert again.draw(2, TENTH, "histogram").grant == grant
    assert StreamAccount(Fraction(1), 3).draw(1, TENTH, "histogram").grant is None


def test_commitments_say_what_is_used_up_and_change_nothing():
    account = StreamAccount(Fraction(1), 3)
    for number in (1, 2):
        account.begin_step(number)
        account.draw(number, number * TENTH, "histogram")
    before = account.to_dict()
    assert account.ahead(2, 3) == [(3, 3 * TENTH), (4, 2 * TENTH), (5, Fraction(0))]
    assert account.to_dict() == before


def test_an_account_goes_on_from_a_file():
    for seed in range(5):
        account = StreamAccount(Fraction(10**6), 5)
        walk(account, plain_generator(seed))
        again = StreamAccount.from_dict(json.loads(json.dumps(account.to_dict())), None)
        assert again == account


@pytest.mark.parametrize("window", [3, 8])
@pytest.mark.parametrize("releases", [1, 2, 3])
def test_random_answers_never_make_a_window_cost_too_much(window, releases, monkeypatch):
    """The account would refuse; segments touched and publications are counted besides."""
    for seed in range(8):
        choices = plain_generator(seed)
        method = DSATw(**SHARED, window=window, releases=releases, controller="schedule", burn_in=1)
        opened = method.start(SCHEMA, budget=Budget.seeded(1), rng=seeded(1))
        published, asked, runs = set(), {}, []
        with monkeypatch.context() as patch:
            patch.setattr(snapshot, "StoredVector", RandomAnswers(choices, asked, runs))
            for number in range(1, 60):
                asked["now"] = number
                if opened.next_counts(np.zeros(BINS, dtype=np.int64), rng=seeded(1)).epsilon:
                    published.add(number)
        for first in range(1, 60):
            steps = set(range(first, first + window))
            assert len(published & steps) <= releases
            assert sum(bool(run & steps) for run in runs) <= releases
        assert opened.worst == 1


class RandomAnswers:
    """Stands in for stored vectors; answers by the toss of a coin."""

    def __init__(self, choices, asked, runs):
        self.choices, self.asked, self.runs = choices, asked, runs

    def draw(self, *, sensitivity, max_positives, budget, rng):
        budget.spend()
        self.runs.append(set())
        self.positives_left = max_positives
        return self

    def above(self, answer, threshold, rng):
        self.runs[-1].add(self.asked["now"])
        is_above = bool(self.choices.integers(2))
        self.positives_left -= is_above
        return is_above, self


class Spendthrift:
    """A policy that spends a bit more than it may."""

    def plan(self, history):
        return Publish(Fraction(11, 20))

    def learn(self, history, publication):
        """Learn nothing."""

    def decisions(self):
        """Make none."""


@pytest.mark.parametrize(
    "method",
    [
        DSFT(**SHARED, horizon=5),
        DSATw(**SHARED, window=3, releases=2, controller="schedule"),
    ],
)
def test_a_policy_that_overspends_is_stopped(method, monkeypatch):
    monkeypatch.setattr(type(method), "policy", lambda self, bins, epsilon: Spendthrift())
    monkeypatch.setattr(type(method), "comparisons", lambda self, bins, epsilon: None)
    monkeypatch.setattr(type(method), "publication_epsilon", lambda self, bins, epsilon: epsilon)
    opened = method.start(SCHEMA, budget=Budget.seeded(1), rng=seeded(1))
    counts = np.zeros(BINS, dtype=np.int64)
    opened.next_counts(counts, rng=seeded(1))
    with pytest.raises(BudgetExhausted, match="a fault of the method"):
        opened.next_counts(counts, rng=seeded(1))
    assert opened.worst == Fraction(11, 20)
