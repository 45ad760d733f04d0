"""What epsilon means for one record: how sure anyone can become, in odds, percent and words.

Two tables that differ by one record (or by whatever else is hidden) give every outcome with
probabilities whose ratio is at most e^ε.  By Bayes' rule the odds of one table against the
other change by at most that factor, whatever else is known.  All bounds are rounded outward,
so that a number on a page is never better than the guarantee.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction

from dpublish.errors import InvalidParameter
from dpublish.privacy.epsilon import format_rounded
from dpublish.privacy.levels import LevelAmounts
from dpublish.privacy.neighbors import AddRemoveRecord, Neighbors, UserInWindow

PRIORS = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2))
"""How likely something is held to be before: hardly, maybe, an even guess."""

_CERTAIN = 200  # of epsilon: beyond it, e^-ε is nothing that a number on a page could show
_DIGITS = 3
_FINEST = -6  # power of ten of a percent: no one reads more nines
_PRECISE = 60  # digits of the computation, of which a few are shown
_FACTOR_DIGITS = 6  # up to this many before the point, a factor is written out


def odds_factor(epsilon: Fraction) -> Decimal:
    """Compute e^ε, the factor by which odds change at most.

    >>> f"{odds_factor(Fraction(1)):.4f}"
    '2.7183'
    """
    with localcontext(Context(prec=_PRECISE, Emax=10**18 - 1, Emin=-(10**18) + 1)):
        capped = min(epsilon, Fraction(10**6))
        return (Decimal(capped.numerator) / capped.denominator).exp()


def most_sure(prior: Fraction, epsilon: Fraction) -> Decimal:
    """Bound the posterior probability from above: p e^ε / (1 - p + p e^ε).

    >>> percent_at_most(most_sure(Fraction(1, 10), Fraction(1)))
    '23.2 %'
    """
    _require_prior(prior)
    if epsilon > _CERTAIN:
        return Decimal(1)
    return _updated(prior, odds_factor(epsilon))


def least_sure(prior: Fraction, epsilon: Fraction) -> Decimal:
    """Bound the posterior probability from below: p e^-ε / (1 - p + p e^-ε).

    >>> percent_at_least(least_sure(Fraction(1, 10), Fraction(1)))
    '3.92 %'
    """
    _require_prior(prior)
    if epsilon > _CERTAIN:
        return Decimal(0)
    with localcontext(Context(prec=_PRECISE)):
        return _updated(prior, 1 / odds_factor(epsilon))


def most_detected(false_alarms: Fraction, epsilon: Fraction) -> Decimal:
    """Bound how often a test finds a record that is there, by how often it finds one that is not.

    Of tests with a false-positive rate of a, no one has a true-positive rate above
    min(a e^ε, 1 - (1 - a) e^-ε): the two sides of the guarantee.

    >>> percent_at_most(most_detected(Fraction(1, 20), Fraction(1)))
    '13.6 %'
    """
    _require_prior(false_alarms)
    if epsilon > _CERTAIN:
        return Decimal(1)
    factor = odds_factor(epsilon)
    with localcontext(Context(prec=_PRECISE)):
        rate = Decimal(false_alarms.numerator) / false_alarms.denominator
        return min(rate * factor, 1 - (1 - rate) / factor)


def percent_at_most(probability: Decimal) -> str:
    """Write an upper bound in percent, rounded up to three digits that matter.

    >>> percent_at_most(Decimal("0.62246")), percent_at_most(Decimal("0.99995461"))
    ('62.3 %', '99.9955 %')
    """
    return f"{_rounded(probability, ROUND_CEILING)} %"


def percent_at_least(probability: Decimal) -> str:
    """Write a lower bound in percent, rounded down to three digits that matter.

    >>> percent_at_least(Decimal("0.37754"))
    '37.7 %'
    """
    return f"{_rounded(probability, ROUND_FLOOR)} %"


def tell_factor(epsilon: Fraction) -> str:
    """Write e^ε for people, rounded up.

    >>> tell_factor(Fraction(1, 2)), tell_factor(Fraction(20))
    ('1.65', '4.86 × 10^8')
    """
    if epsilon > _CERTAIN:
        return f"e^{format_rounded(epsilon)}"
    factor = Context(prec=_DIGITS, rounding=ROUND_CEILING).plus(odds_factor(epsilon))
    if factor.adjusted() < _FACTOR_DIGITS:
        return f"{factor:,f}"
    return f"{factor.scaleb(-factor.adjusted())} × 10^{factor.adjusted()}"


def two_sentences(
    epsilon: Fraction,
    neighbors: Neighbors | None = None,
    amounts: LevelAmounts = (),
) -> str:
    """Describe what `epsilon` means for one record, or whatever else `neighbors` hide.

    `amounts` is what each level pays, where levels pay differently; epsilon is the most of it.

    >>> print(two_sentences(Fraction(1, 2)))
    This is pure differential privacy with ε = 0.5: someone who knows everything else and thinks \
it 50 % likely that a given record is in the table can be at most 62.3 % sure of it after \
seeing the release (1 % becomes at most 1.64 %, and 10 % at most 15.5 %). However the release \
is processed, this stays true; a further release from the same data adds its own ε, and what \
is true of many people can be learned, which is what the release is for.
    """
    hides = AddRemoveRecord() if neighbors is None else neighbors
    if amounts and len({amount for _, amount in amounts}) > 1:
        sign, scope = "at most ", f"{hides.claim()}, at a level that pays this much,"
        lower = "; at a level that pays less, it is less"
    else:
        sign, scope, lower = "= ", hides.claim(), ""
    written = format_rounded(epsilon)
    if written.startswith("≈"):
        sign = sign.removeprefix("= ")
    sure = [percent_at_most(most_sure(prior, epsilon)) for prior in PRIORS]
    further = "a further release from the same data adds its own ε"
    if isinstance(hides, UserInWindow):
        further = "every further window, and every further release, adds its own ε"
    return (
        f"This is pure differential privacy with ε {sign}{written}: someone who knows everything "
        f"else and thinks it 50 % likely {scope} can be at most {sure[2]} sure of it after seeing "
        f"the release (1 % becomes at most {sure[0]}, and 10 % at most {sure[1]}{lower}). However "
        f"the release is processed, this stays true; {further}, and what is true of many people "
        "can be learned, which is what the release is for."
    )


def _updated(prior: Fraction, factor: Decimal) -> Decimal:
    with localcontext(Context(prec=_PRECISE, Emax=10**18 - 1, Emin=-(10**18) + 1)):
        weighted = Decimal(prior.numerator) * factor
        return weighted / (weighted + (prior.denominator - prior.numerator))


def _require_prior(prior: Fraction) -> None:
    if not 0 < prior < 1:
        raise InvalidParameter("a probability between 0 and 1 is needed, such as 0.1")


def _rounded(probability: Decimal, rounding: str) -> str:
    """Round to tenths of a percent; finer where the number, or what is missing to 100, is small."""
    exact = Context(prec=_PRECISE)
    percent = exact.multiply(probability, Decimal(100))
    missing = exact.subtract(Decimal(100), percent)
    small, digits = (percent, _DIGITS) if percent < missing else (missing, _DIGITS - 1)
    last = small.adjusted() - digits + 1 if small else 0
    step = Decimal(1).scaleb(min(last, -1) if last >= _FINEST else -1)
    text = f"{percent.quantize(step, rounding=rounding, context=exact):f}"
    return text.rstrip("0").rstrip(".")
