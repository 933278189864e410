"""The built-in detector with what is on disk for it. Scanning processes build theirs here, so it imports little."""

from __future__ import annotations

from pathlib import Path

from gateway.detect.engine import Engine
from gateway.detect.engine import build as build_engine
from gateway.errors import SetupError
from gateway.store.compiled import CompiledFiles


def build(cache: str = "") -> Engine:
    """The detector, started from the databases in the folder `cache`; compiled and kept there where none fit.

    Raises SetupError where the detector fails its own test.
    """
    files = CompiledFiles(Path(cache)) if cache else None
    engine = build_engine(compiled=files.read) if files else build_engine()
    if engine.engine_name == "hyperscan":  # tested as it was built
        if files is not None and not engine.from_compiled:
            files.keep(engine.revision, engine.dump())
    elif problems := engine.self_test():
        raise SetupError("detector.self_test", f"{len(problems)} detection rules fail their own test")
    return engine
