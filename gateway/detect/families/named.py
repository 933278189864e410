"""What the families share whose values are named elsewhere: by a head of a column, a list of columns, a name behind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Final

from gateway.detect.families.assignment import Assignments
from gateway.detect.matcher import Trigger
from gateway.detect.scope import Scope
from gateway.detect.typelist import TypeRow

LEAST: Final = 6
"""Characters of a value in a cell."""


class NamedValues(ABC):
    """A family that reads a text from left to right, no part twice, and has what it reads judged as assigned values."""

    contextual = True
    triggers: ClassVar[tuple[Trigger, ...]]
    place: ClassVar[str]
    """The name by which `Scope.consumed` keeps how far it has read."""

    def __init__(self, assignments: Assignments) -> None:
        self._assignments = assignments
        self.described: Sequence[TypeRow] = assignments.described

    def find(self, scope: Scope, end: int) -> None:
        """See Family."""
        if end > scope.consumed.get(self.place, 0):
            self._read(scope, end)

    @abstractmethod
    def _read(self, scope: Scope, end: int) -> None:
        """Judge what the word that ends at `end` names, and note how far was read."""
