"""The detection rules that an organisation's bundles bring, and how scanning processes get them.

They are read once, at the start: a scanning process that is replaced must have the very rules of the one before it, so
it reads what was checked then, from a file named by its digest, and not the bundle.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gateway.config import Config, read_bundle
from gateway.errors import ConfigError, PolicyError
from gateway.policy import parse_bundle
from gateway.store.rulefile import write_rules

type Documents = list[Mapping[str, Any]]


def own_rules(folders: Sequence[Path]) -> Documents:
    """The documents under `detectors/` of these bundles, in their order; ConfigError where one is not valid."""
    documents: Documents = []
    for folder in folders:
        files = read_bundle(folder)
        if any(name.startswith("detectors/") for name in files):
            try:
                documents += parse_bundle(files).detectors
            except PolicyError as error:
                raise ConfigError(error.problems or [str(error)]) from None
    if documents and (problems := check_rules(documents)):
        raise ConfigError(problems)
    return documents


def check_rules(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every problem of detection rules that come beside the built-in ones."""
    from gateway.detect.own import problems_of  # noqa: PLC0415 - the engine takes time to import that not all need

    return [f"detectors: {problem}" for problem in problems_of(documents)]


def slow_rules(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """What such rules cost in speed; empty where nothing."""
    from gateway.detect import own  # noqa: PLC0415 - see check_rules

    return [f"detectors: {told}" for told in own.slow_rules(documents)]


def rules_file(config: Config) -> str:
    """The file that scanning processes read the organisation's rules from; empty where there are none."""
    documents = own_rules(config.policy.folders)
    if not documents:
        return ""
    data = json.dumps(documents, sort_keys=True, separators=(",", ":")).encode()
    return str(write_rules(config.state.dir / "cache", data))
