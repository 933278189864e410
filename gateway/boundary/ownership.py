"""What of a project's traffic becomes its property, so that it is known when it turns up in another project."""

from __future__ import annotations

from gateway.context.objects import Channel, ObjectKind

WRAPPERS = (
    "environment_context",
    "system-reminder",
    "user_instructions",
    "permissions",
    "INSTRUCTIONS",
    "command-message",
    "ide_opened_file",
)
"""Elements that agents put around text of their own; the same in every project, so nobody's property."""

_OWN_KINDS = frozenset({ObjectKind.TEXT, ObjectKind.TOOL_RESULT, ObjectKind.DOCUMENT, ObjectKind.MEMORY})
_OWN_CHANNELS = frozenset({Channel.USER, Channel.TOOL})


def is_ownable(kind: str, channel: str) -> bool:
    """Whether objects of this kind may become a project's property.

    Prompts and tool definitions of agents stand in every project's requests, and an assistant's words are
    the provider's: neither is learnt. They are still looked up, for a summary of another project may stand
    in a prompt.
    """
    return kind in _OWN_KINDS and (channel in _OWN_CHANNELS or kind == ObjectKind.MEMORY)


def ownable_text(text: str) -> str:
    """The text without what stands in an agent's wrapper elements; an element that is never closed ends the text."""
    for name in WRAPPERS:
        text = _without(text, f"<{name}", f"</{name}>")
    return text


def _without(text: str, opening: str, closing: str) -> str:
    kept, at = [], 0
    while (start := text.find(opening, at)) >= 0:
        kept.append(text[at:start])
        end = text.find(closing, start)
        if end < 0:
            return "".join(kept)
        at = end + len(closing)
    kept.append(text[at:])
    return "".join(kept)
