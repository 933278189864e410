"""Break-glass: rules lifted by a person for a short while, whatever layer they stand in.

It is an exception like any other (owner, reason, expiry; in every decision it touched), but does not come
from a bundle, so that no release of one is needed when something must go out now. What the mode decides stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway.errors import PolicyError
from gateway.policy.conditions import Conditions, RequestConditions
from gateway.policy.globs import MAX_WILDCARDS, matcher, wildcards
from gateway.policy.rule import RESERVED, PolicyException, Rule

SOURCE = "break-glass"
BREAK_GLASS = "policy.break_glass"


@dataclass(frozen=True, slots=True)
class Breakage:
    """Lifts rules. `rules` are globs over rule ids; an empty `project` or `principal` is all of them."""

    id: str
    owner: str
    reason: str
    begins: datetime
    expires: datetime
    rules: tuple[str, ...]
    project: str = ""
    principal: str = ""

    def check(self) -> None:
        """PolicyError `policy.invalid` where its rules cannot be matched."""
        for pattern in self.rules:
            if wildcards(pattern) > MAX_WILDCARDS:
                raise PolicyError("policy.invalid", f"more than {MAX_WILDCARDS} wildcards in one pattern")

    def lifts(self, rules: Sequence[Rule]) -> tuple[str, ...]:
        """The ids of the rules it lifts: of bundles alone."""
        named = matcher(self.rules)
        return tuple(rule.id for rule in rules if not rule.id.startswith(RESERVED) and named(rule.id))

    def exception(self, rules: Sequence[Rule]) -> PolicyException:
        """The exception that it is among these rules."""
        request = RequestConditions(
            principal=(self.principal,) if self.principal else (),
            project=(self.project,) if self.project else (),
        )
        when = Conditions(request=request)
        return PolicyException(
            self.id, self.owner, self.reason, self.expires, self.lifts(rules), when, SOURCE
        )
