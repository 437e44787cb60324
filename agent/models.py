"""Models by name: `claude`, or `claude:claude-opus-5-5`.

A model's SDK can take a second to import, so each is imported when it is first asked for, and by nobody else.
"""

from __future__ import annotations

from importlib import import_module

from agent.model import Model

FAMILIES = {"claude": "agent.claude:Claude"}
"""Where each family's model is. It is called with the version, or with nothing."""


class UnknownModel(LookupError):
    """No family of models has this name."""


def resolve(name: str) -> Model:
    """The model of a name. Raises UnknownModel, and what the model raises when it is not configured."""
    family, _, version = name.partition(":")
    place = FAMILIES.get(family)
    if place is None:
        raise UnknownModel(f"no model {name!r}: expected one of {sorted(FAMILIES)}, or `family:version`")
    module, _, attribute = place.partition(":")
    factory = getattr(import_module(module), attribute)
    return factory(version) if version else factory()
