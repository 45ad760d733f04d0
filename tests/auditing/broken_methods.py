"""Methods that are wrong on purpose, each in one way, so that an audit must fail them."""

from dataclasses import dataclass, replace

import numpy as np

from dpublish.aggregates.counts import Counts
from dpublish.errors import InvalidParameter
from dpublish.methods.histogram.histogram import Histogram
from dpublish.methods.histogram.released import HistogramRelease
from dpublish.privacy.budget import Budget


@dataclass(frozen=True, kw_only=True)
class _Broken(Histogram):
    """A histogram whose counts come from elsewhere."""

    def kernel(self, run):
        return Counts(run.schema, (tuple((axis.column, axis.level) for axis in self.axes(run)),))

    def axes(self, run):
        return self._axes(run.schema)

    def released(self, run, counts):
        axes = self.axes(run)
        return HistogramRelease(
            receipt=run.receipt(),
            schema=replace(run.schema, columns=tuple(run.schema[a.column] for a in axes)),
            axes=axes,
            cells=np.arange(counts.size, dtype=np.int64),
            counts=counts,
            noise_rate=run.epsilon,
            threshold=None,
            records=None,
        )


@dataclass(frozen=True, kw_only=True)
class HalfNoise(_Broken):
    """Adds half the noise: it pays epsilon, and draws with twice as much."""

    name = "half-noise"

    def _release(self, run):
        """Publish.

        Privacy:
            None.
        """
        run.split(counts=1)["counts"].spend()
        kernel = self.kernel(run)
        forged = Budget.seeded(2 * run.epsilon)
        return self.released(run, run.add_noise(run.sum(kernel), of=kernel, budget=forged))


