"""What gets into the log, and what never does."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Iterator
from typing import Any, cast

import pytest

from gateway.errors import Terminal
from gateway.telemetry import DECLARED, LONGEST, NAME, Logger, configure, logger

CANARY = "c4n4ry-3f9a"


class Terminals(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root, ours, access = logging.getLogger(), logging.getLogger(NAME), logging.getLogger("aiohttp.access")
    before = list(root.handlers), root.level, ours.level, access.disabled
    yield
    root.handlers[:], root.level, ours.level, access.disabled = before
    logging.getLogger(NAME).setLevel(before[2])
    root.setLevel(before[1])


@pytest.fixture
def lines() -> io.StringIO:
    stream = io.StringIO()
    configure(stream, level="DEBUG")
    return stream


def read(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def raised(error: Exception) -> Exception:
    """The error, with a traceback through a frame that has the canary as a local."""
    secret = CANARY
    try:
        raise error from ValueError(secret)
    except Exception as caught:
        return caught


class TestJsonLines:
    def test_hold_the_action_and_the_fields(self, lines: io.StringIO):
        logger.warning("claim-lost", run_id="run_07_9", tries=3, ms=1.5, queue="runs:a")
        (line,) = read(lines)
        assert line.pop("at").endswith("+00:00")
        assert line == {
            "level": "warning", "action": "claim-lost", "run_id": "run_07_9", "tries": 3, "ms": 1.5, "queue": "runs:a",
        }  # fmt: skip

    @pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
    def test_have_a_level(self, lines: io.StringIO, level: str):
        getattr(logger, level)("x")
        assert read(lines)[0]["level"] == level

    def test_are_one_line_each_whatever_is_in_them(self, lines: io.StringIO):
        logger.info("x", reason="a\nb\u2028c\x1b[2J")
        assert lines.getvalue().count("\n") == 1
        assert lines.getvalue().isascii()
        assert read(lines)[0]["reason"] == "a\nb\u2028c\x1b[2J"

    def test_cut_what_is_long(self, lines: io.StringIO):
        logger.info("x", reason="a" * 10_000)
        assert read(lines)[0]["reason"] == "a" * LONGEST + "…"

    def test_leave_out_what_is_below_the_level(self):
        stream = io.StringIO()
        configure(stream)
        logger.debug("x")
        logger.info("y")
        assert [line["action"] for line in read(stream)] == ["y"]


class TestReadableLines:
    def test_are_for_a_terminal(self):
        stream = Terminals()
        configure(stream)
        logger.info("listening", address="127.0.0.1:8642", count=2)
        assert stream.getvalue()[8:] == ' info    listening address="127.0.0.1:8642" count=2\n'

    def test_move_no_cursor(self):
        stream = Terminals()
        configure(stream)
        logger.info("x", reason="\x1b[2J\r\n\u202e")
        assert stream.getvalue().count("\n") == 1
        assert stream.getvalue().isascii()
        assert "\x1b" not in stream.getvalue()

    def test_can_be_chosen_and_refused(self):
        piped, terminal = io.StringIO(), Terminals()
        configure(piped, readable=True)
        logger.info("x")
        configure(terminal, readable=False)
        logger.info("x")
        assert piped.getvalue().endswith("info    x\n")
        assert read(terminal)[0]["action"] == "x"


class TestAnErrorOfOurs:
    def test_is_told_with_its_words_and_its_place(self, lines: io.StringIO):
        logger.error("work", exc_info=raised(Terminal("expected a store; got none")))
        (line,) = read(lines)
        assert (line["error"], line["said"]) == ("Terminal", "expected a store; got none")
        assert line["raised_at"][-1].endswith(" raised")


class TestCanaries:
    """Nothing that is not a declared field of ours gets in."""

    @pytest.fixture(params=[True, False], ids=["readable", "json"])
    def sink(self, request: pytest.FixtureRequest) -> io.StringIO:
        stream = io.StringIO()
        configure(stream, level="DEBUG", readable=request.param)
        logging.getLogger().setLevel(logging.DEBUG)
        return stream

    def test_in_the_words_of_an_error_of_others_stay_out(self, sink: io.StringIO):
        logger.error("work", exc_info=raised(ValueError(f"bad value {CANARY}")))
        assert "ValueError" in sink.getvalue()
        assert CANARY not in sink.getvalue()

    def test_in_the_cause_of_an_error_of_ours_stay_out(self, sink: io.StringIO):
        logger.error("work", exc_info=raised(Terminal("it ended")))
        assert CANARY not in sink.getvalue()

    def test_in_the_sentences_of_other_libraries_stay_out(self, sink: io.StringIO):
        other = logging.getLogger("httpx")
        other.warning("GET https://x/?token=%s", CANARY, extra={"fields": {"reason": CANARY}})
        other.error(CANARY, exc_info=raised(ValueError(CANARY)), stack_info=True)
        assert "logged by httpx" in sink.getvalue()
        assert "test_telemetry:" in sink.getvalue()
        assert CANARY not in sink.getvalue()

    def test_in_fields_that_nobody_declared_stay_out(self, sink: io.StringIO):
        cast(Any, logger).info("x", arguments=CANARY, token=CANARY, run_id="run_07_9")
        assert "run_07_9" in sink.getvalue()
        assert CANARY not in sink.getvalue()

    def test_in_a_record_made_by_the_standard_library_under_our_name_stay_out(self, sink: io.StringIO):
        logging.getLogger(NAME).info("x", extra={"arguments": CANARY}, stack_info=True)
        logging.getLogger(f"{NAME}.part").warning("%s", CANARY)
        assert CANARY not in sink.getvalue()

    def test_in_a_warning_stay_out(self, sink: io.StringIO):
        logging.captureWarnings(True)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.warn(CANARY, stacklevel=1)
        finally:
            logging.captureWarnings(False)
        assert "logged by py.warnings" in sink.getvalue()
        assert CANARY not in sink.getvalue()

    def test_in_links_stay_out_because_there_is_no_access_log(self, sink: io.StringIO):
        logging.getLogger("aiohttp.access").info("GET /t/%s", CANARY)
        assert sink.getvalue() == ""

    def test_stay_out_of_a_host_applications_log_too(self):
        """Fields are no arguments: whoever formats our records in the usual way gets the action alone."""
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
        logging.getLogger(NAME).addHandler(handler)
        logging.getLogger(NAME).setLevel(logging.INFO)
        try:
            Logger().info("x", reason=CANARY)
        finally:
            logging.getLogger(NAME).removeHandler(handler)
        assert stream.getvalue() == "INFO x\n"


def test_no_declared_field_could_hold_content():
    suspicious = (
        "token",
        "secret",
        "argument",
        "evidence",
        "note",
        "text",
        "body",
        "url",
        "email",
        "password",
    )
    assert not [name for name in DECLARED if any(word in name for word in suspicious)]
