"""The configuration: `gateway.toml`, environment overrides and defaults, read once into a frozen tree.

Setting    one key of one section: its kind, its default as it would be written in the file, one line of help
Kind       how a value is read, what it must be, and how it is shown again without secrets
Config     the effective configuration; what the rest of the gateway is handed

One table (`settings.SECTIONS`) drives reading, defaults, `config show` and `docs/configuration.md`.
Unknown keys and wrong values are errors, reported all together with their paths (`ConfigError`, exit status
2).
"""

from gateway.config.bundles import find_bundle, read_bundle
from gateway.config.check import DEFAULT_PROJECT, unknown_name, warnings
from gateway.config.load import find, load, parse
from gateway.config.projects import Project
from gateway.config.rows import Setting, settings_of
from gateway.config.settings import (
    SECTIONS,
    Config,
    Hosts,
    Limits,
    Listen,
    Plugins,
    PolicySettings,
    Principal,
    State,
    Upstream,
)
from gateway.config.show import show
from gateway.config.values import Address, Enforcement, HostPattern, Mode, Unknown

__all__ = [
    "DEFAULT_PROJECT",
    "SECTIONS",
    "Address",
    "Config",
    "Enforcement",
    "HostPattern",
    "Hosts",
    "Limits",
    "Listen",
    "Mode",
    "Plugins",
    "PolicySettings",
    "Principal",
    "Project",
    "Setting",
    "State",
    "Unknown",
    "Upstream",
    "find",
    "find_bundle",
    "load",
    "parse",
    "read_bundle",
    "settings_of",
    "show",
    "unknown_name",
    "warnings",
]
