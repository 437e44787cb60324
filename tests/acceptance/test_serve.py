"""`signoff init` and `signoff serve`, as an operator runs them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from urllib.request import urlopen

from tests.acceptance.conftest import COMMAND, PATIENCE, Shell


def test_init_then_serve_until_told_to_stop(shell: Shell) -> None:
    assert "Wrote signoff.toml" in shell.run("init")
    assert "is there already" in shell.run("init", expect=2)
    environment = {**shell.environment, "SIGNOFF_LISTEN": "127.0.0.1:0"}
    with subprocess.Popen(
        [*COMMAND, "serve"], cwd=shell.folder, env=environment, stderr=subprocess.PIPE, text=True
    ) as serving:
        assert serving.stderr is not None
        address = _address(next(line for line in serving.stderr if '"serving"' in line))
        assert _get(address, "/healthz") == {"alive": True}
        assert _get(address, "/readyz")["ready"] is True
        assert "Nothing waits" in shell.run("asks", "list")
        serving.send_signal(signal.SIGTERM)
        log = serving.stderr.read()
        assert serving.wait(PATIENCE) == 0
    assert '"draining"' in log
    assert '"stopped"' in log


def _get(address: str, path: str) -> dict[str, object]:
    with urlopen(f"{address}{path}", timeout=5) as answer:  # noqa: S310  (our own, on loopback)
        return json.load(answer)


def _address(line: str) -> str:
    found = re.search(r'"address": "(http://[^"]+)"', line)
    assert found, line
    return found[1]


def test_serve_without_a_configuration_says_what_to_do(shell: Shell) -> None:
    assert "signoff init" in shell.run("serve", expect=1)
