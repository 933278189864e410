"""From bytes to decisions and back to bytes, without I/O.

evaluate      a generator: it yields the look-ups it needs and gets answers; the result says what may leave
Evaluation    objects with findings and decisions, the bytes that may leave, the values that were masked
Placeholder   a deterministic, typed token that stands for one value of one project
Restorer      turns the placeholders of one request back into values while its answer streams
"""

from gateway.classify.evaluate import Evaluation, evaluate

__all__ = ["Evaluation", "evaluate"]
