"""The tutorial of docs/policies.md: its files are written, its commands run, their output compared."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from gateway.app.described import outbound
from gateway.app.serve import use_case
from gateway.config import parse
from gateway.config.bundles import packaged_bundles
from gateway.ports import Admitted
from tests.support.lives import free_ports
from tests.support.waiting import await_

PAGE = Path(__file__).parents[2] / "docs" / "policies.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EGRESS = Path(sys.executable).with_name("egress")
CARD = "card number 4539 1488 0343 6467"


def tutorial() -> list[tuple[str, str]]:
    text = PAGE.read_text(encoding="utf-8").partition("## From the default bundle")[2].partition("\n## ")[0]
    return [(match[1], match[2]) for match in BLOCK.finditer(text)]


async def _traffic(folder: Path) -> None:
    """Three requests of yesterday, as a gateway under the default bundle stored them."""
    config = parse({"state": {"dir": str(folder / "state")}}, folder, {"HOME": str(folder)})
    async with use_case(config) as core:
        for text in ("hello", "my mail is alice.meyer@northwind-traders.org", f"charge {CARD} please"):
            body = {"model": "m", "messages": [{"role": "user", "content": text}]}
            url = "https://api.openai.com/v1/chat/completions"
            verdict = await core.egress.handle(outbound({"url": url, "body": body, "headers": {}}))
            assert isinstance(verdict, Admitted)


def _status(url: str) -> int | None:
    try:
        return httpx.get(url, timeout=1, trust_env=False).status_code
    except httpx.TransportError:
        return None


@contextmanager
def _running(folder: Path, environ: dict[str, str]) -> Iterator[None]:
    """`egress up`, as somebody has it in another terminal, once it is healthy."""
    process = subprocess.Popen([EGRESS, "up"], cwd=folder, env=environ, stderr=subprocess.DEVNULL)
    try:
        url = f"http://{environ['EGRESS_LISTEN__CONTROL']}/healthz"
        await_(lambda: _status(url), lambda status: status == 200, alive=lambda: process.poll() is None)
        yield
    finally:
        process.terminate()
        process.wait(30)


def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    asyncio.run(_traffic(tmp_path))
    proxy, control = free_ports(2)
    environ = {
        "PATH": f"{EGRESS.parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "EGRESS_STATE__DIR": str(tmp_path / "state"),
        "EGRESS_LISTEN__PROXY": f"127.0.0.1:{proxy}",
        "EGRESS_LISTEN__CONTROL": f"127.0.0.1:{control}",
    }
    said, compared = "", 0
    with ExitStack() as stack:
        for language, text in tutorial():
            if language == "toml":
                path = tmp_path / re.match(r"# (\S+)\n", text)[1]  # type: ignore[index]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            elif text == "egress up\n":
                stack.enter_context(_running(tmp_path, environ))
            elif language == "sh":
                done = subprocess.run(
                    ["/bin/sh", "-e", "-c", text],
                    cwd=tmp_path,
                    env=environ,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert done.returncode == 0, done.stderr
                said = done.stdout
            else:
                expected = re.escape(text).replace(re.escape("..."), r"\S+")
                assert re.fullmatch(expected, said), said
                compared += 1
    assert compared >= 6


@pytest.mark.parametrize("name", ["minimiser", "summariser"])
def test_every_shipped_worker_is_described(name: str) -> None:
    from gateway.plugins import BUILT_IN

    rows = PAGE.read_text(encoding="utf-8").partition(f"| `{name}` |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in rows.splitlines()[2:]]

    assert {word for cell in cells for word in re.findall(r"`(\w+)`", cell)} == set(
        BUILT_IN[f"gateway.{name}s"]
    )


def test_bundles_that_are_named_are_shipped() -> None:
    for name in re.findall(r"`policies/([\w/-]+)`", PAGE.read_text(encoding="utf-8")):
        assert (packaged_bundles() / name / "bundle.toml").is_file(), name
