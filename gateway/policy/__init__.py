"""The rules of an organisation: bundles in, decisions out.

Bundle         a folder of TOML files: rules, roles, texts, tests
Rule           when, unless, then; adding one makes decisions stricter or leaves them as they are
Exception      the only way to loosen: owner, reason, expiry; named in every decision it touched
Layers         several bundles, of which later ones can only tighten earlier ones
CompiledPolicy the Policy port: facts of one object in, one decision out

Pure: whoever reads folders, clocks or signatures hands their content in.
"""

from gateway.policy.breaking import Breakage
from gateway.policy.bundle import Bundle, parse_bundle
from gateway.policy.decide import CompiledPolicy, load_policy
from gateway.policy.explain import Explanation, explain, render
from gateway.policy.selftest import TrialResult, run_trials

__all__ = [
    "Breakage",
    "Bundle",
    "CompiledPolicy",
    "Explanation",
    "TrialResult",
    "explain",
    "load_policy",
    "parse_bundle",
    "render",
    "run_trials",
]
