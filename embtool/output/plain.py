"""Records as plain JSON values."""

import dataclasses
import math
from datetime import date
from typing import Any

import numpy as np


def plain(value: Any) -> Any:  # noqa: ANN401 -- whatever a record's field holds
    """A record as dicts, lists and scalars; a float that is not finite becomes None.

    A field's metadata may leave it out (`json: False`) or name it otherwise (`name`); of a named
    tuple, arrays are left out.
    """
    if dataclasses.is_dataclass(value):
        return {
            field.metadata.get("name", field.name): plain(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if field.metadata.get("json", True)
        }
    if hasattr(value, "_fields"):
        fields = value._asdict()
        value = {name: each for name, each in fields.items() if not isinstance(each, np.ndarray)}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, date):
        return value.isoformat()
    return value
