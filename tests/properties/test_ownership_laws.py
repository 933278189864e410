"""Laws of ownership under any order of events: a text belongs to whoever alone has sent it, and to nobody else."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.app.ownership import Fingerprints
from gateway.app.projects import ProjectFacts
from gateway.boundary import BoundaryPolicy
from gateway.ports import OwnedText
from gateway.store.fingerprints import FingerprintFiles
from tests.support.words import prose

NAMES = [f"p{number}" for number in range(8)]
TEXTS = [prose(number, lines=4) for number in range(6)]


def ownership(folder: Path) -> Fingerprints:
    return Fingerprints(
        files=FingerprintFiles(folder, b"k" * 32),
        key=b"k" * 32,
        projects={n: ProjectFacts(n, f"hash-{n}") for n in (*NAMES, "default")},
        policy=BoundaryPolicy(),
        role_allows=lambda _: False,
        now=lambda: "2026-05-03T09:43:12Z",
    )


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([*NAMES, "default"]), st.integers(0, len(TEXTS) - 1), st.booleans()),
        max_size=25,
    )
)
def test_a_text_is_whose_it_was_alone(events: list[tuple[str, int, bool]]) -> None:
    async def play(known: Fingerprints) -> None:
        # in waves, so that neighbours of the list really run side by side
        await asyncio.gather(
            *(known.learn(who, [OwnedText(TEXTS[which], "text", "user")]) for who, which, _ in events)
        )
        for _, _, again in events:
            if again:
                known.load()
                break

    with tempfile.TemporaryDirectory() as folder:
        known = ownership(Path(folder))
        asyncio.run(play(known))
        fresh = ownership(Path(folder))
        fresh.load()
        for which, text in enumerate(TEXTS):
            senders = {who for who, sent, _ in events if sent == which} - {"default"}
            expected = senders if len(senders) == 1 else set()
            for each in (known, fresh):
                assert {c.project for c in each.claims_of(text) if c.evidence == "fingerprint"} == expected
        known.close()
        fresh.close()
