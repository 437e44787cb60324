"""What may be configured; and that whatever is wrong is refused with its key and with what is expected there."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from gateway.conditions import Always, Comparison
from gateway.config import Address, load, load_or_terminal, person_id
from gateway.config_error import ConfigError
from gateway.ids import PersonId
from gateway.settings import CHANNELS_TO_COME, EXPECTED, TO_COME

CANARY = "c4n4ry-3f9a"
HOUR_MS = 3_600_000
SMALLEST: dict[str, Any] = {
    "agents": ["agent.examples.refunds:agent"],
    "people": {"ann": {"console": "ann"}},
    "routes": [{"channels": ["console"], "approvers": ["ann"]}],
}
FULL: dict[str, Any] = {
    "agents": ["a:one", "b.c:two"],
    "listen": "[::1]:0",
    "base_url": "https://signoff.example/",
    "store": {"replicas": 1, "confirm_timeout": "2s", "allow_unsafe": ["eviction"]},
    "worker": {"concurrency": 2, "lease": "1m"},
    "people": {
        "ann": {"name": "Ann", "zone": "Europe/Berlin", "console": "annie"},
        "bob": {"console": "bob"},
    },
    "routes": [
        {
            "name": "large refunds",
            "match": {
                "tool": "issue_*",
                "agent": "refunds",
                "when": {"field": "amount", "op": "gt", "value": 1000},
            },
            "channels": ["console:tty-1"],
            "approvers": ["bob"],
            "expire_after": "2h",
            "confirm": False,
            "notification": "brief",
            "approvals": {"expires_after": "1h", "refuse_when_world_moved": True},
        },
        {"channels": ["console"], "approvers": ["ann", "bob"]},
    ],
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bare_environment: None) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, settings: dict[str, Any]) -> Path:
    path = folder / "signoff.toml"
    path.write_text("".join(f"{name} = {_toml(value)}\n" for name, value in settings.items()))
    return path


def _toml(value: object) -> str:
    """Inline TOML: JSON, except for tables."""
    match value:
        case dict():
            return (
                "{" + ", ".join(f"{json.dumps(name)} = {_toml(each)}" for name, each in value.items()) + "}"
            )
        case list():
            return "[" + ", ".join(map(_toml, value)) + "]"
        case _:
            return json.dumps(value)


def changed(path: str, value: object, *, start: dict[str, Any] = SMALLEST) -> dict[str, Any]:
    """Settings with one key set: `routes.0.confirm`."""
    settings = deepcopy(start)
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place: Any = settings
    for part in way:
        place = place[part] if isinstance(part, int) else place.setdefault(part, {})
    place[last] = value
    return settings


def without(path: str) -> dict[str, Any]:
    settings = changed(path, None)
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place: Any = settings
    for part in way:
        place = place[part]
    del place[last]
    return settings


def problems(folder: Path, settings: dict[str, Any] = SMALLEST) -> dict[str, str]:
    """What the refusal says, by key."""
    return refused(write(folder, settings))


def refused(path: Path | None) -> dict[str, str]:
    with pytest.raises(ConfigError) as error:
        load(path)
    assert CANARY not in str(error.value), "a value is repeated, and it may be a secret in the wrong place"
    assert str(error.value).startswith(f"{path or 'signoff.toml'}: ")
    return {problem.key: problem.text for problem in error.value.problems}


class TestDefaults:
    def test_of_the_smallest_file(self, folder: Path):
        config = load(write(folder, SMALLEST))
        assert config.listen == Address("127.0.0.1", 8642)
        assert config.base_url is None
        assert config.embedded
        assert (config.store.replicas, config.store.confirm_timeout_ms) == (0, 1_000)
        assert config.store.allow_unsafe == ()
        assert (config.worker.concurrency, config.worker.lease_ms) == (64, 30_000)
        assert config.source == folder / "signoff.toml"

    def test_of_a_route_ask_for_confirmation_and_give_a_day(self, folder: Path):
        route = load(write(folder, SMALLEST)).routes.default
        assert (route.name, route.confirm, route.brief) == ("route 1", True, False)
        assert route.expire_after_ms == 24 * HOUR_MS
        assert route.staleness.expires_after_ms is None
        assert not route.staleness.refuse_when_world_moved

    def test_of_a_person_are_the_id_and_no_zone(self, folder: Path):
        (ann,) = load(write(folder, SMALLEST)).people
        assert (ann.name, ann.zone, ann.identities) == ("ann", None, {"console": "ann"})

    def test_of_a_match_take_everything(self, folder: Path):
        route = {"match": {"tool": "x"}, "channels": ["console"], "approvers": ["ann"]}
        first, _ = load(write(folder, changed("routes", [route, SMALLEST["routes"][0]]))).routes
        assert first.match is not None
        assert (first.match.agent, first.match.when) == ("*", Always())

    def test_the_data_folder_stands_beside_the_file(self, folder: Path):
        (folder / "etc").mkdir()
        assert load(write(folder / "etc", SMALLEST)).data_dir == folder / "etc" / ".signoff"

    def test_a_data_folder_elsewhere_stays_there(self, folder: Path):
        assert load(write(folder, changed("data_dir", "/var/lib/s"))).data_dir == Path("/var/lib/s")


class TestEveryKey:
    def test_arrives(self, folder: Path):
        config = load(write(folder, FULL))
        assert config.agents == ("a:one", "b.c:two")
        assert config.listen == Address("::1", 0)
        assert config.base_url == "https://signoff.example"
        assert (config.store.replicas, config.store.confirm_timeout_ms) == (1, 2_000)
        assert config.store.allow_unsafe == ("eviction",)
        assert (config.worker.concurrency, config.worker.lease_ms) == (2, 60_000)
        ann = config.people.get(PersonId("ann"))
        assert ann is not None
        assert (ann.name, str(ann.zone), ann.identities) == ("Ann", "Europe/Berlin", {"console": "annie"})

    def test_of_a_route_arrives(self, folder: Path):
        route, default = load(write(folder, FULL)).routes
        assert route.match is not None
        assert (route.name, route.match.tool, route.match.agent) == ("large refunds", "issue_*", "refunds")
        assert isinstance(route.match.when, Comparison)
        assert (route.channels, route.approvers) == ((("console", "tty-1"),), ("bob",))
        assert (route.expire_after_ms, route.confirm, route.brief) == (2 * HOUR_MS, False, True)
        assert route.staleness.expires_after_ms == HOUR_MS
        assert route.staleness.refuse_when_world_moved
        assert (default.name, default.match) == ("route 2", None)


LIST_OF_AGENTS = 'a list such as ["agent.examples.refunds:agent"], with at least one agent'
MODULE_NAME = 'module:name, such as "agent.examples.refunds:agent"'
ADDRESS = 'host:port, such as "127.0.0.1:8642" or "[::1]:8642"'
BASE_URL = 'an address without a path, such as "https://signoff.example.com"'
DURATION = 'a duration such as "30m", "24h" or "1h30m" (units d, h, m, s)'
VISIBLE = "a visible text, without spaces around it"

WRONG: list[tuple[str, object, str]] = [
    ("agents", [], LIST_OF_AGENTS),
    ("agents", 3, LIST_OF_AGENTS),
    ("agents.0", CANARY, MODULE_NAME),
    ("agents.0", "a b:c", MODULE_NAME),
    ("agents.0", "a:b.c", MODULE_NAME),
    ("listen", 8642, 'host:port, such as "127.0.0.1:8642"'),
    ("listen", "8642", ADDRESS),
    ("listen", ":8642", ADDRESS),
    ("listen", "127.0.0.1:65536", ADDRESS),
    ("listen", "127.0.0.1:٣", ADDRESS),
    ("base_url", 3, 'an address such as "https://signoff.example.com"'),
    ("base_url", "ftp://signoff.example.com", BASE_URL),
    ("base_url", "https://signoff.example.com/path", BASE_URL),
    ("base_url", f"https://user:{CANARY}@signoff.example.com", BASE_URL),
    ("base_url", "https://", BASE_URL),
    ("data_dir", 3, "a folder"),
    ("store", 3, "a table [store]"),
    ("store.replicas", CANARY, "a whole number from 0 to 16"),
    ("store.replicas", 17, "a whole number from 0 to 16"),
    ("store.replicas", -1, "a whole number from 0 to 16"),
    ("store.confirm_timeout", "1", DURATION),
    ("store.confirm_timeout", "2m", 'a duration from "1s" to "1m"'),
    ("store.allow_unsafe", 3, "a list of some of eviction, persistence"),
    ("worker", [], "a table [worker]"),
    ("worker.concurrency", 0, "a whole number from 1 to 10000"),
    ("worker.concurrency", 1.5, "a whole number from 1 to 10000"),
    ("worker.lease", 30, DURATION),
    ("worker.lease", "4s", 'a duration from "5s" to "10m"'),
    ("people", {}, "at least one person, such as [people.alice]"),
    ("people", 3, "at least one person, such as [people.alice]"),
    ("people.ann", 3, "a table with at least console, the login name at this machine"),
    (
        "people.Ann",
        {"console": "a"},
        "small letters, digits, dots, dashes and underscores, such as [people.alice]",
    ),
    ("people.ann.name", 3, "a name as people call them"),
    ("people.ann.name", "\u200b", VISIBLE),
    ("people.ann.zone", 3, 'a time zone such as "Europe/Berlin"'),
    ("people.ann.zone", f"Europe/{CANARY}", 'a time zone such as "Europe/Berlin" or "UTC"'),
    ("people.ann.zone", "../../etc/passwd", 'a time zone such as "Europe/Berlin" or "UTC"'),
    ("people.ann.zone", "Europe", 'a time zone such as "Europe/Berlin" or "UTC"'),
    ("people.ann.console", 3, "the login name at this machine, as `whoami` tells it"),
    ("people.ann.console", "", VISIBLE),
    ("people.ann.console", " ann", VISIBLE),
    ("routes", [], "at least one [[routes]]"),
    ("routes", "x", "at least one [[routes]]"),
    ("routes.0", 3, "a table with at least channels and approvers"),
    ("routes.0.name", 3, "a name for logs and cards"),
    ("routes.0.name", "two\nlines", VISIBLE),
    ("routes.0.match", 3, 'a table such as { tool = "issue_refund" }'),
    ("routes.0.match.tool", 3, 'the name of a tool, or a pattern such as "refund_*"'),
    ("routes.0.match.tool", "", VISIBLE),
    ("routes.0.match.agent", 3, 'the name of an agent, or a pattern such as "support-*"'),
    ("routes.0.channels", [], 'a list such as ["console"], with at least one channel'),
    ("routes.0.channels", "console", 'a list such as ["console"], with at least one channel'),
    ("routes.0.channels.0", CANARY, "one of console"),
    ("routes.0.channels.0", "console:", "one of console"),
    ("routes.0.approvers", "ann", 'a list of persons such as ["alice"]'),
    ("routes.0.approvers.0", "", VISIBLE),
    ("routes.0.expire_after", "9s", 'a duration from "10s" to "90d"'),
    ("routes.0.expire_after", "91d", 'a duration from "10s" to "90d"'),
    ("routes.0.expire_after", CANARY, DURATION),
    ("routes.0.confirm", CANARY, "true or false"),
    ("routes.0.notification", CANARY, '"full" or "brief"'),
    ("routes.0.approvals", 3, 'a table such as { expires_after = "1h" }'),
    ("routes.0.approvals.expires_after", "0s", 'a duration from "1s" to "90d"'),
    ("routes.0.approvals.expires_after", CANARY, DURATION),
    ("routes.0.approvals.refuse_when_world_moved", CANARY, "true or false"),
]


class TestAWrongValue:
    @pytest.mark.parametrize(("path", "value", "expected"), WRONG)
    def test_is_refused_with_its_key_and_what_is_expected(
        self, folder: Path, path: str, value: object, expected: str
    ):
        key = re.sub(r"\.(\d+)", r"[\1]", path)
        (told,) = problems(folder, changed(path, value)).items()
        assert told[0] == key
        assert told[1].startswith(f"expected {expected}; got ")

    def test_is_tried_above_for_every_key_that_may_be_written(self):
        tried = {re.sub(r"^(people|routes)\.\w+", r"\1.*", path.casefold()) for path, _, _ in WRONG}
        elsewhere = {"redis_url", "redis_url_file", "routes.*.match.when"}
        assert set(EXPECTED) - tried == elsewhere

    def test_in_a_list_is_told_with_its_place(self, folder: Path):
        told = problems(folder, changed("store.allow_unsafe", ["eviction", CANARY]))
        assert list(told) == ["store.allow_unsafe[1]"]
        assert told["store.allow_unsafe[1]"].startswith("expected a list of some of eviction, persistence")

    def test_in_a_condition_is_told_with_its_place_in_the_condition(self, folder: Path):
        when = {"all": [{"field": "amount", "op": CANARY, "value": 1}]}
        told = problems(folder, changed("routes.0.match.when", when))
        assert list(told) == ["routes[0].match.when.all[0].op"]
        assert told["routes[0].match.when.all[0].op"].startswith("expected one of eq, ne, gt")

    def test_is_told_together_with_all_the_others(self, folder: Path):
        settings = changed("listen", 3, start=changed("agents", ["x"], start=changed("worker.lease", "1s")))
        assert set(problems(folder, settings)) == {"agents[0]", "worker.lease", "listen"}

    def test_of_a_channel_of_a_later_version_says_so(self, folder: Path):
        for channel in CHANNELS_TO_COME:
            told = problems(folder, changed("routes.0.channels.0", channel))
            assert f"{channel} comes in a later version" in told["routes[0].channels[0]"]


class TestAMissingKey:
    @pytest.mark.parametrize(
        "path",
        ["agents", "people", "routes", "people.ann.console", "routes.0.channels", "routes.0.approvers"],
    )
    def test_is_told_with_what_belongs_there(self, folder: Path, path: str):
        pattern = re.sub(r"^(people|routes)\.\w+", r"\1.*", path)
        told = problems(folder, without(path))
        assert told == {
            re.sub(r"\.(\d+)", r"[\1]", path): f"is missing: expected {EXPECTED[pattern]}",
        }


class TestAKeyTooMany:
    @pytest.mark.parametrize(
        ("path", "hint"),
        [
            ("agent", "did you mean agents?"),
            ("colour", "expected one of agents, listen"),
            ("store.replica", "did you mean replicas?"),
            ("worker.leases", "did you mean lease?"),
            ("people.ann.zones", "did you mean zone?"),
            ("routes.0.channel", "did you mean channels?"),
            ("routes.0.match.tools", "did you mean tool?"),
            ("routes.0.approvals.colour", "expected one of expires_after, refuse_when_world_moved"),
        ],
    )
    def test_is_refused_with_the_one_that_was_meant(self, folder: Path, path: str, hint: str):
        told = problems(folder, changed(path, CANARY))
        key = re.sub(r"\.(\d+)", r"[\1]", path)
        assert told[key].startswith(f"there is no such key; {hint}")

    @pytest.mark.parametrize("name", TO_COME)
    @pytest.mark.parametrize("where", ["", "routes.0.", "people.ann."])
    def test_of_a_later_version_is_not_ignored(self, folder: Path, name: str, where: str):
        told = problems(folder, changed(f"{where}{name}", True))
        assert list(told.values()) == [
            f"{TO_COME[name]}: not in this version, and not ignored either: remove the key"
        ]

    @pytest.mark.parametrize("name", ["quorum", "slack__token", "four_eyes"])
    def test_of_a_later_version_is_not_ignored_in_the_environment(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
    ):
        variable = f"SIGNOFF_{name.upper()}"
        monkeypatch.setenv(variable, CANARY)
        assert "not in this version" in problems(folder)[variable]

    @pytest.mark.parametrize("name", ["on_expiry", "on_decline"])
    def test_that_is_the_agents_says_where_it_belongs(self, folder: Path, name: str):
        told = problems(folder, changed(f"routes.0.{name}", "stop"))
        assert told == {f"routes[0].{name}": f"it is the agent's: Agent({name}=…)"}


class TestSecrets:
    @pytest.mark.parametrize("name", ["secret", "redis_url", "redis_url_file"])
    def test_are_refused_in_the_file(self, folder: Path, name: str):
        told = problems(folder, changed(name, f"redis://:{CANARY}@store/0"))
        assert f"SIGNOFF_{name.upper()}" in told[name]

    def test_of_the_stores_address_are_not_shown(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("SIGNOFF_REDIS_URL", f"redis://:{CANARY}@store/0")
        config = load(write(folder, SMALLEST))
        assert config.store.url == f"redis://:{CANARY}@store/0"
        assert not config.embedded
        assert CANARY not in repr(config)

    def test_may_come_from_a_file_that_a_variable_names(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        (folder / "url").write_text("redis://store/0\n")
        monkeypatch.setenv("SIGNOFF_REDIS_URL_FILE", str(folder / "url"))
        assert load(write(folder, SMALLEST)).store.url == "redis://store/0"

    @pytest.mark.parametrize("content", [None, b"", b" \n", b"\xff"])
    def test_in_a_file_that_holds_none_are_refused_and_no_empty_store_is_started(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
    ):
        if content is not None:
            (folder / "url").write_bytes(content)
        monkeypatch.setenv("SIGNOFF_REDIS_URL_FILE", str(folder / "url"))
        told = problems(folder)
        assert "a readable file that holds the address" in told["SIGNOFF_REDIS_URL_FILE"]

    def test_from_both_are_refused(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("SIGNOFF_REDIS_URL_FILE", CANARY)
        monkeypatch.setenv("SIGNOFF_REDIS_URL", f"redis://:{CANARY}@store")
        assert problems(folder) == {
            "SIGNOFF_REDIS_URL": "expected it or SIGNOFF_REDIS_URL_FILE; got both: remove one"
        }

    def test_that_are_an_empty_address_start_no_empty_store(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("SIGNOFF_REDIS_URL", "")
        assert list(problems(folder)) == ["SIGNOFF_REDIS_URL"]


class TestTheEnvironment:
    def test_wins_over_the_file(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("SIGNOFF_AGENTS", "x:one, y:two")
        monkeypatch.setenv("SIGNOFF_LISTEN", "0.0.0.0:1")
        monkeypatch.setenv("SIGNOFF_WORKER__LEASE", "10s")
        monkeypatch.setenv("SIGNOFF_STORE__ALLOW_UNSAFE", "eviction,persistence")
        config = load(write(folder, FULL))
        assert config.agents == ("x:one", "y:two")
        assert config.listen == Address("0.0.0.0", 1)  # noqa: S104  (read, not bound)
        assert (config.worker.lease_ms, config.worker.concurrency) == (10_000, 2)
        assert config.store.allow_unsafe == ("eviction", "persistence")

    @pytest.mark.parametrize(
        ("variable", "expected"),
        [
            ("SIGNOFF_AGENTS", 'expected module:name, such as "agent.examples.refunds:agent"'),
            ("SIGNOFF_LISTEN", "expected host:port"),
            ("SIGNOFF_STORE__REPLICAS", "expected a whole number from 0 to 16"),
            ("SIGNOFF_WORKER__LEASE", "expected a duration"),
            ("SIGNOFF_PEOPLE", "expected JSON; got something else: write it in signoff.toml instead"),
            ("SIGNOFF_ROUTES", "expected JSON; got something else: write it in signoff.toml instead"),
        ],
    )
    def test_is_named_where_it_is_wrong(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, variable: str, expected: str
    ):
        monkeypatch.setenv(variable, CANARY)
        (told,) = problems(folder).items()
        assert told[0] == variable
        assert told[1].startswith(expected)

    @pytest.mark.parametrize(
        ("variable", "meant"),
        [
            ("SIGNOFF_REDIS_URI", "SIGNOFF_REDIS_URL"),
            ("SIGNOFF_AGENT", "SIGNOFF_AGENTS"),
            ("SIGNOFF_SECRETS", "SIGNOFF_SECRET"),
            ("SIGNOFF_LISTENS", "SIGNOFF_LISTEN"),
        ],
    )
    def test_almost_ours_is_refused(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, variable: str, meant: str
    ):
        monkeypatch.setenv(variable, CANARY)
        assert problems(folder)[variable] == f"there is no such setting; did you mean {meant}?"

    def test_of_others_is_nobodys_business(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("REDIS_URL", "x")
        monkeypatch.setenv("SIGNOFF_SECRET", "x")
        monkeypatch.setenv("SIGNOFF_SECRET_FILE", "x")
        load(write(folder, SMALLEST))


class TestTheFile:
    def test_that_is_not_there_names_the_command_that_makes_one(self, folder: Path):
        assert "run `signoff init` to make one" in refused(None)[""]
        assert "expected a file elsewhere.toml" in refused(Path("elsewhere.toml"))[""]

    def test_is_the_one_in_this_folder_unless_told(self, folder: Path):
        write(folder, SMALLEST)
        assert load().source == Path("signoff.toml")

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (f"agents = {CANARY}".encode(), "expected TOML; got a mistake"),
            (b"agents = '\xff'", "expected a text in UTF-8"),
        ],
    )
    def test_that_is_no_toml_is_refused(self, folder: Path, content: bytes, said: str):
        (folder / "signoff.toml").write_bytes(content)
        assert refused(Path("signoff.toml"))[""].startswith(said)


class TestWhoDecides:
    @pytest.mark.parametrize("approvers", [["bob"], ["ann", "bob"], ["Ann"], ["group:finance"]])
    def test_must_be_somebody(self, folder: Path, approvers: list[str]):
        told = problems(folder, changed("routes.0.approvers", approvers))
        assert list(told) == ["routes[0].approvers"]

    def test_must_not_be_nobody(self, folder: Path):
        told = problems(folder, changed("routes.0.approvers", []))
        assert told["routes[0].approvers"].startswith('expected at least one approver, such as ["alice"]')

    def test_must_not_be_one_who_could_be_taken_for_another(self, folder: Path):
        told = problems(folder, changed("people.bob", {"console": "ANN"}))
        assert list(told) == [""]
        assert "people.bob and people.ann" in told[""]


class TestRoutes:
    def matching(self, **more: object) -> dict[str, object]:
        return {"match": {"tool": "x"}, "channels": ["console"], "approvers": ["ann"], **more}

    def test_without_a_default_are_refused(self, folder: Path):
        told = problems(folder, changed("routes", [self.matching()]))
        assert "exactly one route without match, as the last; got none" in told[""]

    def test_after_the_default_are_refused(self, folder: Path):
        told = problems(folder, changed("routes", [SMALLEST["routes"][0], self.matching()]))
        assert "where later routes would never be reached" in told[""]

    def test_of_one_name_are_refused(self, folder: Path):
        twice = [self.matching(name="a"), {**SMALLEST["routes"][0], "name": "a"}]
        assert "a name of its own for each route" in problems(folder, changed("routes", twice))["routes"]


class TestWithoutAFile:
    def test_whoever_is_logged_in_decides_at_this_terminal(self, folder: Path):
        config = load_or_terminal(None, login="Ann B.", agents=["a:b"])
        (person,) = config.people
        assert (person.id, person.name, person.identities) == ("ann-b", "Ann B.", {"console": "Ann B."})
        route = config.routes.default
        assert (route.name, route.channels, route.approvers) == ("terminal", (("console", ""),), ("ann-b",))
        assert route.expire_after_ms == 300_000
        assert (config.agents, config.source) == (("a:b",), None)
        assert config.data_dir == folder / ".signoff"

    def test_the_environment_still_counts(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("SIGNOFF_LISTEN", "127.0.0.1:1")
        monkeypatch.setenv("SIGNOFF_AGENTS", "x:y")
        config = load_or_terminal(None, login="ann", agents=["a:b"])
        assert (config.listen.port, config.agents) == (1, ("x:y",))

    def test_what_is_wrong_there_is_told(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("SIGNOFF_LISTEN", CANARY)
        with pytest.raises(ConfigError, match=r"^the environment: .*\n  SIGNOFF_LISTEN: expected host:port"):
            load_or_terminal(None, login="ann", agents=["a:b"])

    def test_a_file_in_this_folder_is_taken(self, folder: Path):
        write(folder, FULL)
        assert load_or_terminal(None, login="ann", agents=["a:b"]).agents == ("a:one", "b.c:two")

    def test_a_file_that_is_named_must_be_there(self, folder: Path):
        with pytest.raises(ConfigError, match="expected a file"):
            load_or_terminal(Path("elsewhere.toml"), login="ann", agents=["a:b"])

    @pytest.mark.parametrize(
        ("login", "id"),
        [
            ("ann", "ann"),
            ("Ann B.", "ann-b"),
            ("CORP\\ann", "corp-ann"),
            ("李雷", "you"),
            ("", "you"),
            ("-", "you"),
        ],
    )
    def test_any_login_gets_an_id_that_may_be_written(self, login: str, id: str):
        assert person_id(login) == id
