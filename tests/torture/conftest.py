"""Fixtures of the torture tests: a real server, emptied for each test."""

from tests.support.stores import clock, store, valkey, valkey_server

__all__ = ["clock", "store", "valkey", "valkey_server"]
