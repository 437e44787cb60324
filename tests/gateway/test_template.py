"""The configuration that `init` writes: it can be used as it is, and it never writes over one."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from gateway.config import load
from gateway.errors import CallerError
from gateway.settings import EXPECTED
from gateway.template import WouldOverwrite, template, write_template

LOGINS = ["ann", "Ann B.", 'a"b', "CORP\\ann", "李雷", "@NAME@", "it's"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, bare_environment: None) -> Path:
    return tmp_path


class TestTheFile:
    @pytest.mark.parametrize("login", LOGINS)
    def test_loads_as_it_is_and_whoever_made_it_decides(self, folder: Path, login: str):
        write_template(folder, login=login)
        config = load(folder / "signoff.toml")
        (person,) = config.people
        assert (person.name, person.identities) == (login, {"console": login})
        assert config.routes.default.approvers == (person.id,)
        assert config.routes.default.channels == (("console", ""),)
        assert config.agents == ("agent.examples.refunds:agent",)

    def test_shows_every_key(self):
        text = template("ann")
        for key in EXPECTED:
            name = key.rpartition(".")[2]
            elsewhere = key in ("redis_url", "redis_url_file")
            assert name == "*" or elsewhere or re.search(rf"\b{name}\b", text), (
                f"{key} is not in the template"
            )

    def test_loads_with_every_comment_that_is_a_key_uncommented_and_means_the_same(self, folder: Path):
        """What it calls a default is the default."""
        write_template(folder, login="ann")
        path = folder / "signoff.toml"
        plain = load(path)
        text = path.read_text(encoding="utf-8")
        path.write_text(_uncommented(text), encoding="utf-8")
        assert tomllib.loads(path.read_text(encoding="utf-8")) != tomllib.loads(text)
        spelled = load(path)
        assert (spelled.listen, spelled.data_dir) == (plain.listen, plain.data_dir)
        assert (spelled.store, spelled.worker) == (plain.store, plain.worker)
        assert spelled.routes.default == plain.routes.default

    def test_shows_an_example_route_that_loads(self, folder: Path):
        text = template("ann")
        example = re.search(r"^# \[\[routes\]\]\n(?:# .+\n)+", text, re.MULTILINE)
        assert example is not None
        route = re.sub("^# ", "", example[0], flags=re.MULTILINE)
        path = folder / "signoff.toml"
        path.write_text(text.replace(example[0], route), encoding="utf-8")
        first, _ = load(path).routes
        assert (first.name, first.expire_after_ms) == ("large refunds", 7_200_000)

    def test_has_no_place_left_to_fill_in(self):
        assert not re.search(r"@[A-Z]+@", template("ann"))


def _uncommented(text: str) -> str:
    """`# key = value` and `# [table]`, but not the example of a route."""
    example = re.compile(r"^# \[\[routes\]\]\n(?:# .+\n)+", re.MULTILINE)
    return re.sub(r"^# (?=[a-z_]+ = |\[[a-z]+\]$)", "", example.sub("", text), flags=re.MULTILINE)


class TestWriting:
    def test_tells_whoever_asked_what_comes_next(self, folder: Path):
        told = write_template(folder, login="ann")
        assert told.startswith(f"Wrote {folder / 'signoff.toml'}: you (ann) may decide")
        assert "signoff chat" in told

    def test_never_writes_over_anything(self, folder: Path):
        path = folder / "signoff.toml"
        path.write_text("mine")
        with pytest.raises(WouldOverwrite, match="is there already, and was left as it is") as refused:
            write_template(folder, login="ann")
        assert isinstance(refused.value, CallerError)
        assert path.read_text() == "mine"

    def test_does_not_follow_a_link_to_a_place_of_its_own(self, folder: Path):
        (folder / "signoff.toml").symlink_to(folder / "elsewhere")
        with pytest.raises(WouldOverwrite):
            write_template(folder, login="ann")
        assert not (folder / "elsewhere").exists()
