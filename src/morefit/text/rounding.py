"""Numbers as text: a value and its errors rounded together by the rule of the Particle Data Group, and times."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from math import isfinite

# Numbers from 0.0001 to below 10^9 are written out, others with an exponent that value and errors share.
PLAIN = range(-4, 9)
MAX_DIGITS = 17  # of a double; value and errors that need more between them are not rounded together
# powers of ten from the last digit of the error to the first of the value; a smaller value is zero
MAX_BELOW = 3


def round_pdg(value: float, *errors: float, limits: tuple[float, float] | None = None) -> tuple[str, ...]:
    """Return the value and its errors as text, all with the decimals of the smallest error.

    If the three highest digits of that error lie between 100 and 354, two digits of it are shown; between 355
    and 949, one; between 950 and 999 it becomes 1000 and two are shown. Errors that are zero or not finite do
    not count; if none is left, the value has eight significant digits. With limits, as the value of a parameter has
    them, it keeps two digits however large its error is, and enough not to be rounded out of the limits.
    """
    numbers = (value, *errors)
    sizes = [Decimal(repr(abs(float(e)))) for e in errors if isfinite(e) and e != 0]
    if not sizes:
        return tuple(f"{x:.8g}" for x in numbers)
    last = last_digit(min(sizes))
    first = max(highest_digit(x) for x in numbers if isfinite(x))
    if first - last > MAX_DIGITS:
        return (repr(float(value)), *(f"{e:.2g}" for e in errors))
    shift = 0 if first in PLAIN else first
    own = last if limits is None else digit_for(value, last, limits)
    return round_at(value, own, shift), *(round_at(e, last, shift) for e in errors)


def digit_for(value: float, last: int, limits: tuple[float, float]) -> int:
    """Return the power of ten of the last digit to keep of a value: ``last``, or a lower one."""
    if not isfinite(value):
        return last
    if value and highest_digit(value) >= last - MAX_BELOW:
        last = min(last, highest_digit(value) - 1)
    exact = Decimal(repr(float(value)))
    lowest = min(last, highest_digit(value) - MAX_DIGITS)
    while last > lowest and not limits[0] <= float(round_number(exact, last)) <= limits[1]:
        last -= 1
    return last


def last_digit(error: Decimal) -> int:
    """Return the power of ten of the last digit to keep of an error."""
    leading = int(error.scaleb(2 - error.adjusted()))
    return error.adjusted() - (1 if leading < 355 else 0)


def highest_digit(number: float) -> int:
    """Return the power of ten of the first digit of a number, the smallest there is for zero."""
    return Decimal(repr(float(number))).adjusted() if number else -400


def round_number(number: Decimal, last: int) -> Decimal:
    """Round half up at a power of ten."""
    return number.quantize(Decimal(1).scaleb(last), ROUND_HALF_UP)


def round_at(number: float, last: int, shift: int) -> str:
    """Round at a power of ten and write in units of another; zero has no sign."""
    if not isfinite(number):
        return f"{number}"
    rounded = round_number(Decimal(repr(float(number))), last)
    mantissa = format(rounded.scaleb(-shift) + 0, "f")
    return f"{mantissa}e{shift}" if shift else mantissa


def duration(seconds: float) -> str:
    """Return a time in s, or in ms below one second."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.1f} ms"


def is_number_format(spec: str) -> bool:
    """Return whether the format of an f-string is one of numbers, such as ".3f"."""
    return spec[-1:] in tuple("eEfFgGn%")
