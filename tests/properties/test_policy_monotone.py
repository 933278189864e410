"""Adding a rule, a layer or a finding never loosens, and no order matters.

"Not looser" is about what may leave: the rank of the disposition, the types that are masked, the transformations that
are required and the destinations that are left.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, reject, settings
from hypothesis import strategies as st

from gateway.context.decisions import Decision, FindingFacts, ObjectFacts, RequestFacts, combine
from gateway.context.objects import ObjectKind
from gateway.errors import PolicyError
from gateway.policy import load_policy
from gateway.policy.compiled import Scope
from gateway.policy.decide import settle

MODES = ("developer", "governed", "sovereign")
# Few values each: a law is only tested where rules and facts meet, and in a large space they hardly ever do.
TYPES = ("jwt", "email", "cross_project")
CATEGORIES = ("secret", "pii", "policy")
ROLES = ("text", "structural", "thinking")

kinds = st.sampled_from((ObjectKind.TEXT, ObjectKind.TOOL_RESULT, ObjectKind.MEDIA))
findings = st.builds(
    FindingFacts,
    st.sampled_from(TYPES),
    st.sampled_from(CATEGORIES),
    st.sampled_from(("low", "medium", "high")),
    st.sampled_from((0, 300, 900)),
    st.integers(1, 4),
    st.sampled_from(ROLES),
)
objects = st.builds(
    ObjectFacts,
    pointer=st.sampled_from(("", "/messages/0", "/metadata/user_id")),
    kind=kinds,
    channel=st.sampled_from(("user", "tool", "system")),
    bytes=st.sampled_from((0, 100, 10_000)),
    findings=st.lists(findings, max_size=4).map(tuple),
    # Mostly complete and unmarked: what the mode refuses anyway shows nothing about the rules.
    coverage=st.sampled_from(("complete",) * 7 + ("partial", "unsupported", "failed", "not_required")),
    classification=st.sampled_from(("",) * 5 + ("confidential", "restricted")),
    provenance=st.sampled_from(("", "own", "foreign")),
    rewritable=st.booleans(),
)
requests = st.builds(
    RequestFacts,
    project=st.sampled_from(("a", "b")),
    roles=st.sampled_from(((), ("admin",))),
    provider=st.sampled_from(("openai", "ollama")),
    locality=st.sampled_from(("local", "remote", "unknown")),
    time=st.sampled_from(("2027-01-15T12:00:00Z", "2027-01-16T03:00:00Z", "")),
)

finding_conditions = st.fixed_dictionaries(
    {},
    optional={
        "type": st.lists(st.sampled_from((*TYPES, "*", "e*")), min_size=1, max_size=2),
        "not_type": st.sampled_from(TYPES),
        "category": st.lists(st.sampled_from(CATEGORIES), min_size=1, max_size=2),
        "confidence_min": st.sampled_from((0, 300, 900)),
        "severity_min": st.sampled_from(("low", "high")),
        "count_min": st.sampled_from((1, 3)),
        "leaf_role": st.sampled_from(ROLES),
    },
)
# Most rules have one or two conditions, as people write them.
few_conditions: st.SearchStrategy[dict[str, object]] = st.sampled_from(
    (
        *({"category": c} for c in CATEGORIES),
        *({"type": t} for t in TYPES),
        {"category": "pii", "count_min": 3},
        {"confidence_min": 300},
        {"not_type": "jwt", "severity_min": "medium"},
    )
)
other_conditions = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.lists(kinds.map(str), min_size=1, max_size=3),
        "provenance": st.sampled_from(("own", "foreign", "unknown")),
        "rewritable": st.booleans(),
        "project": st.sampled_from(("a", "b*")),
        "locality": st.sampled_from(("local", "remote")),
        "role": st.just("admin"),
        "mode": st.sampled_from(MODES),
    },
)
outcomes = st.sampled_from(
    (
        'disposition = "allow", reason_codes = ["x.flagged"]',
        'disposition = "allow", destinations = ["openai"]',
        'disposition = "allow", destinations = ["local"]',
        'disposition = "allow_minimized", reason_codes = ["x.min"], transformations = ["selection"]',
        'disposition = "allow_redacted", reason_codes = ["x.red"], mask = { category = "pii" }',
        'disposition = "allow_summary_only", reason_codes = ["x.sum"], mask = { type = "j*" }',
        'disposition = "allow_local_model_only", reason_codes = ["x.loc"]',
        'disposition = "allow_with_approval", reason_codes = ["x.app"]',
        'disposition = "quarantine", reason_codes = ["x.qua"]',
        'disposition = "deny", reason_codes = ["x.den"]',
    )
)


@st.composite
def rules(draw: st.DrawFn) -> str:
    """A rule without its id."""
    narrow = draw(st.booleans())
    when: dict[str, object] = {**draw(finding_conditions), **draw(other_conditions)}
    if not narrow:
        when = dict(draw(few_conditions))
    unless = draw(other_conditions) if draw(st.booleans()) else {}
    # What the default bundle lives on: mask whatever made the rule speak.
    masks_its_match = not narrow and draw(st.booleans())
    then = 'disposition = "allow_redacted", reason_codes = ["x.red"]' if masks_its_match else draw(outcomes)
    text = f'why = "w"\nwhen = {_toml(when)}\nthen = {{ {then} }}\n'
    return text + (f"unless = {_toml(unless)}\n" if unless else "")


def _toml(table: dict[str, object]) -> str:
    return "{ " + ", ".join(f"{k} = {json.dumps(v)}" for k, v in table.items()) + " }"


def _bundle(name: str, found: Sequence[str]) -> dict[str, bytes]:
    text = "".join(f'[[rule]]\nid = "{name}.r{n}"\n{rule}' for n, rule in enumerate(found))
    manifest = f'name = "{name}"\nversion = "1.0.0"\ndescription = "d"\n'
    return {"bundle.toml": manifest.encode(), "rules/r.toml": text.encode()}


def _decide(
    bundles: Sequence[dict[str, bytes]], mode: str, request: RequestFacts, facts: ObjectFacts
) -> Decision:
    """The decision; what could only loosen an earlier layer is an error at load, and no case of these laws."""
    try:
        policy = load_policy(bundles, mode=mode, enforcement="enforce")
    except PolicyError as error:
        if not all("a later layer cannot loosen" in problem for problem in error.problems):
            raise
        reject()
    return policy.decide(request, facts)


def assert_not_looser(before: Decision, after: Decision) -> None:
    assert after.disposition.order >= before.disposition.order
    assert after.mask >= before.mask
    assert after.transformations >= before.transformations
    if before.destinations is not None:
        assert after.destinations is not None
        assert after.destinations <= before.destinations


@settings(max_examples=120, deadline=None)
@given(st.lists(rules(), max_size=4), rules(), st.sampled_from(MODES), requests, objects)
def test_one_more_rule_never_loosens(
    found: list[str], more: str, mode: str, request: RequestFacts, facts: ObjectFacts
) -> None:
    before = _decide([_bundle("org", found)], mode, request, facts)
    assert_not_looser(before, _decide([_bundle("org", [*found, more])], mode, request, facts))


@settings(max_examples=80, deadline=None)
@given(
    st.lists(rules(), max_size=4),
    st.lists(rules(), max_size=3),
    st.sampled_from(MODES),
    requests,
    objects,
)
def test_one_more_layer_never_loosens(
    found: list[str], layer: list[str], mode: str, request: RequestFacts, facts: ObjectFacts
) -> None:
    org, team = _bundle("org", found), _bundle("team", layer)
    before = _decide([org], mode, request, facts)
    assert_not_looser(before, _decide([org, team], mode, request, facts))


@settings(max_examples=400, deadline=None)
@given(st.lists(rules(), min_size=1, max_size=3), st.sampled_from(MODES), requests, objects, findings)
def test_one_more_finding_never_loosens(
    found: list[str], mode: str, request: RequestFacts, facts: ObjectFacts, more: FindingFacts
) -> None:
    policy = load_policy([_bundle("org", found)], mode=mode, enforcement="enforce")
    before = policy.decide(request, facts)
    after = policy.decide(request, replace(facts, findings=(*facts.findings, more)))
    assert_not_looser(before, after)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.lists(rules(), min_size=2, max_size=5), requests, objects)
def test_the_order_of_rules_layers_and_findings_does_not_matter(
    data: st.DataObject, found: list[str], request: RequestFacts, facts: ObjectFacts
) -> None:
    named = [f'[[rule]]\nid = "r.{n}"\n{rule}' for n, rule in enumerate(found)]
    manifest = b'name = "NAME"\nversion = "1.0.0"\ndescription = "d"\n'

    def layer(name: str, part: Sequence[str]) -> dict[str, bytes]:
        return {
            "bundle.toml": manifest.replace(b"NAME", name.encode()),
            "rules/r.toml": "".join(part).encode(),
        }

    plain = _decide([layer("org", named)], "governed", request, facts)
    shuffled = data.draw(st.permutations(named))
    cut = data.draw(st.integers(0, len(named)))
    turned = replace(facts, findings=tuple(data.draw(st.permutations(facts.findings))))
    assert plain == _decide(
        [layer("org", shuffled[:cut]), layer("team", shuffled[cut:])], "governed", request, turned
    )


@settings(max_examples=80, deadline=None)
@given(st.lists(rules(), max_size=5), requests, objects)
def test_shadow_lets_everything_out_and_hides_nothing(
    found: list[str], request: RequestFacts, facts: ObjectFacts
) -> None:
    bundle = _bundle("org", found)
    real = load_policy([bundle], mode="governed", enforcement="enforce").decide(request, facts)
    shadow = load_policy([bundle], mode="governed", enforcement="shadow").decide(request, facts)
    assert shadow.disposition == "allow"
    if real.disposition == "allow":
        assert shadow == real
    else:
        assert shadow.mask == frozenset()
        assert set(real.reason_codes) < set(shadow.shadow)
        assert shadow.rules == real.rules


@settings(max_examples=60, deadline=None)
@given(st.lists(rules(), max_size=5), st.lists(st.tuples(requests, objects), min_size=2, max_size=6))
def test_what_was_decided_before_does_not_matter(
    found: list[str], asked: list[tuple[RequestFacts, ObjectFacts]]
) -> None:
    """Memory and index only save work: the answer is that of asking every rule afresh."""
    warm = load_policy([_bundle("org", found)], mode="governed", enforcement="enforce")
    for request, facts in [*asked, *reversed(asked)]:
        said = (rule.judge(Scope(request), facts).decision for rule in warm.rules)
        assert warm.decide(request, facts) == settle(combine(*(d for d in said if d)), request)
