"""pii-leak-benchmark through the gateway: what it sends upstream, and what it lets a client see of an answer.

Version 2 of its profile asks for two opposite things at once: what the client sent comes back whole (FidelityRate), and what
the model says of its own, cut over events, does not reach the client (LeakRate). EGRESS_LEAKS=short measures less.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.leaks.shim import BaseUrl, Front
from tests.support.gateway import gateway
from tests.support.pki import make

pytestmark = pytest.mark.timeout(900)

HOST = "api.openai.com"
SHORT = os.environ.get("EGRESS_LEAKS") == "short"


@dataclass(frozen=True)
class Measured:
    """Ports of the base URL and of the benchmark's capture."""

    base: int
    capture: int
    folder: Path


@asynccontextmanager
async def measured(folder: Path) -> AsyncIterator[Measured]:
    """A gateway whose provider is the benchmark's own capture server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        capture = probe.getsockname()[1]
    pki = make(folder / "front", HOST)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pki.leaf)
    front = Front(behind=capture)
    async with front.listening(tls):
        settings = {
            "policy": {"bundles": ["policies/default", "policies/examples/test-values"]},
            "upstream": {"ca_file": str(pki.ca), "connect_to": {f"{HOST}:443": f"127.0.0.1:{front.port}"}},
        }
        async with gateway(folder, settings) as bench:
            base = BaseUrl(proxy=bench.port, ca=bench.state / "ca.pem", host=HOST)
            async with base.listening():
                yield Measured(base.port, capture, folder)


async def run(python: Path, module: str, *arguments: str) -> str:
    """Run a command of the benchmark; everything that it writes."""
    process = await asyncio.create_subprocess_exec(
        str(python), "-m", module, *arguments,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        env={"PATH": os.environ["PATH"], "NO_COLOR": "1"},
    )  # fmt: skip
    out, _ = await process.communicate()
    return out.decode()


async def test_version_2_fidelity_is_whole_and_nothing_leaks(
    tmp_path: Path, installed: Callable[[str], Path]
) -> None:
    python = installed("pii-leak-benchmark")
    oracle = [] if SHORT else ["--exhaustive-splits", "--partial-emission"]
    async with measured(tmp_path) as place:
        said = await run(
            python, "pii_leak_benchmark.v2_cli", "--validate", "--out", str(tmp_path / "out"),
            "--only", "gateway", "--gateway-url", f"http://127.0.0.1:{place.base}/v1/chat/completions",
            "--upstream-port", str(place.capture), "--seed", "a1b2c3d4e5f60001",
            "--json-out", str(tmp_path / "summary.json"), *oracle,
        )  # fmt: skip
    (row,) = json.loads((tmp_path / "summary.json").read_text())["rows"]

    assert row["fidelity_rate"] == 1.0, said
    assert row["leak_single_chunk"] == row["leak_adversarial"] == row["delta_frag"] == 0.0, said
    assert row["request_path_leak"] == [], said
    assert (row["outcome"], row["schema_valid"], row["inconclusive"]) == ("pass", True, 0), said
    assert row["echo_observable"] == row["cases_applicable"] == row["cases_attempted"] > 0, said
    if not SHORT:
        partial = json.loads((tmp_path / "out" / "gateway.partial-emission.json").read_text())
        assert partial["cases"]
        assert not any(case["partial_emission"] for case in partial["cases"])


async def test_the_self_check_is_clean(tmp_path: Path, installed: Callable[[str], Path]) -> None:
    python = installed("pii-leak-benchmark")
    async with measured(tmp_path) as place:
        said = await run(
            python, "pii_leak_benchmark.cli", "selfcheck",
            "--target-base-url", f"http://127.0.0.1:{place.base}/v1", "--capture-port", str(place.capture),
        )  # fmt: skip

    assert "\n  CLEAN\n" in said, said
