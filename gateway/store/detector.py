"""The built-in detector with what is on disk for it. Scanning processes build theirs here, so it imports little."""

from __future__ import annotations

from pathlib import Path

from gateway.detect.compiled import nothing_compiled
from gateway.detect.engine import Engine
from gateway.detect.engine import build as build_engine
from gateway.errors import SetupError
from gateway.store.compiled import CompiledFiles
from gateway.store.known import KnownFile, values_key
from gateway.store.rulefile import read_rules


def build(cache: str = "", known: str = "", keys: str = "", rules: str = "") -> Engine:
    """The detector, started from the databases in the folder `cache`; compiled and kept there where none fit.

    `known` is the file of known values, looked up where it exists with the key in the folder `keys`; `rules` the
    file of an organisation's own rules (gateway.store.rulefile), if it has any.

    Raises SetupError where the detector fails its own test.
    """
    files = CompiledFiles(Path(cache)) if cache else None
    values = KnownFile(Path(known), values_key(Path(keys))) if known and Path(known).exists() else None
    extra = read_rules(Path(rules)) if rules else ()
    engine = build_engine(extra=extra, compiled=files.read if files else nothing_compiled, known=values)
    if engine.engine_name == "hyperscan":  # tested as it was built
        if files is not None and not engine.from_compiled:
            files.keep(engine.rules_revision, engine.dump())
    elif problems := engine.self_test():
        raise SetupError("detector.self_test", f"{len(problems)} detection rules fail their own test")
    return engine
