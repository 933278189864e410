"""mitmproxy's addons one by one: its package imports all forty of them, and a web framework, an LDAP client and QUIC.

`import mitmproxy.addons.core` runs the package first. Here the package is put in place without running it, so that only
the three addons that are used are imported; whoever asks it for `default_addons` gets them all the same.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any

import mitmproxy

_PACKAGE = "mitmproxy.addons"


def prepare() -> None:
    """Put the package in place; nothing happens where it is imported already, as in somebody else's mitmdump."""
    if _PACKAGE in sys.modules:
        return
    spec = PathFinder.find_spec(_PACKAGE, mitmproxy.__path__)
    loader = spec.loader if spec is not None else None
    if spec is None or loader is None:
        return  # and the import that follows says what is missing
    package: Any = module_from_spec(spec)

    def on_demand(name: str) -> Any:
        if name != "default_addons":  # a submodule that is not imported yet
            raise AttributeError(name)
        loader.exec_module(package)
        return vars(package)[name]

    package.__getattr__ = on_demand
    sys.modules[_PACKAGE] = package
    mitmproxy.addons = package  # type: ignore[attr-defined]  # as an import would
