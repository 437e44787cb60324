"""Fixtures of the gateway's tests: a real server, an empty store, a clock that a test moves, a bare environment."""

from tests.support.environment import bare_environment
from tests.support.stores import clock, store, valkey, valkey_server

__all__ = ["bare_environment", "clock", "store", "valkey", "valkey_server"]
