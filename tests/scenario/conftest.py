"""Fixtures of the scenarios: a real server, emptied for each test, and a clock that a test moves."""

from tests.support.stores import clock, store, valkey, valkey_server

__all__ = ["clock", "store", "valkey", "valkey_server"]
