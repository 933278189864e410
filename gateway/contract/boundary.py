"""Wire forms of the memory boundary, version 1 (contract §9.1).

What they mean is decided in `gateway.boundary`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from gateway.contract.record import Record, Wire
from gateway.contract.refusals import contract_error
from gateway.contract.scalars import U64, Instant, ProtocolReference

MEMORY_BOUNDARY_V1_SCHEMA_VERSION: Final = 1


class FactPrivacy(StrEnum):
    """Who may see a stored fact: its own project, projects that one links to, or all projects of the team."""

    PROJECT_ONLY = "project_only"
    LINKED_PROJECTS = "linked_projects"
    TEAM = "team"

    @classmethod
    def of_fact(cls, fact: Mapping[str, Any]) -> FactPrivacy:
        """The privacy of a stored fact; one from before the field existed is `project_only`.

        Raises ContractError(`unknown_value`) on anything that is no privacy: never a guess.
        """
        value = fact.get("privacy")
        if value is None:
            return cls.PROJECT_ONLY
        if isinstance(value, str) and value in set(cls):
            return cls(value)
        raise contract_error("unknown_value", "FactPrivacy")


class BoundaryPolicy(Record):
    """What may cross from project to project; every member has a default, and nothing crosses by default."""

    cross_project_search: bool = False
    cross_project_import: bool = False
    audit_cross_access: bool = True
    universal_gotchas_enabled: bool = True


class CrossProjectEventTypeV1(StrEnum):
    """How another project's memory was reached for."""

    SEARCH = "search"
    IMPORT = "import"
    RECALL = "recall"


class CrossProjectEventV1(Record):
    """One attempt to reach across projects, allowed or not; project hashes are opaque."""

    timestamp: Instant
    event_type: Wire[CrossProjectEventTypeV1]
    source_project_hash: ProtocolReference
    target_project_hash: ProtocolReference
    tool: ProtocolReference
    action: ProtocolReference
    facts_accessed: U64
    allowed: bool
    policy_reason: ProtocolReference
