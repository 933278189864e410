"""The commands of docs/boundaries.md, run as they stand: two projects, a link, and the audit of what happened."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.integration.test_boundary import FILE, tool_result
from tests.support.gateway import gateway

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "boundaries.md").read_text(), re.DOTALL)


def run(folder: Path, script: str) -> str:
    """A block in a shell, with `egress` as this interpreter has it and nothing of this machine's environment."""
    command = folder / "bin" / "egress"
    if not command.exists():
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m gateway.cli "$@"\n')
        command.chmod(0o755)
    environment = {
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        ["sh", "-e", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_the_commands_of_the_document(tmp_path: Path) -> None:
    setup, canary, link, audit, memory = BLOCKS
    (tmp_path / "gateway.toml").write_text('[state]\ndir = "state"\n')
    for name in ("kestrel", "zoo"):
        (tmp_path / name).mkdir()
    (tmp_path / "kestrel" / "settle.py").write_text(FILE)

    listed = run(tmp_path, setup)
    assert re.search(r"^kestrel: 1 files, 1 read", listed, re.MULTILINE)
    assert re.search(r"^zoo +[0-9a-f]{32} +blue", listed, re.MULTILINE)
    assert run(tmp_path, canary).startswith("egc-")
    run(tmp_path, link)
    projects = tomllib.loads((tmp_path / "gateway.toml").read_text())["projects"]
    assert projects["kestrel"]["linked_projects"] == ["zoo"]

    async with gateway(tmp_path, {"projects": projects}) as bench:
        await bench.send(tool_result(FILE), user="zoo")
        assert "settle_open_positions" not in bytes(bench.arrived[0].body).decode()
        (row, *_) = await bench.rows()
        record = await bench.running.core.egress.store.record(row["lineage"])
    (candidate,) = json.loads(record or b"")["candidates"]
    assert re.fullmatch(r"project:[0-9a-f]{32}/[0-9a-f]{32}", candidate["source"]["id"])
    assert candidate["source"]["kind"] == "file"

    table, line = run(tmp_path, audit).rsplit("\n", 2)[:2]
    assert "role denies allow_cross_project_search" in table
    assert json.loads(line)["allowed"] is False

    answer, *waiting = run(tmp_path, memory).splitlines()
    assert json.loads(answer)["destination"] == "inbox"
    assert "zoo" in waiting[1]
