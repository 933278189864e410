"""The agents that are tested: which versions, and how they are installed.

They come from the npm registry, the SDKs from the Python index, into a folder outside the checkout (`$EGRESS_CLIENTS_DIR`, else the user's cache), one
folder a version, and are never updated in place. No install script runs: the packages of one platform hold the finished
programs.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import ssl
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

INSTALL_S = 600


class Unavailable(Exception):  # noqa: N818 - a state of the machine
    """A client cannot be had here; the message says what to do."""


@dataclass(frozen=True)
class Package:
    """One client: `spec` is what is installed ({version}, {arch}), `program` the file that is run.

    `index` names the installer: npm, or pip into a virtual environment whose interpreter is the program.
    """

    version: str
    spec: str
    program: str
    index: str = "npm"

    def filled(self, text: str) -> str:
        """A text of this package with version and architecture."""
        arch, triple = _architecture()
        return text.format(version=self.version, arch=arch, triple=triple)


SDKS = {
    "mistralai": "3.7.0",
    "cohere": "7.3.1",
    "ollama": "0.6.3",
    "boto3": "1.44.5",
    "google-genai": "3.6.1",
    "openai": "3.57.0",
    "websockets": "17.4",  # of openai, for Responses over a WebSocket
}
"""SDKs that are no dependency of the project."""

PACKAGES = {
    "claude": Package(
        "2.1.332",
        "@anthropic-ai/claude-code-linux-{arch}@{version}",
        "@anthropic-ai/claude-code-linux-{arch}/claude",
    ),
    "codex": Package(
        "0.171.0",
        "@openai/codex-linux-{arch}@npm:@openai/codex@{version}-linux-{arch}",
        "@openai/codex-linux-{arch}/vendor/{triple}-unknown-linux-musl/bin/codex",
    ),
    "gemini": Package("0.61.0", "@google/gemini-cli@{version}", "@google/gemini-cli/bundle/gemini.js"),
    "opencode": Package("1.18.33", "opencode-linux-{arch}@{version}", "opencode-linux-{arch}/bin/opencode"),
    "qwen": Package("0.15.10", "@qwen-code/qwen-code@{version}", "@qwen-code/qwen-code/cli.js"),
    "vercel-ai": Package(
        "7.0.173",
        "ai@{version} @ai-sdk/openai@4.0.81 @ai-sdk/anthropic@4.0.105 @ai-sdk/google@4.0.121 zod@4.6.7",
        "ai/dist/index.js",
    ),
    "openai-agents": Package("0.20.0", "@openai/agents@{version} zod@4.6.7", "@openai/agents/dist/index.mjs"),
    "sdks": Package(
        "2026.11",  # a number of ours: SDKS in one environment
        " ".join(f"{name}=={version}" for name, version in SDKS.items()),
        "bin/python",
        "pip",
    ),
    "pii-leak-benchmark": Package("0.6.0", "pii-leak-benchmark[validate]=={version}", "bin/python", "pip"),
    "mcp-memory": Package(
        "2026.8.31",
        "@modelcontextprotocol/server-memory@{version}",
        "@modelcontextprotocol/server-memory/dist/index.js",
    ),
    "node": Package("24.22.3", "node-linux-{arch}@{version}", "node-linux-{arch}/bin/node"),
}
"""Every version that is tested, in one place."""


def _architecture() -> tuple[str, str]:
    """npm's name of this machine's architecture, and the compiler's."""
    names = {"x86_64": ("x64", "x86_64"), "aarch64": ("arm64", "aarch64")}
    if platform.system() != "Linux" or platform.machine() not in names:
        raise Unavailable("the clients are pinned for Linux on x86_64 and aarch64 only")
    return names[platform.machine()]


def folder() -> Path:
    """Where clients are kept."""
    given = os.environ.get("EGRESS_CLIENTS_DIR")
    if given:
        return Path(given).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "egress-clients"


def program(name: str) -> Path:
    """The program of a client, installed if it is missing; raises Unavailable."""
    package = PACKAGES[name]
    place = folder() / f"{name}-{package.version}"
    path = place / ("node_modules" if package.index == "npm" else ".") / package.filled(package.program)
    install, finished = {"npm": _install_npm, "pip": _install_pip}[package.index], place / ".finished"
    if finished.exists():
        return path
    place.mkdir(parents=True, exist_ok=True)
    with (place / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs may miss the same client
        if not finished.exists():
            install(place, package.filled(package.spec))
            finished.touch()  # an installation that was cut short is made again
    if not path.exists():
        raise Unavailable(f"{package.filled(package.spec)} was installed and holds no {path.name}")
    return path


def _install_npm(place: Path, spec: str) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable(
            f"npm is not on PATH, and {spec} is not installed: install Node.js with npm, "
            f"or set EGRESS_CLIENTS_DIR to a folder that holds the clients"
        )
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--no-save"]
    _run([npm, "install", "--prefix", str(place), *quiet, *spec.split()], spec)


def _install_pip(place: Path, spec: str) -> None:
    _run([sys.executable, "-m", "venv", str(place)], spec)
    _run([str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", *spec.split()], spec)


def _trusting_the_system(environ: dict[str, str]) -> dict[str, str]:
    """Node trusts the list it was built with, not the machine's: behind a proxy that a machine trusts, npm finds no
    package unless it is told of the machine's list."""
    found = ssl.get_default_verify_paths().cafile
    if found:
        environ.setdefault("NODE_EXTRA_CA_CERTS", found)
    return environ


def _run(command: list[str], spec: str) -> None:
    surroundings = _trusting_the_system(dict(os.environ))
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=INSTALL_S, check=False, env=surroundings
    )
    if done.returncode != 0:
        last = " ".join(done.stderr.strip().splitlines()[-3:])
        raise Unavailable(f"{spec} could not be installed (status {done.returncode}): {last}")
