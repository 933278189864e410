"""A gateway imports of mitmproxy what it uses, and mitmproxy stays whole for others in the same process."""

from __future__ import annotations

import subprocess
import sys


def _run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.strip()


def test_addons_that_are_not_used_are_not_imported() -> None:
    unused = ("flask", "ldap3", "jinja2", "mitmproxy.addons.clientplayback", "mitmproxy.addons.onboarding")
    shown = _run(f"import sys, gateway.proxy.master; print([n for n in {unused} if n in sys.modules])")
    assert shown == "[]"


def test_the_package_gives_all_addons_to_who_asks_for_them() -> None:
    program = (
        "import gateway.proxy.master\n"
        "from mitmproxy.addons import core, default_addons\n"
        "from mitmproxy import addons\n"
        "print(any(isinstance(a, core.Core) for a in default_addons()), len(addons.default_addons()) > 20)"
    )
    assert _run(program) == "True True"


def test_a_process_that_has_all_addons_keeps_them() -> None:
    program = (
        "import mitmproxy.addons as before\nimport gateway.proxy.master\nimport mitmproxy.addons as after\n"
        "print(before is after, len(after.default_addons()) > 20)"
    )
    assert _run(program) == "True True"
