"""`egress exec`: statuses and signals of the command, and the gateway that it starts and ends."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.cli import running
from gateway.cli.health import is_healthy
from gateway.cli.launch import run
from gateway.cli.running import a_gateway
from gateway.config import Config, load
from gateway.errors import SetupError
from tests.support.waiting import await_
from tests.unit.cli.conftest import Run

# A stand-in for `egress up`: answers /healthz, writes when it ends, ends on SIGTERM.
STAND_IN = """
import http.server, signal, sys, pathlib
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'{"status":"ok"}')
    def log_message(self, *args): pass
def stop(*_):
    pathlib.Path(sys.argv[2]).write_text("stopped"); sys.exit(0)
signal.signal(signal.SIGTERM, stop)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.mark.parametrize("status", [0, 1, 7, 125, 255])
def test_the_status_is_the_commands(status: int) -> None:
    assert run(python(f"raise SystemExit({status})"), os.environ) == status


def test_a_command_that_a_signal_ended_is_told_as_a_shell_does() -> None:
    assert run(python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"), os.environ) == 137


def test_what_cannot_be_run(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("not a program")

    assert run(["no-such-command-at-all"], os.environ) == 127
    assert run([str(plain)], os.environ) == 126


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_reach_the_command_and_leave_us_alone(number: signal.Signals) -> None:
    code = (
        "import signal, sys, time\n"
        f"signal.signal({number.value}, lambda *_: sys.exit(42))\n"
        "print('ready', flush=True); time.sleep(30)"
    )
    before = signal.getsignal(number)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), number))
    timer.start()

    assert run(python(code), os.environ) == 42
    assert signal.getsignal(number) is before


def test_failures_of_our_own_are_125(egress: Run, folder: Path) -> None:
    (folder / "gateway.toml").write_text("[nope]\n")
    done = egress("exec", "--", "true")

    assert done.status == 125
    assert "nope" in done.err


@pytest.fixture
def config(tmp_path: Path) -> Config:
    ports = _free_ports()
    path = tmp_path / "gateway.toml"
    path.write_text(
        f'[state]\ndir = "state"\n[listen]\nproxy = "127.0.0.1:{ports[0]}"\ncontrol = "127.0.0.1:{ports[1]}"\n'
    )
    return load(path, {"HOME": str(tmp_path)})


def _free_ports() -> list[int]:
    import socket

    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return [one.getsockname()[1], other.getsockname()[1]]


@pytest.fixture
def stand_in(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Start the stand-in wherever a gateway would be started; the path of what it writes when it ends."""
    ended = tmp_path / "ended"
    command = [sys.executable, "-c", STAND_IN, str(config.listen.control.port), str(ended)]
    monkeypatch.setattr(running, "gateway_command", lambda _config: command)
    return ended


def test_the_gateway_is_the_same_program_with_the_same_configuration(config: Config) -> None:
    assert running.gateway_command(config)[1:] == [
        "-P",
        "-m",
        "gateway.cli",
        "up",
        "--config",
        str(config.source),
    ]
    assert "--config" not in running.gateway_command(replace(config, source=None))


def test_a_gateway_is_started_and_ends_with_its_user(config: Config, stand_in: Path) -> None:
    with a_gateway(config) as started:
        assert started
        assert is_healthy(config)

    assert stand_in.read_text() == "stopped"
    assert not is_healthy(config)


def test_one_that_runs_is_used_and_left_alone(config: Config, stand_in: Path) -> None:
    port = str(config.listen.control.port)
    with subprocess.Popen([sys.executable, "-c", STAND_IN, port, str(stand_in)]) as other:
        await_(lambda: is_healthy(config), alive=lambda: other.poll() is None)
        with a_gateway(config) as started:
            assert not started
        assert is_healthy(config)
        other.terminate()


def test_the_last_user_ends_it_and_not_the_one_that_started_it(config: Config, stand_in: Path) -> None:
    first, second = a_gateway(config), a_gateway(config)
    assert first.__enter__()
    assert not second.__enter__()
    first.__exit__(None, None, None)
    assert is_healthy(config), "the second one still needs it"
    second.__exit__(None, None, None)

    assert stand_in.read_text() == "stopped"


def test_one_that_cannot_start_says_why(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", "print('no key here'); raise SystemExit(3)"]
    monkeypatch.setattr(running, "gateway_command", lambda _config: command)
    with pytest.raises(SetupError) as caught, a_gateway(config):
        pass

    assert "no key here" in str(caught.value)
