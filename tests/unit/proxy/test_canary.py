"""The way for the canary is open for seconds, to one port of this machine, and only for who owns the state folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gateway.proxy.canary import HOST, OPEN_S, PORT, CanaryTarget

NOW = 1_800_000_000.0


def target(path: Path | None, now: float = NOW) -> tuple[str, int] | None:
    return CanaryTarget(path, lambda: now).address(HOST, PORT)


def written(folder: Path, mode: int = 0o600, **document: Any) -> Path:
    path = folder / "canary"
    path.write_text(json.dumps({"port": 40000, "until": NOW + 5, **document}))
    path.chmod(mode)
    return path


def test_it_is_open_while_the_file_says_so(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert target(path) == ("127.0.0.1", 40000)
    assert target(path, NOW + 5) is not None
    assert target(path, NOW + 5.1) is None
    path.unlink()
    assert target(path) is None
    assert target(None) is None


@pytest.mark.parametrize(
    ("host", "port"), [("api.anthropic.com", PORT), (HOST, 80), (f"x.{HOST}", PORT), ("invalid", PORT)]
)
def test_no_other_destination_goes_that_way(tmp_path: Path, host: str, port: int) -> None:
    assert CanaryTarget(written(tmp_path), lambda: NOW).address(host, port) is None


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602, 0o666])
def test_a_file_that_others_could_have_written_or_read_opens_nothing(tmp_path: Path, mode: int) -> None:
    assert target(written(tmp_path, mode)) is None


def test_a_link_or_a_pipe_opens_nothing(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(written(tmp_path))
    os.mkfifo(tmp_path / "pipe", 0o600)
    assert target(tmp_path / "link") is None
    assert target(tmp_path / "pipe") is None


@pytest.mark.parametrize(
    "document",
    [
        {"until": NOW + OPEN_S + 1},
        {"until": "soon"},
        {"until": None},
        {"until": float("nan")},
        {"port": 22},
        {"port": 0},
        {"port": -1},
        {"port": 65536},
        {"port": "40000"},
        {"port": None},
    ],
)
def test_what_makes_no_sense_opens_nothing(tmp_path: Path, document: dict[str, Any]) -> None:
    assert target(written(tmp_path, **document)) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"1", b"null", b"\xff", b'{"port": 40000}'])
def test_what_cannot_be_read_opens_nothing(tmp_path: Path, content: bytes) -> None:
    path = written(tmp_path)
    path.write_bytes(content)
    assert target(path) is None
