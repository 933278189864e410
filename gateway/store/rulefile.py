"""Detection rules of an organisation as a file named by its digest, so that nobody reads another one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.errors import SetupError
from gateway.files import private_folder, replace_file


def write_rules(folder: Path, data: bytes) -> Path:
    """Keep rules in `folder`, for the owner alone; the file's path. SetupError where it cannot be written."""
    path = folder / f"rules-{hashlib.sha256(data).hexdigest()}.json"
    try:
        private_folder(folder)
        if path.exists():
            return path
        replace_file(path, (data,))
    except OSError as error:
        hint = "the state folder must be writable, as detection rules of a bundle are kept in it"
        raise SetupError(
            "detector.rules", f"{folder} cannot be written: {error.strerror}", hint=hint
        ) from None
    return path


def read_rules(path: Path) -> list[Mapping[str, Any]]:
    """The rules in a file of `write_rules`; SetupError where it is gone, or not what its name says."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SetupError("detector.rules", f"{path} cannot be read: {error.strerror}") from None
    if path.name != f"rules-{hashlib.sha256(data).hexdigest()}.json":
        raise SetupError("detector.rules", f"{path} is not what it was when the gateway started")
    documents: list[Mapping[str, Any]] = json.loads(data)
    return documents
