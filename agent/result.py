"""What a tool returned, as the model reads it.

Owns the rendering. A tool that returned has run: what cannot be rendered is a clear error, never a reason to run again.
"""

from __future__ import annotations

import json
from typing import cast

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError, to_jsonable_python


class UnrenderableResult(TypeError):
    """A tool returned something that has no JSON form. It ran; its result cannot be passed on."""

    def __init__(self, value: object) -> None:
        super().__init__(
            f"a tool returned a {type(value).__name__}, or something in it, that has no JSON form: "
            "return text, plain data, a dataclass or a pydantic model"
        )


def render_result(value: object) -> str:
    """A text as it is; anything else as JSON. Raises UnrenderableResult."""
    text = value if isinstance(value, str) else json.dumps(plain_result(value), ensure_ascii=False)
    # A lone surrogate has no UTF-8: it would fail later, wherever the transcript is written.
    return text.encode("utf-8", "replace").decode()


def plain_result(value: object) -> JsonValue:
    """A result as plain data, for what reads into it before it is rendered. Raises UnrenderableResult."""
    try:
        # Not-a-number is written as a text: the tool has run, and its result should reach the model.
        return cast(JsonValue, to_jsonable_python(value, inf_nan_mode="strings"))
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise UnrenderableResult(value) from error
