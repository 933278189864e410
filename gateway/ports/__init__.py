"""What the use case asks of the world. Protocols of one to four methods; the contract is in the docstring.

Nothing but `gateway.errors.GatewayError` may escape an implementation. Every method that is not `async` is pure or a
quick look at memory and may be called on the event loop.
"""

from __future__ import annotations

from gateway.ports.answers import AnswerCounts, AnswerFinding, BodyRestorer, Released, Restoration
from gateway.ports.detection import Detector, DocumentReader, Scanner, TokenReader
from gateway.ports.exchange import (
    Admitted,
    Attempt,
    ConnectionEvent,
    Conversing,
    Detour,
    Ending,
    OutboundRequest,
    Peer,
    Refused,
    Resigner,
    Told,
    UseCase,
)
from gateway.ports.ownership import CONTENT_EVIDENCE, Claimed, OwnedText, Ownership, Reach, Ruling
from gateway.ports.people import REVIEWER_ROLES, Hold, Holding, Reviewer
from gateway.ports.policy import Minimiser, Policy, Summariser
from gateway.ports.providers import Delta, EventReading, Headers, NativeAnswer, ProviderAdapter, Refusal
from gateway.ports.stores import (
    ConversationStore,
    EvidenceStore,
    Kept,
    Record,
    RequestRow,
    SealedValue,
    ValueVault,
    VaultStore,
)
from gateway.ports.surroundings import Accounts, Clock, Gate, Meter, Standing

__all__ = [
    "CONTENT_EVIDENCE",
    "REVIEWER_ROLES",
    "Accounts",
    "Admitted",
    "AnswerCounts",
    "AnswerFinding",
    "Attempt",
    "BodyRestorer",
    "Claimed",
    "Clock",
    "ConnectionEvent",
    "ConversationStore",
    "Conversing",
    "Delta",
    "Detector",
    "Detour",
    "DocumentReader",
    "Ending",
    "EventReading",
    "EvidenceStore",
    "Gate",
    "Headers",
    "Hold",
    "Holding",
    "Kept",
    "Meter",
    "Minimiser",
    "NativeAnswer",
    "OutboundRequest",
    "OwnedText",
    "Ownership",
    "Peer",
    "Policy",
    "ProviderAdapter",
    "Reach",
    "Record",
    "Refusal",
    "Refused",
    "Released",
    "RequestRow",
    "Resigner",
    "Restoration",
    "Reviewer",
    "Ruling",
    "Scanner",
    "SealedValue",
    "Standing",
    "Summariser",
    "TokenReader",
    "Told",
    "UseCase",
    "ValueVault",
    "VaultStore",
]
