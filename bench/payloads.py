"""Bodies shaped like an agent's: system blocks, tools, and turns of text, tool calls and tool results.

Deterministic: the texts are source files of the standard library, cut and numbered as a tool shows them.
"""

from __future__ import annotations

import json
import random
import sysconfig
from pathlib import Path
from typing import Any

SECRET = "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"
SIZES = {"2 KB": 2_000, "60 KB": 60_000, "560 KB": 560_000, "3.5 MB": 3_500_000}


class Traffic:
    """A conversation that grows turn by turn."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)
        folder = Path(sysconfig.get_paths()["stdlib"])
        names = (
            "argparse",
            "ast",
            "inspect",
            "subprocess",
            "tarfile",
            "typing",
            "zipfile",
            "pathlib",
            "ssl",
            "socket",
        )
        sources = [folder / f"{name}.py" for name in names]
        self._lines = [
            line for path in sources if path.is_file() for line in path.read_text("utf-8").split("\n")
        ]
        self._number = 0
        self.messages: list[dict[str, Any]] = []

    def body(self, size: int) -> bytes:
        """A body of about `size` bytes; two secrets stand in it."""
        self.messages = []
        while self._size() < size - 1500:
            self.turn(min(6000, max(200, size - self._size() - 1200)), secret=len(self.messages) in (2, 6))
        return self.encoded()

    def _size(self) -> int:
        return sum(len(json.dumps(m)) for m in self.messages)

    def turn(self, size: int, *, secret: bool = False) -> None:
        """One more exchange: an assistant's text and tool call, and the tool's result of about `size` bytes."""
        self._number += 1
        call = f"toolu_{self._number:024d}"
        at = self._random.randrange(len(self._lines) - 400)
        shown, total = [], 0
        for number, line in enumerate(self._lines[at:], at + 1):
            shown.append(f"{number:6}\t{line}")
            total += len(line) + 8
            if total >= size:
                break
        if secret:
            shown.insert(1, f"     1\texport GITHUB_TOKEN={SECRET}")
        if not self.messages:
            self.messages.append(
                {"role": "user", "content": [{"type": "text", "text": "Please look into it."}]}
            )
        self.messages += [
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": f"I will read part {self._number} of the file."},
                    {
                        "type": "tool_use",
                        "id": call,
                        "name": "Read",
                        "input": {"file_path": f"/srv/app/m{at}.py"},
                    },
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": call, "content": "\n".join(shown)}],
            },
        ]

    def encoded(self) -> bytes:
        """The request as it would be sent now."""
        tools = [
            {
                "name": name,
                "description": f"{name} something in the workspace.",
                "input_schema": {"type": "object", "properties": {"file_path": {"type": "string"}}},
            }
            for name in ("Read", "Write", "Edit", "Bash", "Grep")
        ]
        body = {
            "model": "claude-sonnet-4-6",
            "max_tokens": 8192,
            "stream": True,
            "system": [{"type": "text", "text": "You are a coding agent working in a terminal."}],
            "tools": tools,
            "messages": self.messages,
        }
        return json.dumps(body, separators=(",", ":")).encode()