@dataclass(frozen=True, kw_only=True)
class ForgottenSensitivity(_Broken):
    """Counts every record twice, with noise for one."""

    name = "forgotten-sensitivity"

    def _release(self, run):
        """Publish.

        Privacy:
            None.
        """
        share = run.split(counts=1)["counts"]
        exact = 2 * run.sum(self.kernel(run))
        return self.released(run, run.add_noise(exact, sensitivity=1, budget=share) // 2)


@dataclass(frozen=True, kw_only=True)
class PaysOnce(_Broken):
    """Averages two noisy histograms, and pays for one."""

    name = "pays-once"

    def _release(self, run):
        """Publish.

        Privacy:
            None.
        """
        share = run.split(counts=1)["counts"]
        kernel = self.kernel(run)
        exact = run.sum(kernel)
        both = (
            run.add_noise(exact, of=kernel, budget=budget)
            for budget in (share, Budget.seeded(run.epsilon))
        )
        return self.released(run, sum(both) // 2)


@dataclass(frozen=True, kw_only=True)
class LooksAtRows(_Broken):
    """Spends otherwise where there are many records."""

    name = "looks-at-rows"

    def _release(self, run):
        """Publish.

        Privacy:
            None.
        """
        less, more = run.split(less=1, more=2).values()
        kernel = self.kernel(run)
        exact = run.sum(kernel)
        first, last = (less, more) if exact.sum() > 1_000 else (more, less)
        run.add_noise(exact, of=kernel, budget=first)
        return self.released(run, run.add_noise(exact, of=kernel, budget=last))


@dataclass(frozen=True, kw_only=True)
class ExactTotal(_Broken):
    """Moves a noisy cell so that the total is exact."""

    name = "exact-total"

    def _release(self, run):
        """Publish.

        Privacy:
            None.
        """
        share = run.split(counts=1)["counts"]
        kernel = self.kernel(run)
        exact = run.sum(kernel)
        noisy = run.add_noise(exact, of=kernel, budget=share)
        noisy[0] += exact.sum() - noisy.sum()
        return self.released(run, noisy)


@dataclass(frozen=True, kw_only=True)
class ReadsFirst(_Broken):
    """Reads rows before it opens its budget."""

    name = "reads-first"

    def _release(self, run):
        """Publish.

        Privacy:
            None.
        """
        kernel = self.kernel(run)
        exact = run.sum(kernel)
        share = run.split(counts=1)["counts"]
        return self.released(run, run.add_noise(exact, of=kernel, budget=share))


@dataclass(frozen=True, kw_only=True)
class BreaksOff(_Broken):
    """Breaks off where there is no record."""

    name = "breaks-off"

    def _release(self, run):
        """Publish.

        Privacy:
            None.
        """
        share = run.split(counts=1)["counts"]
        kernel = self.kernel(run)
        exact = run.sum(kernel)
        if not exact.any():
            raise ValueError("no rows")
        return self.released(run, run.add_noise(exact, of=kernel, budget=share))


class _Sexes:
    """Kernel: records by sex."""

    codes, values = ("sex", "height"), ()

    def zero(self):
        return np.zeros(3, dtype=np.int64)

    def merge(self, out, other):
        out += other


class _MissingThrice(_Sexes):
    """Counts records without a height three times."""

    def add(self, batch, out):
        missing = batch.codes("height") == 6
        np.add.at(out, batch.codes("sex"), 1 + 2 * missing)


class _OnlyFirst(_Sexes):
    """Counts the first 200 records alone: another one in front moves one out."""

    def add(self, batch, out):
        sexes = batch.codes("sex")[: 200 - out[2]]
        np.add.at(out, sexes, 1)
        out[2] += sexes.size


@dataclass(frozen=True, kw_only=True)
class CountsMissingThrice(_Broken):
    """Has a sensitivity that is right for records without a missing value alone."""

    name = "counts-missing-thrice"

    def reads(self, schema):
        return "sex", "height"

    def _release(self, run):
        """Publish.

        Privacy:
            None.
        """
        share = run.split(counts=1)["counts"]
        exact = run.sum(_MissingThrice())[:2]
        return self.released(run, run.add_noise(exact, sensitivity=1, budget=share))


@dataclass(frozen=True, kw_only=True)
class FirstRecords(_Broken):
    """Depends on the order of records."""

    name = "first-records"

    def reads(self, schema):
        return "sex", "height"

    def _release(self, run):
        """Publish.

        Privacy:
            None.
        """
        share = run.split(counts=1)["counts"]
        exact = run.sum(_OnlyFirst())[:2]
        return self.released(run, run.add_noise(exact, sensitivity=1, budget=share))


@dataclass(frozen=True, kw_only=True)
class _AfterNoise(_Broken):
    """Adds noise to counts, and then does something wrong."""

    def _release(self, run):
        """Publish.

        Privacy:
            None.
        """
        share = run.split(counts=1)["counts"]
        kernel = self.kernel(run)
        exact = run.sum(kernel)
        noisy = run.add_noise(exact, of=kernel, budget=share)
        return self.after(run, exact, noisy)


@dataclass(frozen=True, kw_only=True)
class AsksAgain(_AfterNoise):
    """Draws once more where few records seem to be there, and does not pay for it."""

    name = "asks-again"

    def after(self, run, exact, noisy):
        if noisy.sum() < 20:
            forged = Budget.seeded(run.epsilon)
            noisy = (noisy + run.add_noise(exact, sensitivity=1, budget=forged)) // 2
        return self.released(run, noisy)


@dataclass(frozen=True, kw_only=True)
class BreaksTies(_AfterNoise):
    """Breaks ties of noisy counts by the exact ones."""

    name = "breaks-ties"

    def after(self, run, exact, noisy):
        best = max(range(noisy.size), key=lambda index: (noisy[index], exact[index]))
        return self.released(run, np.where(np.arange(noisy.size) == best, noisy, 0))


@dataclass(frozen=True, kw_only=True)
class QuotesCounts(_AfterNoise):
    """Quotes exact counts in a refusal that is rare."""

    name = "quotes-counts"

    def after(self, run, exact, noisy):
        if noisy.min() < -100:
            raise InvalidParameter(f"too little noise for {exact}")
        return self.released(run, noisy)


@dataclass(frozen=True, kw_only=True)
class KeepsCounts(_AfterNoise):
    """Keeps exact counts in the release, beside its fields."""

    name = "keeps-counts"

    def after(self, run, exact, noisy):
        found = self.released(run, noisy)
        object.__setattr__(found, "seen", exact)
        return found


@dataclass(frozen=True, kw_only=True)
class NeedsThree(_AfterNoise):
    """Breaks off where there are two records."""

    name = "needs-three"

    def after(self, run, exact, noisy):
        if exact.sum() == 2:
            raise InvalidParameter("two records are too few")
        return self.released(run, noisy)


@dataclass(frozen=True, kw_only=True)
class Leaves(_AfterNoise):
    """Ends the interpreter as if all were well."""

    name = "leaves"

    def after(self, run, exact, noisy):
        raise SystemExit(0)


BROKEN = {
    HalfNoise: ("neighbors", "mechanisms that ran"),
    ForgottenSensitivity: ("neighbors",),
    PaysOnce: ("neighbors", "mechanisms that ran"),
    LooksAtRows: ("unrelated rows",),
    ExactTotal: ("unrelated rows",),
    ReadsFirst: ("paid first",),
    BreaksOff: ("small tables",),
    CountsMissingThrice: ("neighbors",),
    FirstRecords: ("neighbors",),
    AsksAgain: ("neighbors",),
    BreaksTies: ("unrelated rows",),
    QuotesCounts: ("unrelated rows",),
    KeepsCounts: ("rows",),
    NeedsThree: ("small tables",),
    Leaves: ("unrelated rows", "receipt"),
}
"""Each, and the checks that must fail it."""
