"""The use case: evaluate, admit, forward, observe.

Egress       the life of every request (ports.UseCase); knows ports only
Exchange     what is remembered of one admitted request until its lineage is written
Destination  provider, model and locality a request goes to
"""

from gateway.egress.use_case import Egress

__all__ = ["Egress"]
