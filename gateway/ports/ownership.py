"""Whose a text is, and who may see it. See gateway.ports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gateway.ports.exchange import Peer

CONTENT_EVIDENCE = frozenset({"fingerprint", "canary"})
"""Evidence that a text is a project's own content; all other kinds only say that it speaks of the project."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """Evidence that one text belongs to a project, whoever asks.

    `evidence` is fingerprint, canary, cwd, path, remote or tag; `spans` are half-open, in characters of the text;
    `sources` are keyed digests of the files it was recognised from, where these were indexed.
    """

    project: str
    evidence: str
    confidence_milli: int
    spans: tuple[tuple[int, int], ...]
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reach:
    """One request reaching for what is another project's, in one way (contract.md §9.1).

    `facts` is how many pieces of the owner's content stand in the request: none where it is only named.
    """

    owner: str
    event: str  # search | recall | import
    facts: int
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ruling:
    """Whether a reach is allowed. `owner_hash` names the owner in evidence.

    `audit` is the event of the attempt in canonical bytes, empty where the policy keeps none, or where no content was
    reached.
    """

    reach: Reach
    owner_hash: str
    allowed: bool
    audit: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class OwnedText:
    """A text that was sent in a project's traffic, with the kind and channel of its object."""

    text: str = field(repr=False)
    kind: str
    channel: str


class Ownership(Protocol):
    """Whose content a text is, by what was indexed, seen before, or is said in it (contract.md §9)."""

    @property
    def revision(self) -> int:
        """Changes when projects were indexed anew, so that earlier claims are out of date; 0: none are told apart."""
        ...

    async def claims(self, texts: Sequence[str]) -> list[tuple[Claimed, ...]]:
        """For each text, the projects that it belongs to or speaks of."""
        ...

    def rule(self, peer: Peer, reaches: Sequence[Reach], time: str) -> list[Ruling]:
        """For each reach, whether this peer may see the owner's content, by the rule of contract.md §9.4."""
        ...

    async def learn(self, project: str, texts: Sequence[OwnedText]) -> None:
        """What a project has sent belongs to it from now on."""
        ...
