"""What of a project's traffic becomes its property."""

from __future__ import annotations

import pytest

from gateway.boundary import is_ownable, ownable_text


@pytest.mark.parametrize(
    ("kind", "channel", "ownable"),
    [
        ("text", "user", True),
        ("tool_result", "tool", True),
        ("document", "user", True),
        ("memory", "system", True),
        ("text", "assistant", False),
        ("text", "system", False),
        ("system", "system", False),
        ("tool_definition", "other", False),
        ("thinking", "assistant", False),
        ("parameters", "other", False),
    ],
)
def test_kinds(kind: str, channel: str, ownable: bool) -> None:
    assert is_ownable(kind, channel) is ownable


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("plain", "plain"),
        ("a<environment_context>\n<cwd>/x</cwd>\n</environment_context>b", "ab"),
        ("<system-reminder>x</system-reminder>mine<system-reminder>y</system-reminder>", "mine"),
        ("mine<system-reminder>never closed", "mine"),
        ("<permissions instructions>x</permissions>z", "z"),
    ],
)
def test_wrappers_of_agents_are_nobodys(text: str, left: str) -> None:
    assert ownable_text(text) == left
