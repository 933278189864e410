"""Detectors that a single pattern cannot express: one module each.

A family has `triggers` (expressions for the engine, bounded; only the end of a match is used), `described` rows for the
list of types, and `find(scope, end)`, called for each hit. To add one: write the module and name it in FAMILIES.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from gateway.context.findings import Category
from gateway.detect.families.assignment import Assignments
from gateway.detect.families.iban import Ibans
from gateway.detect.families.indirect import indirect
from gateway.detect.families.kubernetes import KubernetesSecrets
from gateway.detect.families.markup import Markup
from gateway.detect.families.mnemonic import Mnemonics
from gateway.detect.families.orders import Orders
from gateway.detect.families.pem import PrivateKeys
from gateway.detect.families.preceding import Preceding
from gateway.detect.families.statements import Statements
from gateway.detect.families.tables import Tables
from gateway.detect.families.uri import UriPasswords
from gateway.detect.matcher import Trigger
from gateway.detect.rule import RuleSet
from gateway.detect.scope import Scope
from gateway.detect.typelist import TypeRow


class Family(Protocol):
    """A detector with code of its own."""

    @property
    def triggers(self) -> Sequence[Trigger]:
        """Expressions for the engine."""
        ...

    @property
    def contextual(self) -> bool:
        """Whether it rests on the words around the datum, which a text taken apart by a guess has not."""
        ...

    @property
    def described(self) -> Sequence[TypeRow]:
        """Rows for the list of types."""
        ...

    def find(self, scope: Scope, end: int) -> None:
        """Add what stands at the hit that ends at `end` of the scope's text."""
        ...


def families(rules: RuleSet, categories: Collection[Category] = tuple(Category)) -> tuple[Family, ...]:
    """Those that find something of these categories, in a fixed order."""
    assignments = Assignments(rules.named)
    made: tuple[Family, ...] = (
        assignments,
        *indirect(assignments),
        Tables(assignments),
        Statements(assignments),
        Markup(assignments),
        Preceding(assignments),
        UriPasswords(),
        PrivateKeys(),
        KubernetesSecrets(),
        Mnemonics(),
        Ibans(),
        Orders(),
    )
    return tuple(family for family in made if any(row.category in categories for row in family.described))
