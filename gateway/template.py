"""The commented `signoff.toml` that `signoff init` writes.

Owns filling it in and never writing over anything. The text itself is `gateway/signoff.toml`.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from gateway.config import FILE, person_id
from gateway.errors import CallerError

NEXT = """\
Wrote {path}: you ({login}) may decide, at this terminal.
Next:
  1. Put your agents into `agents` and the people who decide into [people].
  2. `signoff chat` talks to an agent in this terminal.
  3. `signoff serve` runs all of them.
"""


class WouldOverwrite(CallerError):
    """There is a configuration already."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is there already, and was left as it is: edit it, or move it away first")


def template(login: str) -> str:
    """The file's text, for whoever is logged in."""
    text = files("gateway").joinpath(FILE).read_text(encoding="utf-8")
    name = login.replace("\\", "\\\\").replace('"', '\\"')
    return text.replace("@ID@", person_id(login)).replace("@NAME@", name).replace("@LOGIN@", name)


def write_template(folder: Path, *, login: str) -> str:
    """Write it, and return what to tell the person who asked for it. Raises WouldOverwrite."""
    path = folder / FILE
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(template(login))
    except FileExistsError as error:
        raise WouldOverwrite(path) from error
    return NEXT.format(path=path, login=login)
