"""Fixtures of the gateway's tests: a real server, an empty store on it, a clock that a test moves."""

from tests.support.stores import clock, store, valkey, valkey_server

__all__ = ["clock", "store", "valkey", "valkey_server"]
