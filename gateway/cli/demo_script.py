"""What the demonstration plants, and the requests that carry it."""

from __future__ import annotations

import secrets
import zlib
from dataclasses import dataclass
from typing import Any, Final

_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _base62(number: int, width: int) -> str:
    digits = ""
    for _ in range(width):
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits


def github_token() -> str:
    """A token of the form that GitHub issues, its check sum right, and issued by nobody."""
    body = "".join(secrets.choice(_BASE62) for _ in range(30))
    return f"ghp_{body}{_base62(zlib.crc32(body.encode()), 6)}"


def card_number() -> str:
    """Sixteen digits that pass Luhn, in a range that issuers keep for tests."""
    body = "400000" + "".join(secrets.choice("0123456789") for _ in range(9))
    doubled = (int(digit) * (2 - place % 2) for place, digit in enumerate(body))
    total = sum(value - 9 if value > 9 else value for value in doubled)
    return f"{body}{-total % 10}"


@dataclass(frozen=True, slots=True)
class Planted:
    """Values that must not reach the provider; made anew for every run."""

    token: str
    mail: str
    card: str


def plant() -> Planted:
    """New values."""
    return Planted(github_token(), f"maria.{secrets.token_hex(3)}@nordlicht-werke.de", card_number())


ANTHROPIC_TOOLS: Final = [
    {"name": "read_file", "description": "Read a file.", "input_schema": {"type": "object", "properties": {}}}
]
OPENAI_TOOLS: Final = [
    {
        "type": "function",
        "function": {"name": "read_file", "description": "Read a file.", "parameters": {"type": "object"}},
    }
]


def _prompt(planted: Planted) -> str:
    return f"Deploy the release with the token {planted.token} and tell {planted.mail} when it is done."


def _file(planted: Planted) -> str:
    return f"# deploy.env\nGITHUB_TOKEN={planted.token}\nNOTIFY={planted.mail}\nREGION=eu-central-1\n"


def anthropic_turn(planted: Planted) -> list[dict[str, Any]]:
    """A prompt, a tool call and its result."""
    call = {"type": "tool_use", "id": "toolu_demo1", "name": "read_file", "input": {"path": "deploy.env"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_demo1", "content": _file(planted)}
    return [
        {"role": "user", "content": _prompt(planted)},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]


def openai_turn(planted: Planted) -> list[dict[str, Any]]:
    """The same in the other dialect."""
    function = {"name": "read_file", "arguments": '{"path":"deploy.env"}'}
    call = {"id": "call_demo1", "type": "function", "function": function}
    return [
        {"role": "user", "content": _prompt(planted)},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_demo1", "content": _file(planted)},
    ]


def denied_turn(planted: Planted) -> list[dict[str, Any]]:
    """A prompt that the demonstration's own policy layer does not let out at all."""
    return [{"role": "user", "content": f"Refund the payment on card {planted.card}, please."}]


POLICY: Final = {
    "bundle.toml": (
        'name = "demo"\nversion = "1.0.0"\n'
        'description = "A layer over the default bundle: payment cards do not leave, not even as a placeholder."\n'
    ),
    "rules/cards.toml": (
        '[[rule]]\nid = "demo.card"\n'
        'why = "Card numbers have no place in a prompt."\n'
        'when = { type = "credit_card" }\n'
        'then = { disposition = "deny", reason_codes = ["pii.card_blocked"] }\n'
    ),
    "texts.toml": (
        '[texts]\n"pii.card_blocked" = "The demonstration policy keeps payment cards out of prompts."\n'
    ),
}
"""A bundle as files, by name: it can only tighten the default one before it."""
