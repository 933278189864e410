"""Fuzz the detector with atheris, coverage-guided: no exception, spans inside the text, views map back, time is bounded.

    python -m venv ~/.cache/egress-fuzz && ~/.cache/egress-fuzz/bin/pip install atheris -r requirements.lock
    ~/.cache/egress-fuzz/bin/python tests/fuzz/fuzz_scan.py -max_len=65536 -max_total_time=600 CORPUS

atheris is no dependency: it has builds for some interpreters and systems only. Without it the inputs named on the command
line are run once each, which is how a finding is reproduced. `tests/properties/test_detect.py` holds the same laws on
texts that hypothesis makes, in every run of the tests.
"""

from __future__ import annotations

import importlib
import sys
import time
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Final

from gateway.context.findings import Category, ScanItem, ScanResult
from gateway.detect.engine import Engine, build

SECONDS_FREE: Final = 1.0
SECONDS_A_MEGABYTE: Final = (
    4.0  # four times what the bench allows: this machine may be busy, and coverage costs
)
_NAMES: Final = ("", "password", "apiKey", "content", "ssn")
_CHANNELS: Final = ("user", "tool", "system", "assistant")


@cache
def detector() -> Engine:
    """The built-in detector, once."""
    return build()


def item_of(data: bytes) -> ScanItem:
    """An input as a scan item: two bytes choose name, channel and encoding, the rest is text."""
    head, body = data[:2].ljust(2, b"\0"), data[2:]
    encoding = "utf-16-le" if head[0] & 0x80 else "utf-8"
    text = body.decode(
        encoding, "replace" if head[1] & 0x80 else "surrogateescape" if encoding == "utf-8" else "replace"
    )
    return ScanItem(text, _NAMES[head[0] % len(_NAMES)], _CHANNELS[head[1] % len(_CHANNELS)])


def check(item: ScanItem, result: ScanResult) -> None:
    """Raise AssertionError where a law of detection is broken; the message holds no text."""
    last = 0
    for finding in result.findings:
        if not 0 <= finding.start < finding.end <= len(item.text):
            raise AssertionError(f"{finding} is not inside a text of {len(item.text)} characters")
        if finding.category is not Category.PROMPT_INJECTION:
            if finding.start < last:
                raise AssertionError(f"{finding} overlaps the one before it")
            last = finding.end
        if finding.value == item.text[finding.start : finding.end]:
            raise AssertionError(f"{finding} has a decoded value that stands in the text as it is")
    if result.complete == bool(result.reason):
        raise AssertionError("a result is complete without a reason, or has one")


def one_input(data: bytes) -> None:
    """Scan one input and check the laws and the time."""
    item, engine = item_of(data), detector()
    began = time.thread_time()
    [result] = engine.scan([item])
    took = time.thread_time() - began
    check(item, result)
    if took > SECONDS_FREE + SECONDS_A_MEGABYTE * len(item.text) / 1e6:
        raise AssertionError(f"{took:.1f} s for {len(item.text)} characters")


def _atheris() -> ModuleType | None:
    try:
        return importlib.import_module("atheris")
    except ImportError:
        return None


def main(arguments: list[str]) -> None:
    """Fuzz, or run the inputs named once each where there is no atheris."""
    atheris = _atheris()
    if atheris is None:
        inputs = [Path(name) for name in arguments[1:] if not name.startswith("-")]
        files = [file for path in inputs for file in (sorted(path.iterdir()) if path.is_dir() else [path])]
        for file in files:
            one_input(file.read_bytes())
        print(f"atheris is not installed: {len(files)} inputs run once")
        return
    detector()
    atheris.instrument_all()
    atheris.Setup(arguments, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv)
