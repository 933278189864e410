"""What was said before: withheld from the model as a block, so that one forbidden message does not end a session.

Agents send their whole history with every request. A message that may not leave is refused while it is what the client
wants to say; once the conversation has gone on it is only history, and a stub takes its place. A conversation has gone
on from an object when the model answered after it, or when the request with it was refused and the client said
something else since. Sending the same request again is refused again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from gateway.classify.lookups import Recalled
from gateway.classify.objects import ContextObject, Treatment
from gateway.classify.treatment import SIGNED, droppable, fits
from gateway.context.decisions import Decision, combine
from gateway.context.objects import Channel, LeafRole, ObjectKind, Path
from gateway.contract import ContextDispositionV1

CODE: Final = "history.withheld"
_D = ContextDispositionV1
_STAYS: Final = frozenset(
    {LeafRole.STRUCTURAL, LeafRole.STRUCTURAL_NAME, LeafRole.REFERENCE, LeafRole.SEALED}
)
"""Places that a stub leaves as they are, so that what was found there would leave with it."""
_WHOLE: Final = frozenset({ObjectKind.MEDIA, ObjectKind.DOCUMENT})
_NOTE: Final = Decision(_D.ALLOW, (CODE,))
_STUB: Final = (
    "[Withheld by your organisation's egress gateway: this part of the conversation was not sent."
    " Go on without it, and do not guess what it says.]"
)
_WAITING: Final = (
    "[Withheld by your organisation's egress gateway ({}): this part of the conversation was not sent."
    " A reviewer can release it. Go on without it, and do not guess what it says.]"
)


def history_end(channels: Sequence[str]) -> int:
    """How many of these chained objects are history, by their channels: all up to the model's last answer.

    Answers at the very end are what the client wants to be continued, not history.
    """
    end = len(channels)
    while end and channels[end - 1] == Channel.ASSISTANT:
        end -= 1
    return next((n for n in range(end, 0, -1) if channels[n - 1] == Channel.ASSISTANT), 0)


def stub_history(
    objects: Sequence[ContextObject],
    indexes: Sequence[int],
    recalled: Recalled | None,
    hold: Callable[[ContextObject], str],
    *,
    shapeable: bool,
) -> None:
    """Withhold old objects that may not leave, instead of the whole request, where their shape has a place for a stub.

    Args:
        objects: all of the request, each with what is to be done to it.
        indexes: those of the chained objects, in order.
        recalled: what the conversation has sent and met before.
        hold: gives the id under which an object waits for a person.
        shapeable: the body is one JSON text that may be rewritten.
    """
    if not shapeable:
        return
    end = history_end([str(objects[i].block.channel) for i in indexes])
    met = 0 if recalled is None else recalled.seen
    if met < len(indexes):
        end = max(end, met)
    for index in indexes[:end]:
        item = objects[index]
        if keeps_here(item) and ("stub", "refuse") not in item.decision.parameters:
            _withhold(index, objects, hold)


def _withhold(index: int, objects: Sequence[ContextObject], hold: Callable[[ContextObject], str]) -> None:
    item = objects[index]
    if not _is_known(item):
        return
    if item.block.kind in SIGNED:
        item.treatment = Treatment("drop") if droppable(index, objects) else item.treatment
    elif fits(item):
        waits = item.decision.disposition is _D.ALLOW_WITH_APPROVAL
        item.treatment = Treatment("stub", text=_WAITING.format(hold(item)) if waits else _STUB)
    if not keeps_here(item):
        item.decision, item.edits = combine(item.decision, _NOTE), ()


def _is_known(item: ContextObject) -> bool:
    """Whether nothing forbidden stands in what a stub leaves of the object, which of media is nothing at all."""
    if item.block.kind in _WHOLE:
        return True
    read = item.scanned.coverage in {"complete", "not_required"}
    return read and not any(found.role in _STAYS for found in item.scanned.findings)


def keeps_here(item: ContextObject) -> bool:
    """Whether this object keeps the whole request here: it may not leave, and nothing can stand in its place."""
    if item.decision.disposition.delivers_content:
        return False
    return item.treatment is None or item.treatment.kind == "refuse"


_NAMES: Final = {
    "messages": "message", "contents": "message", "chat_history": "message", "input": "item", "tools": "tool",
    "requests": "request",
}  # fmt: skip
_KINDS: Final = {
    ObjectKind.TOOL_RESULT: "a tool result",
    ObjectKind.TOOL_CALL: "a tool call",
    ObjectKind.TOOL_DEFINITION: "a tool definition",
    ObjectKind.SYSTEM: "the system prompt",
    ObjectKind.THINKING: "thinking",
    ObjectKind.SEALED: "a signed part",
    ObjectKind.MEDIA: "a picture or a sound",
    ObjectKind.DOCUMENT: "a document",
    ObjectKind.PARAMETERS: "the parameters",
    ObjectKind.HEADER: "a header",
    ObjectKind.TARGET: "the address",
}


def way_on(objects: Sequence[ContextObject], *, shapeable: bool) -> str:
    """Which turn keeps a refused request here, and how to go on; empty where no object does."""
    blamed = next((item for item in objects if keeps_here(item)), None)
    if blamed is None:
        return ""
    place = _place(blamed, objects)
    where = f"It stands in {place}. " if place else ""
    codes = blamed.decision.reason_codes
    if "conversation.signed_prefix" in codes or blamed.block.kind in SIGNED:
        return f"{where}Start a new conversation to go on: signed thinking depends on it."
    if "approval.pending" in codes:
        return f"{where}Send it again once it is approved, or go on with another message: this one is then left out."
    if shapeable and fits(blamed) and blamed.block.kind is not ObjectKind.SYSTEM:
        return f"{where}Go on with another message: this one is then left out of what the model sees."
    return f"{where}Take it out, or start a new conversation without it."


def _place(item: ContextObject, objects: Sequence[ContextObject]) -> str:
    """Where an object stands in words, by numbers and kinds alone."""
    kind = _KINDS.get(ObjectKind(item.block.kind), "")
    name, number = _numbered(item.place)
    if not name:
        return kind
    last = max(n for found, n in map(_numbered, (o.place for o in objects)) if found == name)
    return f"{name} {number} of {last}" + (f" ({kind})" if kind else "")


def _numbered(path: Path) -> tuple[str, int]:
    """The first list that a path leads into, and the number of its element from one; an empty name without one."""
    for token, following in pairwise(path):
        if isinstance(following, int) and isinstance(token, str):
            return _NAMES.get(token, ""), following + 1
    return "", 0
