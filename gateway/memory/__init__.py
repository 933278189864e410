"""What may enter a project's memory: one function, `guard`, and the shape of its answer (contract.md §11).

`wire` knows memory by the requests and tools that write and read it.
"""

from gateway.memory.guard import (
    ContaminationRisk,
    GuardDecision,
    GuardRules,
    MemoryGuardResult,
    guard,
)

__all__ = ["ContaminationRisk", "GuardDecision", "GuardRules", "MemoryGuardResult", "guard"]
