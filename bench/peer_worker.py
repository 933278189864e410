"""One peer in a process of its own: run by the interpreter of the peer's environment, which has nothing of the gateway.

    python peer_worker.py NAME TEXTS.json

A line `low high` on standard input scans the texts `low..high`; the answer is one line of JSON: seconds by the wall's
clock and by the processor's over all threads and child processes, findings, and the most memory so far. The first line,
before any order, says that the peer is ready. What a peer itself prints goes nowhere.

To add a peer: a function here that makes its scan, and a row of `peers.PEERS`.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

type Scan = Callable[[Sequence[str]], int]
"""Scans texts and says how many findings there were."""


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _each(scan: Callable[[str], Iterable[object]]) -> Scan:
    """Text by text."""
    return lambda texts: sum(len(list(scan(text))) for text in texts)


def kingfisher() -> Scan:
    """MongoDB's SDK: the rules of Kingfisher over Vectorscan."""
    return _each(_module("kingfisher_sdk").Scanner().scan)


def betterleaks() -> Scan:
    """The Go engine as a library."""
    return _each(_module("betterleaks").scan_string)


def pybetterleaks() -> Scan:
    """Another binding, of an earlier engine."""
    scan = _module("pybetterleaks").scan_text
    return _each(lambda text: scan(text).findings)


def redact_secret() -> Scan:
    """Rust."""
    return _each(_module("redact_secret").scan)


def scrubbers() -> Scan:
    """Rust; it rewrites texts and lists no findings, so texts that changed are counted."""
    return _rewriting(_module("scrubbers").scrub_text)


def fastscrub() -> Scan:
    """C++; it rewrites texts and lists no findings, so texts that changed are counted."""
    return _rewriting(_module("fastscrub").scrub)


def _rewriting(rewrite: Callable[[str], str]) -> Scan:
    return lambda texts: sum(rewrite(text) != text for text in texts)


def cpex() -> Scan:
    """The Rust core of the secrets plugin of an MCP gateway."""
    scan = _module("cpex_secrets_detection.secrets_detection_rust").py_scan_container
    return _each(lambda text: scan(text, {})[2])


def classifinder() -> Scan:
    """Patterns in Python."""
    return _each(_module("classifinder_engine").scan)


def detect_secrets() -> Scan:
    """Its default plugins and filters, which look at files."""
    collection, settings = _module("detect_secrets").SecretsCollection, _module("detect_secrets.settings")

    def scan(texts: Sequence[str]) -> int:
        with tempfile.TemporaryDirectory() as folder, settings.default_settings():
            found = collection()
            for path in _files(Path(folder), texts):
                found.scan_file(str(path))
            return len(list(found))

    return scan


def llm_guard() -> Scan:
    """The secrets scanner alone: the package around it imports every other scanner, and torch with them."""
    found = importlib.util.find_spec("llm_guard")
    [root] = found.submodule_search_locations or [""] if found else [""]
    for name in ("llm_guard", "llm_guard.input_scanners"):
        bare = types.ModuleType(name)
        bare.__path__ = [str(Path(root).joinpath(*name.split(".")[1:]))]
        sys.modules[name] = bare
    scanner = _module("llm_guard.input_scanners.secrets").Secrets()
    return lambda texts: sum(not scanner.scan(text)[1] for text in texts)


def credsweeper() -> Scan:
    """Rules and a model (ONNX), all texts as one run."""
    made = _module("credsweeper.app").CredSweeper(log_level="FATAL")
    provider = _module("credsweeper.file_handler.string_content_provider").StringContentProvider
    manager = _module("credsweeper.credentials.credential_manager").CredentialManager

    def scan(texts: Sequence[str]) -> int:
        made.credential_manager = manager()
        made.scan([provider(text.split("\n")) for text in texts], None)
        made.post_processing(None)
        return len(made.credential_manager.get_credentials())

    return scan


def datafog() -> Scan:
    """Personal data by patterns."""
    scan = _module("datafog").scan
    return _each(lambda text: scan(text).entities)


def dlp_patterns() -> Scan:
    """Personal data and secrets by patterns."""
    scan = _module("dlp_patterns").scan
    return _each(
        lambda text: [f for level in vars(scan(text)).values() if isinstance(level, list) for f in level]
    )


def presidio() -> Scan:
    """Its English recognizers with a language engine that does nothing, as no model is at hand."""
    nlp = _module("presidio_analyzer.nlp_engine")
    nothing = nlp.NlpArtifacts([], [], [], [], None, "en")
    answers: dict[str, Callable[..., object]] = {
        "get_supported_languages": lambda _: ["en"],
        "get_supported_entities": lambda _: [],
        "is_loaded": lambda _: True,
        "load": lambda _: None,
        "is_punct": lambda *_: False,
        "is_stopword": lambda *_: False,
        "process_text": lambda *_: nothing,
        "process_batch": lambda _, texts, *__: ((text, nothing) for text in texts),
    }
    engine = type("Nothing", (nlp.NlpEngine,), answers)()
    analyzer = _module("presidio_analyzer").AnalyzerEngine(nlp_engine=engine, supported_languages=["en"])
    return _each(lambda text: analyzer.analyze(text, language="en"))


def gitleaks() -> Scan:
    """The program over a folder of files, its start included."""
    return _program(
        "gitleaks", "dir", "{}", "--no-banner", "-l", "fatal", "-f", "json", "-r", "-", "--exit-code", "0"
    )


def kingfisher_program() -> Scan:
    """The program over a folder of files, its start included."""
    return _program(
        "kingfisher", "scan", "{}", "--no-validate", "--no-update-check", "--format", "json", "-q"
    )


def trufflehog3() -> Scan:
    """The program over a folder of files, its start included."""
    return _program("trufflehog3", "--no-history", "-z", "-p", "1", "--format", "JSON", "{}")


def _program(name: str, *arguments: str) -> Scan:
    program = Path(sys.executable).parent / name

    def scan(texts: Sequence[str]) -> int:
        with tempfile.TemporaryDirectory() as folder:
            _files(Path(folder), texts)
            command = [str(program), *(folder if part == "{}" else part for part in arguments)]
            # Some say by their status that there were findings.
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        found = json.loads(
            done.stdout.splitlines()[0] if done.stdout.startswith(b'{"') else done.stdout or "[]"
        )
        return len(found["findings"] if isinstance(found, dict) else found)

    return scan


def _files(folder: Path, texts: Sequence[str]) -> list[Path]:
    paths = [folder / f"{number}.txt" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def _memory() -> float:
    """The most of this process since it began, and of its children, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines() if Path("/proc/self/status").exists() else []
    own = next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)
    return max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024


def _clocks() -> tuple[float, float]:
    used = os.times()
    return time.perf_counter(), used.user + used.system + used.children_user + used.children_system


def main() -> None:
    """Answer orders until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    scan: Scan = globals()[sys.argv[1]]()
    texts = json.loads(Path(sys.argv[2]).read_text("utf-8"))
    print(json.dumps({"ready": True}), file=answers)
    for line in sys.stdin:
        low, high = map(int, line.split())
        began = _clocks()
        found = scan(texts[low:high])
        wall, cpu = (after - before for after, before in zip(_clocks(), began, strict=True))
        print(json.dumps({"wall": wall, "cpu": cpu, "found": found, "memory": _memory()}), file=answers)


if __name__ == "__main__":
    main()
