"""Policy bundles on disk: a folder beside the configuration, else the packaged one of that name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import gateway
from gateway.errors import ConfigError

_PREFIX: Final = "policies/"
_MAX_FILES: Final = 1024  # of one bundle
_SHIPPED: Final = re.compile(r"(examples/)?[a-z0-9][a-z0-9-]*")


def packaged_bundles() -> Path:
    """The folder of the bundles that are shipped: inside the wheel, or `policies/` of a checkout."""
    package = Path(gateway.__file__).resolve().parent
    installed = package / "_policies"
    return installed if installed.is_dir() else package.parent / "policies"


def find_bundle(name: str, base: Path) -> Path:
    """The folder of a bundle.

    Args:
        name: a path (relative to `base`), else `NAME` or `policies/NAME` of a packaged bundle, of which examples are
            called `examples/NAME`.
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
    if _SHIPPED.fullmatch(plain) and (packaged / "bundle.toml").is_file():
        return packaged
    raise FileNotFoundError(name)


def read_bundle(folder: Path) -> dict[str, bytes]:
    """Every TOML file of a bundle's folder by its relative name; ConfigError where one cannot be read."""
    files: dict[str, bytes] = {}
    try:
        for path in sorted(folder.rglob("*.toml")):
            files[path.relative_to(folder).as_posix()] = path.read_bytes()
    except OSError as error:
        raise ConfigError([f"policy.bundles: {folder} cannot be read ({error.strerror})"]) from None
    if len(files) > _MAX_FILES:
        raise ConfigError([f"policy.bundles: {folder} holds more than {_MAX_FILES} files"])
    return files
