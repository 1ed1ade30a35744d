"""Records as tables of pandas; the only file that imports it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from morefit.errors import BackendError


def data_frame(columns: Mapping[str, Any], index: Sequence[Any] | None = None) -> Any:
    """Return a DataFrame with these columns; ``index`` names its rows, None numbers them."""
    try:
        import pandas  # type: ignore[import-untyped]
    except ImportError:
        raise BackendError("to_pandas: pandas is not installed; pip install pandas") from None
    return pandas.DataFrame(dict(columns), index=None if index is None else pandas.Index(index))
