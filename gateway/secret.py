"""The gateway's secret, from the environment, from a file, or from the data folder of an embedded store.

Owns where it may come from and which are refused: none, an empty one, a short one, one that others can read. The secret
itself is in no message, no configuration and no log.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from gateway.errors import Terminal
from gateway.seal import Key

VARIABLE = "SIGNOFF_SECRET"
FILE_VARIABLE = "SIGNOFF_SECRET_FILE"
OWN_FILE = "secret"
"""In the data folder."""
SHORTEST = 32
"""Bytes. As long as the HMAC's output: shorter keys are weaker than the seal."""
FEWEST = 8
"""Different bytes. Fewer are a placeholder."""

_MAKE_ONE = "make one with: python3 -c 'import secrets; print(secrets.token_hex(32))'"


class SecretRefused(Terminal):
    """No secret that decisions could be sealed with. Nothing was started."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")


def load_secret(data_dir: Path, *, embedded: bool, environ: Mapping[str, str] = os.environ) -> Key:
    """The key, made on the first start if the store is embedded, where this machine is all there is.

    Raises SecretRefused.
    """
    if VARIABLE in environ and FILE_VARIABLE in environ:
        raise SecretRefused(VARIABLE, f"expected it or {FILE_VARIABLE}; got both: remove one")
    if VARIABLE in environ:
        return _fit(environ[VARIABLE].encode(errors="surrogateescape"), VARIABLE)
    if FILE_VARIABLE in environ:
        return _given_file(environ[FILE_VARIABLE])
    if not embedded:
        raise SecretRefused(
            VARIABLE,
            f"expected a secret of at least {SHORTEST} bytes, the same for every process on this store; got none:"
            f" {_MAKE_ONE}",
        )
    return _own_file(data_dir)


def _given_file(name: str) -> Key:
    if not name:
        raise SecretRefused(FILE_VARIABLE, "expected the path of a file; got an empty one")
    # The group may read: that is how an orchestrator hands a mounted secret to a process that is not root.
    return _fit(_read(Path(name), FILE_VARIABLE, closed=stat.S_IRWXO | stat.S_IWGRP), FILE_VARIABLE)


def _own_file(data_dir: Path) -> Key:
    path = data_dir / OWN_FILE
    if not path.exists():
        _make(path)
    return _fit(_read(path, str(path), closed=stat.S_IRWXO | stat.S_IRWXG), str(path))


def _read(path: Path, where: str, *, closed: int) -> bytes:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise SecretRefused(where, "expected a file; got something else")
            if mode & closed:
                raise SecretRefused(
                    where,
                    f"others can read or change it (mode {stat.S_IMODE(mode):04o}): chmod 600 it, and change it",
                )
            return file.read(65_536)
    except OSError as error:
        raise SecretRefused(where, f"expected a readable file; got: {error.strerror}") from error


def _make(path: Path) -> None:
    """All or nothing, and whoever comes second finds the first one's: two processes may start at once."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f"{OWN_FILE}.{os.getpid()}.{secrets.token_hex(4)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_hex(SHORTEST) + "\n")
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                path.hardlink_to(draft)
        finally:
            draft.unlink()
        _sync_folder(path.parent)
    except OSError as error:
        raise SecretRefused(str(path), f"could not be made: {error.strerror}") from error


def _sync_folder(folder: Path) -> None:
    """Decisions are sealed with it: it must be there after a power cut, if they are."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _fit(secret: bytes, where: str) -> Key:
    secret = secret.strip()
    if len(secret) < SHORTEST:
        raise SecretRefused(where, f"expected at least {SHORTEST} bytes; got {len(secret)}: {_MAKE_ONE}")
    if len(set(secret)) < FEWEST:
        raise SecretRefused(where, f"expected a random secret; got a repetition: {_MAKE_ONE}")
    return Key(secret)
