"""Turns of a conversation that stand in data: what a user is said to have asked, and a model to have agreed to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

_ANSWER: Final = re.compile(
    r"(?:\s|\\n)\[?(?:assistant|ai|model)(?:: |\]\(#message\)\s)(?=sure|of course|certainly|ok|done|i will|i.ll"
    r"|understood|yes,|deleting|sending|here )",
    re.IGNORECASE,
)
_GIVEN: Final = re.compile(r"here (?:is|are) (?:the|all|your) (?:key|pass|token|env|secret)", re.IGNORECASE)
_HARM: Final = re.compile(  # what is secret is sent or shown, or what is kept is destroyed
    r"(?:send|post|upload|forward|submit|mail)[^\n]{0,60}(?:https?://|@[\w-]{1,40}\.)"
    r"|(?:send|print|show|shar|reveal|forward|post|dump|list|giv|read|upload|copy|export)[^\n]{0,12}"
    r" (?:the|your|my|all|every|its|their)[^\n]{0,24}"
    r"(?:passw|credential|token|secret|api[ _-]?key|private key|ssh key|environment var|\.env\b)"
    r"|authorized_keys|rm -rf"
    r"|(?:delet|drop|wip|eras|destroy|disabl|terminat|transfer|grant)[^\n]{0,40}(?:namespace|database|branch|cluster|bucket"
    r"|repo|account|backup|logs?\b|volume|prod|staging|server|everything|all\b|access|admin|eur\b|usd\b)"
)


def answered_turn(value: str) -> bool:
    """Whether what was asked for and agreed to gives away what is secret, or destroys what is kept."""
    answer = _ANSWER.search(value)
    if answer is None:
        return True  # a heading of a message, which nothing else writes
    if _GIVEN.match(value, answer.end()):
        return True
    return any(_HARM.search(each.lower()) for each in (value[: answer.start()], value[answer.end() :]))


TURN_CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {"answered_turn": answered_turn}
