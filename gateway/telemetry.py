"""The log: what this process did, as fields that are declared here.

Owns the logger, its fields and its two forms: JSON lines, and readable lines for a terminal. Nothing that is not a
declared field can get in: a message's arguments, an exception's words and other libraries' sentences may hold tokens
or evidence, so of those only the kind and the place are logged.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TextIO, TypedDict, Unpack, cast

from gateway.errors import SignoffError

NAME = "signoff"
LONGEST = 300
"""No field is longer than this, in characters."""


class Fields(TypedDict, total=False):
    """All that may stand in the log beside the action. Never a token, never evidence, never an argument."""

    run_id: str
    ask_id: str
    session_id: str
    surface_id: str
    attempt_id: str
    agent: str
    tool: str
    by: str
    channel: str
    target: str
    queue: str
    member: str
    partition: int
    instance: str
    code: str
    reason: str
    """Why, in our own words."""
    problem: str
    """An exception's type, or our own words."""
    count: int
    tries: int
    ms: float
    status: int
    address: str
    version: str
    path: str


DECLARED = frozenset(Fields.__annotations__)


@dataclass(frozen=True, slots=True)
class Logger:
    """Says what happened: an action (`claim-lost`) and declared fields."""

    name: str = NAME

    def debug(self, action: str, *, exc_info: BaseException | None = None, **fields: Unpack[Fields]) -> None:
        self._log(logging.DEBUG, action, exc_info, cast("Mapping[str, object]", fields))

    def info(self, action: str, *, exc_info: BaseException | None = None, **fields: Unpack[Fields]) -> None:
        self._log(logging.INFO, action, exc_info, cast("Mapping[str, object]", fields))

    def warning(
        self, action: str, *, exc_info: BaseException | None = None, **fields: Unpack[Fields]
    ) -> None:
        self._log(logging.WARNING, action, exc_info, cast("Mapping[str, object]", fields))

    def error(self, action: str, *, exc_info: BaseException | None = None, **fields: Unpack[Fields]) -> None:
        self._log(logging.ERROR, action, exc_info, cast("Mapping[str, object]", fields))

    def _log(
        self, level: int, action: str, problem: BaseException | None, fields: Mapping[str, object]
    ) -> None:
        # As `extra`, not as arguments: the standard formatters of a host application leave them out, too.
        logging.getLogger(self.name).log(level, action, exc_info=problem, extra={"fields": fields})


logger = Logger()


def configure(stream: TextIO, *, level: str = "INFO", readable: bool | None = None) -> None:
    """Send everything this process logs to `stream`; readable if it is a terminal, unless told."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Readable() if (stream.isatty() if readable is None else readable) else JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(NAME).setLevel(level)
    # An access log would hold links, and links hold tokens.
    logging.getLogger("aiohttp.access").disabled = True


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {"at": _time(record).isoformat(timespec="milliseconds"), "level": record.levelname.lower()}
        return json.dumps({**line, **_said(record)}, ensure_ascii=True)


class Readable(logging.Formatter):
    """One line a record, for a person at a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        said = _said(record)
        time, action = _time(record).strftime("%H:%M:%S"), said.pop("action")
        # Values as JSON: what could move a terminal's cursor is escaped.
        rest = "".join(f" {name}={json.dumps(value, ensure_ascii=True)}" for name, value in said.items())
        return f"{time} {record.levelname.lower():<7} {action}{rest}"


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _said(record: logging.LogRecord) -> dict[str, object]:
    """The record as fields: ours as declared, another library's as its name and place."""
    ours = record.name == NAME
    said: dict[str, object] = {"action": record.msg if ours else f"logged by {record.name}"}
    if ours:
        fields = cast("Mapping[str, object]", getattr(record, "fields", {}))
        said |= {name: _bounded(value) for name, value in fields.items() if name in DECLARED}
    else:
        said["path"] = f"{record.module}:{record.lineno}"
    if record.exc_info and record.exc_info[1] is not None:
        said |= _raised(record.exc_info[1])
    return said


def _bounded(value: object) -> object:
    if isinstance(value, bool | int | float):
        return value
    text = str(value)
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _raised(error: BaseException) -> dict[str, object]:
    """The type and where it was raised. In its own words only if they are ours, which hold no content."""
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    told: dict[str, object] = {"error": type(error).__name__}
    if isinstance(error, SignoffError):
        told["said"] = _bounded(error)
    return told | {"raised_at": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]}
