"""Signed history: models bind the signatures of their thinking to all content before them.

So an old object may not change under a signed one. Where a policy wants it changed all the same, the signed blocks
after it go, if their turn is over; else the request is refused, and a new conversation has to be started.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.classify.lookups import Recalled
from gateway.classify.objects import ContextObject, Treatment
from gateway.classify.treatment import SIGNED, droppable
from gateway.context.decisions import Decision, combine
from gateway.contract import ContextDispositionV1

CODE = "conversation.signed_prefix"
_DENIED = Decision(ContextDispositionV1.DENY, (CODE,))
_DROPPED = Decision(ContextDispositionV1.QUARANTINE, (CODE,), parameters=(("stub", "drop"),))


def hold_prefix(
    objects: Sequence[ContextObject], indexes: Sequence[int], recalled: Recalled | None, *, shapeable: bool
) -> None:
    """Drop what is signed after an old object that leaves changed otherwise than it left before, or deny that object.

    `indexes` are those of the chained objects, of which the first `recalled.length` have been sent before. What is
    signed came from the provider, which made it over what was sent then; also in an answer that is new here.
    """
    if recalled is None:
        return
    sent = indexes[: recalled.length]
    changed = next((i for i in sent if _differs(objects[i], recalled)), None)
    if changed is None:
        return
    signed = [
        i for i in indexes if i > changed and objects[i].block.kind in SIGNED and not _is_dropped(objects[i])
    ]
    if all(shapeable and droppable(i, objects) for i in signed):
        for i in signed:
            objects[i].decision = combine(objects[i].decision, _DROPPED)
            objects[i].treatment, objects[i].edits = Treatment("drop"), ()
        return
    objects[changed].decision = combine(objects[changed].decision, _DENIED)
    objects[changed].edits, objects[changed].treatment = (), None


def _differs(item: ContextObject, recalled: Recalled) -> bool:
    before = recalled.treatments.get(item.digest)
    return set(item.edits) != set(recalled.edits.get(item.digest, ())) or item.treatment != (
        None if before is None else before.treatment
    )


def _is_dropped(item: ContextObject) -> bool:
    return item.treatment is not None and item.treatment.kind == "drop"
