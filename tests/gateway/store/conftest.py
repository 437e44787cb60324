from tests.support.stores import clock, store, valkey, valkey_server

__all__ = ["clock", "store", "valkey", "valkey_server"]
