"""A provider whose model copies: it reads a file with the agent's tool, writes what it found with another, and tells it.

What is copied is the first credential or placeholder in a tool's result. The model keeps no state: which step is next
stands in the request, as with a real one. Agents give their tools different names and arguments; `READERS`, `WRITERS`
and `SHELLS` know those of the agents that are tested.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, override

from tests.support import speech
from tests.support.answers import Asked, asked, decoded
from tests.support.pki import Pki
from tests.support.provider import Answer, Arrived, Provider
from tests.support.speech import Call, Say, Step

COPIED = re.compile(r"EGRESS_[A-Z][A-Z0-9_]*_[A-Z2-7]{22}|ghp_[0-9A-Za-z]{36}")

type Arguments = Callable[[str, str], dict[str, Any]]

READERS: dict[str, Arguments] = {  # (path, -) -> arguments
    "Read": lambda path, _: {"file_path": path},
    "read_file": lambda path, _: {"file_path": path},
    "read": lambda path, _: {"filePath": path},
}
WRITERS: dict[str, Arguments] = {  # (path, content) -> arguments
    "Write": lambda path, text: {"file_path": path, "content": text},
    "write_file": lambda path, text: {"file_path": path, "content": text},
    "write": lambda path, text: {"filePath": path, "content": text},
}
SHELLS: dict[str, Arguments] = {  # (command, -) -> arguments
    "exec_command": lambda command, _: {"cmd": command},
    "shell_command": lambda command, _: {"command": command},
    "shell": lambda command, _: {"command": ["sh", "-c", command]},
}


@dataclass(frozen=True)
class Copyist:
    """Decides each step: `source` is the file to read, `target` the one to write, `written` its content around {}."""

    source: Path
    target: Path
    written: str = "token={}\n"

    def step(self, request: Asked) -> Step:
        """What the model does next."""
        found = COPIED.search("\n".join(request.results))
        done = len(request.results)
        if request.wants_json:  # gemini-cli asks which model to use before it asks the model
            return Say(
                json.dumps({"complexity_reasoning": "short", "complexity_score": 5, "reasoning": "short"})
            )
        if not request.tools:
            return Say("Copying a file")  # a title, a summary
        if done == 0:
            return self._read(request.tools)
        if found is None:
            return Say("There is nothing to copy.")
        if done == 1:
            return self._write(request.tools, self.written.format(found[0]))
        return Say(f"I copied {found[0]} for you.")

    def _read(self, tools: list[str]) -> Step:
        for name in tools:
            if name in READERS:
                return Call(name, READERS[name](str(self.source), ""))
        return self._shell(tools, f"cat {shlex.quote(str(self.source))}", 1)

    def _write(self, tools: list[str], content: str) -> Step:
        for name in tools:
            if name in WRITERS:
                return Call(name, WRITERS[name](str(self.target), content), 2)
        return self._shell(tools, f"printf %s {shlex.quote(content)} > {shlex.quote(str(self.target))}", 2)

    def _shell(self, tools: list[str], command: str, n: int) -> Step:
        for name in tools:
            if name in SHELLS:
                return Call(name, SHELLS[name](command, ""), n)
        return Say("I have no tool for that.")


class CopyingProvider(Provider):
    """Answers requests to models as the copyist, `documents` by their path, everything else with a JSON 404."""

    def __init__(self, pki: Pki, copyist: Copyist) -> None:
        super().__init__(pki)
        self.copyist = copyist
        self.documents: dict[str, Any] = {}

    @override
    def answer_to(self, request: Arrived) -> Answer:
        if self._answers:
            return super().answer_to(request)
        question = _question(request)
        known = self.documents.get(request.target.partition("?")[0])
        if question is None and known is not None:
            return Answer(pieces=speech.whole(known)[1])
        if question is None:
            _, pieces = speech.whole(
                {"error": {"type": "not_found_error", "message": "there is no such path"}}
            )
            return Answer(404, pieces=pieces)
        status, headers, pieces = question.answer(self.copyist.step(question))
        return Answer(status, headers, pieces, framing="length" if len(pieces) == 1 else "chunked")

    def decoded_bodies(self) -> list[bytes]:
        """The bodies of all requests, without their content coding."""
        return [decoded(r.header("content-encoding"), bytes(r.body)) for r in self.arrived]

    def asked_models(self) -> list[Arrived]:
        """The requests that asked a model, in order."""
        return [request for request in self.arrived if _question(request) is not None]


def _question(request: Arrived) -> Asked | None:
    if request.method != "POST":
        return None
    return asked(request.target, request.header("content-encoding"), bytes(request.body))
