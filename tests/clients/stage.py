"""One agent, one gateway that `egress exec` starts for it, one provider: everything that a turn needs, and its traces."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.cli.demo_script import POLICY, card_number, github_token
from gateway.providers.hosts import developer_hosts
from tests.support.copyist import COPIED, CopyingProvider, Copyist
from tests.support.pki import make

HOSTS = (
    *("api.openai.com", "chatgpt.com", "ab.chatgpt.com", "auth.openai.com"),
    *("api.anthropic.com", "platform.claude.com", "claude.ai", "mcp-proxy.anthropic.com"),
    *("generativelanguage.googleapis.com", "play.googleapis.com", "cloudcode-pa.googleapis.com"),
    *("api.mistral.ai", "api.cohere.com", "ollama.com", "bedrock-runtime.us-east-1.amazonaws.com"),
)
"""Hosts of the shipped table that the agents contact: all of them are this provider."""

TURN_S = 120.0
PROJECT = "acme-web"  # named in the proxy's address, with a token: a client that does not send both gets nothing through
PROMPT = "Copy the token from settings.conf to copy.conf, then tell me the token."
DENIED = f"Refund the payment on card {card_number()}, please."
"""What the stage's own policy lets out under no name."""


@dataclass(frozen=True)
class Ended:
    """How an agent ended."""

    status: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """Everything it wrote, for a failing test."""
        return f"status {self.status}\n--- out\n{self.out}\n--- err\n{self.err}"


@dataclass(frozen=True)
class Stage:
    """`work` is the agent's folder, `token` the planted key; `settings.conf` holds it, `copy.conf` is to get it."""

    folder: Path
    work: Path
    token: str
    provider: CopyingProvider

    @property
    def copy(self) -> Path:
        """The file that the agent's tool writes."""
        return self.work / "copy.conf"

    @property
    def home(self) -> Path:
        """The agent's home folder, empty but for what a test puts there."""
        return self.folder / "home"

    async def run(self, command: Sequence[str], environ: dict[str, str], limit: float = TURN_S) -> Ended:
        """Run an agent behind the gateway with a bare environment, for at most `limit` seconds."""
        bare = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TMPDIR": str(self.home),  # gemini-cli leaves whole requests there when one is refused
            "LANG": "C.UTF-8",
            "TERM": "dumb",
        }
        whole = [*self._egress("exec"), "--project", PROJECT, "--", *command]
        process = await asyncio.create_subprocess_exec(
            *whole,
            cwd=self.work,
            env={**bare, **environ},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(limit):
                out, err = await process.communicate()
        except TimeoutError:
            os.killpg(
                process.pid, signal.SIGTERM
            )  # the group is the command's own; the gateway ends with its user
            out, err = await process.communicate()
        return Ended(process.returncode or 0, out.decode(errors="replace"), err.decode(errors="replace"))

    async def rows(self) -> list[dict[str, Any]]:
        """The evidence, oldest first; read from the store after the gateway has ended."""
        process = await asyncio.create_subprocess_exec(
            *self._egress("receipts", "list", "--json"), stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        assert process.returncode == 0
        return [json.loads(line) for line in reversed(out.splitlines())]

    def _egress(self, *arguments: str) -> list[str]:
        config = ["--config", str(self.folder / "gateway.toml")]
        return [sys.executable, "-P", "-m", "gateway.cli", *arguments, *config]

    def check_round_trip(self, ended: Ended) -> None:
        """The key left masked, came back whole where a tool and the user see it, and is in no trace of the gateway."""
        models = self.provider.asked_models()
        wires = [bytes(request.wire) for request in self.provider.arrived]
        sent = b"\n".join(wires + self.provider.decoded_bodies())
        assert ended.status == 0, ended.said
        assert len(models) >= 3, ended.said  # read, write, tell
        assert self.token.encode() not in sent
        placeholders = set(COPIED.findall(sent.decode("utf-8", "replace")))
        assert len(placeholders) == 1, ended.said  # the same on every turn
        assert self.copy.read_text() == f"token={self.token}\n", ended.said
        assert self.token in ended.out, ended.said
        assert not placeholders & {*COPIED.findall(ended.out)}, ended.said

    async def check_refusal(self, ended: Ended, *, attempts: int, shown: str = "pii.card_blocked") -> None:
        """What policy denies left nothing; the agent asked `attempts` times and shows the reason, never the card."""
        denied = [row for row in await self.rows() if "pii.card_blocked" in row["evaluation"]["reason_codes"]]
        assert self.provider.asked_models() == [], ended.said
        assert len(denied) == attempts, ended.said
        assert {row["effect"] for row in denied} == {"refused"}
        assert shown in ended.out + ended.err, ended.said

    def check_traces(self, rows: list[dict[str, Any]]) -> None:
        """Each request to a model was observed, and no file of the state folder holds the key but vault and keys."""
        observed = [row for row in rows if row["receipt_state"] == "observed_model_egress"]
        assert [row["effect"] for row in observed].count("rewritten") >= 2
        assert {row["project"] for row in observed} == {PROJECT}
        for path in (self.folder / "state").rglob("*"):
            if path.is_file() and not {"vault", "keys"} & set(path.relative_to(self.folder / "state").parts):
                assert self.token.encode() not in path.read_bytes(), path.name


@asynccontextmanager
async def stage(folder: Path) -> AsyncIterator[Stage]:
    """A provider that runs, a configuration for it, and a folder with a planted key."""
    work = folder / "work"
    work.mkdir(parents=True)
    (folder / "home").mkdir()
    token = github_token()
    (work / "settings.conf").write_text(f"# deployment\nGITHUB_TOKEN={token}\nREGION=eu-central-1\n")
    pki = make(folder / "pki", *HOSTS)
    provider = CopyingProvider(pki, Copyist(work / "settings.conf", work / "copy.conf"))
    await provider.start()
    try:
        _configure(folder, pki.ca, provider.port)
        yield Stage(folder, work, token, provider)
    finally:
        await provider.stop()


def _configure(folder: Path, ca: Path, port: int) -> None:
    """Providers are dialled here; every other host, the developers' own too, is refused: nothing waits on a network."""
    proxy, control = _free_ports()
    for name, text in POLICY.items():
        path = folder / "policy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "token").write_text("a-token-of-the-project\n")
    dial = {f"{host}:443": f"127.0.0.1:{port}" for host in HOSTS}
    table = ", ".join(f"{json.dumps(a)} = {json.dumps(b)}" for a, b in dial.items())
    (folder / "gateway.toml").write_text(
        f'[listen]\nproxy = "127.0.0.1:{proxy}"\ncontrol = "127.0.0.1:{control}"\n'
        f'[state]\ndir = "state"\n'
        f"[hosts]\ndeny = {json.dumps(sorted(developer_hosts))}\n"
        f'[projects.{PROJECT}]\ntoken_file = "token"\n'
        f'[policy]\nbundles = ["policies/default", "policy"]\n'
        f"[upstream]\nca_file = {json.dumps(str(ca))}\nconnect_to = {{ {table} }}\n"
    )


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]
