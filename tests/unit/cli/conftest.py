"""The command line in this process, on a state folder of its own."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.cli import main

CONFIG = '[state]\ndir = "state"\n[listen]\nproxy = "127.0.0.1:1"\ncontrol = "127.0.0.1:2"\n'


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str


type Run = Callable[..., Done]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a configuration."""
    (tmp_path / "gateway.toml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def egress(folder: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command with the folder's configuration, and with nothing of this machine's environment."""
    for name in [*os.environ]:
        if name.startswith("EGRESS_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder))

    def run(*arguments: str) -> Done:
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        said = capfdbinary.readouterr()
        status = ended.value.code
        assert isinstance(status, int)
        return Done(status, said.out.decode(), said.err.decode())

    return run
