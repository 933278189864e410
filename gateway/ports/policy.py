"""What rules say, and what cuts an object down as they ask. See gateway.ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from gateway.context.decisions import AnswerRules, Decision, ObjectFacts, RequestFacts
from gateway.context.findings import Edit


class Policy(Protocol):
    """The compiled rules of all layers."""

    id: str
    version: str
    digest: str  # sha256:... of the effective settings
    mode: str  # developer | governed | sovereign
    enforcement: str  # enforce | shadow
    answers: AnswerRules  # what happens to findings in what the model says
    reads_place: bool  # whether a rule asks where an object stands or how large it is

    def decide(self, request: RequestFacts, facts: ObjectFacts) -> Decision:
        """The combined decision of every rule; a rule that errors denies (`policy.rule_error`)."""
        ...

    def text(self, reason_code: str) -> str:
        """A sentence for people about a reason code; falls back to a general one."""
        ...


class Minimiser(Protocol):
    """Cuts a text down to parts of itself. Pure and deterministic: a resent text is cut at the same places."""

    id: str
    version: str

    def check(self, parameters: Mapping[str, str]) -> None:
        """Raises PolicyError `policy.invalid` for parameters that it does not take; asked when a policy is loaded."""
        ...

    def cuts(self, text: str, earlier: Sequence[str], parameters: Mapping[str, str]) -> Sequence[Edit]:
        """What to take out, and the mark in its place. `earlier` are texts that stand before it in the request.

        Cuts of several minimisers are united, so that one more never lets more out.
        """
        ...


class Summariser(Protocol):
    """Makes a local extract of a text. Pure and deterministic; no model is asked."""

    id: str
    version: str

    def check(self, parameters: Mapping[str, str]) -> None:
        """Raises PolicyError `policy.invalid` for parameters that it does not take; asked when a policy is loaded."""
        ...

    def summarise(self, text: str, parameters: Mapping[str, str]) -> str:
        """The extract: shape and counts, no values. What it says is scanned again before it leaves."""
        ...
