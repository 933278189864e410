"""An MCP server over its standard input and output, as the specification of 2025-06-18 has it: a JSON message a line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

_LINE_BYTES = 1 << 22
_TIMEOUT_S = 60


@dataclass
class Server:
    """A server that was initialized."""

    process: asyncio.subprocess.Process
    tools: list[dict[str, Any]] = field(default_factory=list)
    _number: int = 0

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a request; raises RuntimeError with the server's error."""
        self._number += 1
        await self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self.process.stdout is not None
        while True:
            line = await asyncio.wait_for(self.process.stdout.readline(), _TIMEOUT_S)
            if not line:
                raise RuntimeError("the server has gone")
            answer = json.loads(line)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(answer["error"]["message"])
                result: dict[str, Any] = answer["result"]
                return result

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """The text of a tool's result."""
        result = await self.ask("tools/call", {"name": tool, "arguments": arguments})
        return "\n".join(part["text"] for part in result["content"] if part["type"] == "text")

    async def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        await self.process.stdin.drain()

    async def start(self) -> None:
        """Initialize, and ask for the tools."""
        client = {"name": "test", "version": "1"}
        await self.ask(
            "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        )
        await self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.tools = (await self.ask("tools/list", {}))["tools"]


@asynccontextmanager
async def running(command: Sequence[str], environment: dict[str, str]) -> AsyncIterator[Server]:
    """A server, ended with the block."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment,
        limit=_LINE_BYTES,
    )
    server = Server(process)
    try:
        await server.start()
        yield server
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
