"""Numbers for people: decimals with thousands separators, never an exponent such as 2e+04."""

from math import floor, isfinite, log10

_LARGEST, _SMALLEST = 1e15, 1e-9


def format_number(value: float, digits: int = 4) -> str:
    """Write a number in decimals, rounded to `digits` significant digits or to an integer.

    Beyond what people read at a glance, a power of ten is written out.

    >>> format_number(20_000.0), format_number(1_234_567.8), format_number(0.0123456)
    ('20,000', '1,234,568', '0.01235')
    >>> format_number(-2.50), format_number(0), format_number(3e-12)
    ('-2.5', '0', '3 × 10^-12')
    """
    if value == 0 or not isfinite(value):
        return f"{value:.0f}"
    power = floor(log10(abs(value)))
    if not _SMALLEST <= abs(value) < _LARGEST:
        mantissa, _, power_text = f"{value:.{digits - 1}e}".partition("e")
        return f"{_trimmed(mantissa)} × 10^{int(power_text)}"
    return _trimmed(f"{value:,.{max(digits - 1 - power, 0)}f}")


def _trimmed(text: str) -> str:
    """Leave out zeros at the end of the decimals."""
    return text.rstrip("0").rstrip(".") if "." in text else text
