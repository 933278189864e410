"""What every test run shares: how far property tests look, and what tests are called."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# A shared machine can be slow at any moment: no test fails for that. CI looks at the same examples in every run, so
# that a change is judged by what it changes; elsewhere every run looks at new ones.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("dev", **_COMMON)
settings.register_profile("ci", derandomize=True, **_COMMON)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_make_parametrize_id(config: object, val: object, argname: str) -> str | None:
    """The name of a case made of bytes is that of its argument, numbered: compressed or signed bytes may hold a time
    or a random number, and workers that collect at different seconds must agree on what every test is called."""
    return argname if isinstance(val, bytes) else None
