"""Runs the tests that bundles carry, in every mode each test names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.context.decisions import Decision
from gateway.policy.bundle import parse_bundle
from gateway.policy.conditions import MODES
from gateway.policy.decide import CompiledPolicy, load_policy
from gateway.policy.trial import Trial


@dataclass(frozen=True, slots=True)
class TrialResult:
    """How one test went in one mode; `problems` is empty where it passed."""

    bundle: str
    name: str
    mode: str
    problems: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether the decision was what the test expects."""
        return not self.problems


def run_trials(bundles: Sequence[Mapping[str, bytes]]) -> list[TrialResult]:
    """Run the tests of the last bundle under all of them: a layer is tested in the place where it will stand.

    Tests are run with enforcement on; a mode that a bundle is not made for fails the test that names it.

    Raises:
        PolicyError: the bundles do not load.
    """
    parsed = [parse_bundle(files) for files in bundles]
    known = [m for m in MODES if all(m in b.modes for b in parsed)]
    load_policy(bundles, mode=known[0] if known else "governed", enforcement="enforce")
    tested = parsed[-1]
    policies: dict[str, CompiledPolicy] = {}
    results = []
    for trial in tested.trials:
        for mode in trial.modes:
            if mode not in known:
                problem = (f"the bundle is not made for mode {mode}",)
                results.append(TrialResult(tested.name, trial.name, mode, problem))
                continue
            if mode not in policies:
                policies[mode] = load_policy(bundles, mode=mode, enforcement="enforce")
            results.append(TrialResult(tested.name, trial.name, mode, _run(policies[mode], trial)))
    return results


def _run(policy: CompiledPolicy, trial: Trial) -> tuple[str, ...]:
    decision = policy.decide(replace(trial.request, mode=policy.mode), trial.object)
    return tuple(_differences(trial, decision))


def _differences(trial: Trial, decision: Decision) -> list[str]:
    pairs: list[tuple[str, object, object]] = [("disposition", trial.disposition, decision.disposition)]
    if trial.reason_codes is not None:
        pairs.append(("reason_codes", trial.reason_codes, decision.reason_codes))
    if trial.mask is not None:
        pairs.append(("mask", sorted(trial.mask), sorted(decision.mask)))
    if trial.rules is not None:
        pairs.append(("rules", trial.rules, decision.rules))
    return [f"{what}: expected {_shown(w)}, got {_shown(g)}" for what, w, g in pairs if w != g]


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, list | tuple) else str(value)
