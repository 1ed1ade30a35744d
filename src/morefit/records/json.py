"""Records as JSON text: numbers with every bit, and the format and version of the text checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np

from morefit.errors import DataError


def portable(item: Any) -> Any:
    """Return an entry of a record as JSON can represent it; "nan", "inf" and "-inf" become strings."""
    if isinstance(item, Mapping):
        return {name: portable(value) for name, value in item.items()}
    if isinstance(item, tuple | np.ndarray):
        return [portable(value) for value in item]
    if isinstance(item, float):
        return float(item) if isfinite(item) else str(float(item))
    return item


def to_json(content: Mapping[str, Any], *, format: str, version: int) -> str:
    """Return entries of a record as JSON text that begins with its format and version."""
    return json.dumps({"format": format, "version": version} | portable(content), indent=1, allow_nan=False)


def from_json(what: str, text: str | bytes, *, format: str, version: int, writer: str) -> dict[str, Any]:
    """Return the entries of JSON text of this format and version; ``writer`` is the function that writes it."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{what}: not JSON text, {error}; it may be cut short or of another kind") from None
    if not isinstance(content, dict) or content.get("format") != format:
        raise DataError(f"{what}: the JSON text was not written by {writer}")
    if content.get("version") != version:
        got = content.get("version")
        raise DataError(
            f"{what}: format version must be {version}, got {got!r}; use the morefit that wrote it"
        )
    return content
