"""Polynomials as OpenCL C."""

from __future__ import annotations

from collections.abc import Sequence


def horner(coefficients: Sequence[float], x: str) -> str:
    """Write a polynomial, lowest coefficient first."""
    *rest, text = map(repr, coefficients)
    for c in reversed(rest):
        text = f"fma({x}, {text}, {c})"
    return text
