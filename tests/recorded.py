"""Numbers of slow references, recorded with what they depend on: computed anew when that has changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "recorded_references"
UPDATE = os.environ.get("MOREFIT_UPDATE_GOLDEN") == "1"


@cache
def digest_of(*modules: str) -> str:
    """Return a digest of the text of some modules."""
    texts = [Path(str(import_module(name).__file__)).read_bytes() for name in modules]
    return sha256(b"\n".join(texts)).hexdigest()[:16]


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.json"


@cache
def content(name: str) -> dict[str, Any]:
    return json.loads(path_of(name).read_text()) if path_of(name).exists() else {}


def recorded(
    name: str, modules: tuple[str, ...], key: str, compute: Callable[[], Any], *, state: str = ""
) -> Any:
    """Return what was recorded in a file under a key by these modules as they are now, or compute it.

    ``state`` is a digest of what else the number depends on.

    With MOREFIT_UPDATE_GOLDEN=1 it is computed and recorded (in one process: without -n).
    """
    known, now = content(name), digest_of(*modules) + state
    entry = known.get(key)
    if entry is None or entry["of"] != now or UPDATE:
        entry = {"of": now, "value": compute()}
    if UPDATE:
        known[key] = entry
        FOLDER.mkdir(exist_ok=True)
        path_of(name).write_text(json.dumps(known, indent=0, sort_keys=True))
    return entry["value"]
