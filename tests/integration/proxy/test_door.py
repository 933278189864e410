"""`mitmdump -s addons/egress.py`: refuses to load open, and is the same gateway when it loads."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.client import Connection, post
from tests.support.pki import Pki
from tests.support.provider import Provider
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[3]
CLOSED = ["connection_strategy=lazy", "rawtcp=false", "websocket=false", "upstream_cert=false"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def _mitmdump(
    folder: Path, config: str, *options: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    (folder / "gateway.toml").write_text(config)
    port = _free_port()
    arguments = ["-s", "addons/egress.py", "-p", str(port), "--listen-host", "127.0.0.1"]
    for option in (*options, f"confdir={folder / 'mitm'}"):
        arguments += ["--set", option]
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("mitmdump")),
        *arguments,
        cwd=ROOT,
        env=os.environ | {"EGRESS_CONFIG": str(folder / "gateway.toml"), "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield process, port
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.communicate(), 20)


def _config(folder: Path, provider_port: int, ca: Path) -> str:
    return f"""
[listen]
proxy = "127.0.0.1:8080"
control = "127.0.0.1:8081"
[state]
dir = "{folder / "state"}"
[upstream]
ca_file = "{ca}"
connect_to = {{ "api.test:443" = "127.0.0.1:{provider_port}" }}
[hosts]
intercept = ["api.test"]
"""


OPEN = [
    "connection_strategy=eager",
    "rawtcp=true",
    "stream_large_bodies=1",
    "ssl_insecure=true",
    "ignore_hosts=x",
]


async def test_options_that_fail_open_are_refused_all_at_once(tmp_path: Path, pki: Pki) -> None:
    async with _mitmdump(tmp_path, _config(tmp_path, 1, pki.ca), *OPEN) as (process, _):
        output, _ = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 1
    for option in OPEN:
        assert option.partition("=")[0] in output.decode()


async def test_the_same_gateway_behind_the_door(tmp_path: Path, pki: Pki) -> None:
    provider = Provider(pki, alpn=("http/1.1",))
    await provider.start()
    ca = tmp_path / "state" / "ca.pem"
    try:
        async with _mitmdump(tmp_path, _config(tmp_path, provider.port, pki.ca), *CLOSED) as (process, port):
            await eventually(ca.exists, alive=lambda process=process: process.returncode is None)
            connection = await Connection.open(port)
            await connection.connect("api.test:443")
            await connection.tls(ca, "api.test")
            reply = await connection.ask(post(b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'))
            connection.abort()
    finally:
        await provider.stop()
    assert reply.status == 200
    assert (reply.header("x-egress-receipt") or "").startswith("sha256:")
    assert len(provider.arrived) == 1
