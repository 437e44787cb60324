"""Which servers are refused, and in which words; and that a store knows itself again."""

from __future__ import annotations

import asyncio

import pytest

from gateway.errors import StoreRefused
from gateway.store.address import Cluster, Login, Sentinels, Server, parse_address
from gateway.store.checks import ServerFacts, check_server, read_facts
from gateway.store.opening import open_store
from gateway.store.redis import RedisStore
from tests.support.clock import ManualClock
from tests.support.stores import a_commit
from tests.support.valkey import Valkey, running_valkey


class TestAServer:
    async def test_that_evicts_is_refused_unless_allowed_by_name(self, clock: ManualClock):
        with running_valkey(maxmemory_policy="allkeys-lru") as server:
            with pytest.raises(StoreRefused, match="maxmemory-policy noeviction; got allkeys-lru"):
                await open_store(server.url, clock=clock)
            store = await open_store(server.url, clock=clock, allow_unsafe=("eviction",))
            await store.close()

    async def test_that_keeps_nothing_is_refused_unless_allowed_by_name(self, clock: ManualClock):
        with running_valkey(appendonly="no") as server:
            with pytest.raises(StoreRefused, match="appendonly yes, or save"):
                await open_store(server.url, clock=clock)
            store = await open_store(server.url, clock=clock, allow_unsafe=("persistence",))
            await store.close()

    async def test_that_snapshots_is_taken(self, clock: ManualClock):
        with running_valkey(appendonly="no", save="3600 1") as server:
            store = await open_store(server.url, clock=clock)
            await store.close()

    async def test_with_a_user_who_may_not_do_everything_is_refused(self, valkey: Valkey, clock: ManualClock):
        valkey.client.execute_command("ACL", "SETUSER", "some", "on", ">p", "~*", "&*", "+@all", "-xadd")
        with pytest.raises(StoreRefused, match="may not use XADD"):
            await open_store(f"unix://some:p@{valkey.socket}", clock=clock)

    async def test_with_a_user_for_our_keys_alone_is_taken(self, valkey: Valkey, clock: ManualClock):
        rights = ("~signoff:*", "&signoff:*", "+@all")
        valkey.client.execute_command("ACL", "SETUSER", "ours", "on", ">p", *rights)
        store = await open_store(f"unix://ours:p@{valkey.socket}", clock=clock)
        await store.commit(a_commit())
        await store.close()

    async def test_that_forbids_config_is_taken_if_it_appends(self, valkey: Valkey, clock: ManualClock):
        valkey.client.execute_command("ACL", "SETUSER", "hosted", "on", ">p", "~*", "&*", "+@all", "-config")
        store = await open_store(f"unix://hosted:p@{valkey.socket}", clock=clock)
        await store.close()

    async def test_unknown_permissions_are_not_accepted(self, clock: ManualClock):
        with pytest.raises(StoreRefused, match="eviction, persistence; got everything"):
            await open_store("unix:///nowhere", clock=clock, allow_unsafe=("everything",))


@pytest.mark.parametrize(
    ("info", "version"),
    [
        ("redis_version:7.2.4\r\nvalkey_version:9.1.0\r\n", "9.1.0"),
        ("redis_version:7.0.15\r\n", "7.0.15"),
        ("", ""),
    ],
)
def test_valkeys_own_version_counts(info: str, version: str):
    assert read_facts(info.encode(), None).version == version


@pytest.mark.parametrize(
    ("version", "new_enough"),
    [("7.2.0", True), ("8.0", True), ("10.0.1", True), ("7.0.15", False), ("6.2.14", False), ("", False)],
)
def test_old_servers_are_refused(version: str, new_enough: bool):
    facts = ServerFacts(version=version, eviction="noeviction", keeps=True)
    if new_enough:
        check_server(facts, allow_unsafe=())
    else:
        with pytest.raises(StoreRefused, match=r"7\.2 or newer"):
            check_server(facts, allow_unsafe=("eviction", "persistence"))


class TestTheIdentity:
    async def test_is_the_same_for_all_who_start_at_once(self, valkey: Valkey, clock: ManualClock):
        stores = await asyncio.gather(*[open_store(valkey.url, clock=clock) for _ in range(8)])
        names = {valkey.client.get(f"signoff:{{{partition:02d}}}:store") for partition in range(64)}
        assert len(names) == 1
        for each in stores:
            await each.commit(a_commit())
            await each.close()

    async def test_with_another_count_is_refused(self, valkey: Valkey, clock: ManualClock):
        valkey.client.set("signoff:{00}:store", "abc 32")
        with pytest.raises(StoreRefused, match="64 partitions; got one of 32"):
            await open_store(valkey.url, clock=clock)

    async def test_half_lost_is_refused(self, store: RedisStore, valkey: Valkey, clock: ManualClock):
        valkey.client.delete("signoff:{40}:store")
        with pytest.raises(StoreRefused, match="came back empty"):
            await open_store(valkey.url, clock=clock)

    async def test_half_given_is_completed(self, valkey: Valkey, clock: ManualClock):
        valkey.client.set("signoff:{63}:store", "abc 64")
        opened = await open_store(valkey.url, clock=clock)
        assert valkey.client.get("signoff:{00}:store") == b"abc 64"
        await opened.close()


SENTINELS = Sentinels(
    hosts=(("one", 26379), ("::1", 7)),
    service="main",
    database=2,
    login=Login("u", "p@ss"),
    watch=Login(None, "w"),
)


class TestAddresses:
    @pytest.mark.parametrize(
        ("url", "address"),
        [
            ("redis://h:1/2", Server("redis://h:1/2")),
            ("unix:///run/s?db=1", Server("unix:///run/s?db=1")),
            ("redis+sentinel://u:p%40ss@one,[::1]:7/main/2?sentinel_password=w", SENTINELS),
            ("rediss+cluster://:p@a:1,b", Cluster((("a", 1), ("b", 6379)), Login(None, "p", tls=True))),
        ],
    )
    def test_are_read(self, url: str, address: object):
        assert parse_address(url) == address

    @pytest.mark.parametrize(
        "url",
        ["", "http://h", "h:6379", "redis+sentinel://h:1", "redis+cluster://h:port", "redis+cluster://"],
    )
    def test_that_lead_nowhere_are_refused(self, url: str):
        with pytest.raises(StoreRefused, match="expected"):
            parse_address(url)

    def test_keep_their_passwords_to_themselves(self):
        with pytest.raises(StoreRefused) as refused:
            parse_address("redis+cluster://u:secret@h:port")
        assert "secret" not in str(refused.value)
