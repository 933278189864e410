"""Which detectors run, and where: the built-in one here and in its processes, every extra in one of its own."""

from __future__ import annotations

import os

from gateway.app import wiring
from gateway.config import Config
from gateway.errors import SetupError
from gateway.plugins import DETECTORS, Plugin, activate
from gateway.ports import Detector
from gateway.workers import ScanPool
from gateway.workers.extras import Extra, ExtraScans

BUILTIN = "builtin"


def extra_detectors(config: Config) -> list[Plugin]:
    """The detectors beside the built-in one; SetupError where that one is left out, or one is not installed."""
    names = config.plugins.detectors
    if BUILTIN not in names:
        hint = "put it first in [plugins] detectors; the others only add to it"
        raise SetupError("setup.plugin", "the built-in detector cannot be left out", hint=hint)
    return activate(DETECTORS, [name for name in names if name != BUILTIN])


def scanner_of(config: Config, detector: Detector) -> ScanPool | ExtraScans:
    """The Scanner port; `detector` is the built-in one as it was built for this process."""
    limits = config.limits
    extras = extra_detectors(config)
    first = ScanPool(
        detector,
        wiring.DETECTOR_FACTORY,
        arguments=wiring.detector_arguments(config),
        workers=limits.scan_workers or os.cpu_count() or 1,
        inline_bytes=limits.inline_scan_bytes,
        queue=limits.scan_queue,
    )
    if not extras:
        return first
    return ExtraScans(
        first,
        [Extra(plugin.name, ScanPool(None, plugin.factory, queue=limits.scan_queue)) for plugin in extras],
        deadline_us=limits.extra_deadline_ms * 1000,
        is_closed=str(limits.extra_failure) == "deny" or str(config.policy.mode) == "sovereign",
    )
