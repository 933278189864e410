"""Where a policy bundle lies: a folder beside the configuration, else the packaged one of that name."""

from __future__ import annotations

from pathlib import Path

import gateway

_PREFIX = "policies/"


def packaged_bundles() -> Path:
    """The folder of the bundles that are shipped: inside the wheel, or `policies/` of a checkout."""
    package = Path(gateway.__file__).resolve().parent
    installed = package / "_policies"
    return installed if installed.is_dir() else package.parent / "policies"


def find_bundle(name: str, base: Path) -> Path:
    """The folder of a bundle.

    Args:
        name: a path (relative to `base`), else `NAME` or `policies/NAME` of a packaged bundle.
        base: the folder of the configuration file.

    Raises:
        FileNotFoundError: there is no such folder. A path that is neither `policies/NAME` nor a plain name
            never falls back, so that a mistyped path is an error and not another policy.
    """
    beside = base / name
    if beside.is_dir():
        return beside
    plain = name.removeprefix(_PREFIX).removesuffix("/")
    packaged = packaged_bundles() / plain
    if plain and "/" not in plain and not plain.startswith(".") and packaged.is_dir():
        return packaged
    raise FileNotFoundError(name)
