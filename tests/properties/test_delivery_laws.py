"""On the bytes that leave: one more rule, layer or finding never lets more of a request out, and order never matters.

Bodies are made of words that occur once, so that what leaves is the set of words found in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import example, given, reject, settings
from hypothesis import strategies as st

from gateway.classify.evaluate import Evaluation
from gateway.classify.objects import ContextObject
from gateway.context.findings import Category, Finding, ScanItem, ScanResult, Severity
from gateway.contract import ContextDispositionV1
from gateway.errors import PolicyError
from gateway.policy import CompiledPolicy, load_policy
from tests.support.detector import TinyDetector
from tests.support.evaluation import Session, bundle, bundle_of

WORD = re.compile(r"w[0-9]{3}x")
MAIL = "bob@corp.org"
PASSWORD = "Nvrm-4711-kRt"  # found by its name alone, and then everywhere
_THEN = (
    'disposition = "allow", reason_codes = ["x.flagged"]',
    'disposition = "allow_redacted", reason_codes = ["x.red"], mask = { category = "pii" }',
    'disposition = "allow_local_model_only", reason_codes = ["x.loc"]',
    'disposition = "allow_with_approval", reason_codes = ["x.app"]',
    'disposition = "quarantine", reason_codes = ["x.qua"]',
    'disposition = "quarantine", reason_codes = ["x.qua"], parameters = { stub = "refuse" }',
    'disposition = "deny", reason_codes = ["x.den"]',
    *(
        f'disposition = "allow_minimized", reason_codes = ["x.min"], transformations = ["selection"], parameters = {{ {p} }}'
        for p in (
            'minimiser = "head_tail", head_lines = 1, tail_lines = 1',
            'minimiser = "head_tail", head_lines = 3, tail_lines = 0, line_chars = 8',
            'minimiser = "match_lines", pattern = "[02468]x", before = 0, after = 1',
            'minimiser = "deduplicate", min_lines = 2',
            'minimiser = "drop_fields", fields = "secret,log"',
        )
    ),
    'disposition = "allow_summary_only", reason_codes = ["x.sum"]',
    'disposition = "allow_summary_only", reason_codes = ["x.sum"], parameters = { summariser = "json_schema" }',
    'disposition = "allow_summary_only", reason_codes = ["x.sum"], parameters = { summariser = "log_templates" }',
)
_WHEN = (
    'kind = "tool_result"',
    'kind = ["text", "tool_result"]',
    'kind = "text", channel = "user"',
    'kind = "tool_call"',
    'category = "pii"',
    'kind = "tool_result", category = "pii"',
)


def _rule(when: str, then: str) -> str:
    return f"when = {{ {when} }}\nthen = {{ {then} }}"


# Half of them cut: laws about what several minimisers leave need rules that meet in one object.
rules = st.one_of(
    st.builds(_rule, st.sampled_from(_WHEN), st.sampled_from(_THEN)),
    st.builds(_rule, st.sampled_from(_WHEN[:2]), st.sampled_from([t for t in _THEN if "minimiser" in t])),
)


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    """A conversation with text, a call and a result, in words of which none occurs twice."""
    count = iter(range(1000))

    def word() -> str:
        return f"w{next(count):03}x"

    def line() -> str:
        return f"{word()} {draw(st.sampled_from((MAIL, word(), PASSWORD, 'password=' + PASSWORD)))}"

    def text() -> str:
        lines = [line() for _ in range(draw(st.integers(1, 6)))]
        shape = draw(st.sampled_from(("plain", "json", "parts")))
        if shape == "json":
            return json.dumps({"log": lines, "rest": {"secret": word(), "more": [line()]}})
        return "\n".join(lines) + "\n"

    parts = [{"type": "text", "text": text()}, {"type": "text", "text": text()}]
    result = {"type": "tool_result", "tool_use_id": "t", "content": draw(st.sampled_from((text(), parts)))}
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": text(), "n": 1}}
    return {
        "model": "m",
        "messages": [
            {"role": "user", "content": text()},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result, {"type": "text", "text": text()}]},
        ],
    }


def delivered(session: Session, body: dict[str, Any]) -> bytes:
    return session.send(body).body or b""


def words(data: bytes) -> set[str]:
    return set(WORD.findall(data.decode()))


def assert_no_more_out(before: Evaluation, after: Evaluation) -> None:
    """Nothing leaves that did not before; nor what was held, where all was held for it and now stays behind alone."""
    first, second = before.body or b"", after.body or b""
    if not first:
        held = [leaf.text for item in before.objects if _holds(item) for leaf in item.leaves or ()]
        assert held or not second
        assert not words(second) & words("".join(held).encode())
        return
    assert words(second) <= words(first)
    for value in (MAIL, PASSWORD):
        assert second.count(value.encode()) <= first.count(value.encode())


def _holds(item: ContextObject) -> bool:
    """Whether a request waits for what becomes of this object, or is refused for it."""
    return item.decision.disposition not in {
        ContextDispositionV1.ALLOW,
        ContextDispositionV1.ALLOW_REDACTED,
        ContextDispositionV1.ALLOW_MINIMIZED,
        ContextDispositionV1.ALLOW_SUMMARY_ONLY,
    }


def loaded(bundles: Sequence[dict[str, bytes]]) -> CompiledPolicy:
    """The policy of these bundles; what could only loosen an earlier one is an error at load, and no case of these laws."""
    try:
        return load_policy(bundles, mode="governed", enforcement="enforce")
    except PolicyError as error:
        if not all("a later layer cannot loosen" in problem for problem in error.problems):
            raise
        reject()


def compiled(*found: str) -> CompiledPolicy:
    """These rules over the default bundle."""
    return loaded([bundle(), bundle_of(found, "layer")])


APPROVED = _rule('kind = "tool_result"', 'disposition = "allow_with_approval", reason_codes = ["x.app"]')
HELD_BACK = _rule('kind = "tool_result"', 'disposition = "quarantine", reason_codes = ["x.qua"]')
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "w001x bob@corp.org"}
ONE_RESULT = {
    "model": "m",
    "messages": [{"role": "user", "content": [{"type": "text", "text": "w000x"}, RESULT]}],
}


@settings(max_examples=50, deadline=None)
@given(st.lists(rules, max_size=3), rules, bodies())
@example([APPROVED], HELD_BACK, ONE_RESULT)  # all waited for the result; now it alone stays behind
def test_one_more_rule_lets_no_more_out(found: list[str], more: str, body: dict[str, Any]) -> None:
    before = Session(rules=compiled(*found)).send(body)
    assert_no_more_out(before, Session(rules=compiled(*found, more)).send(body))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(rules, max_size=2),
    st.lists(rules, min_size=1, max_size=2),
    st.sampled_from(
        ["", 'layer = "run"', 'layer = "project"\nfor = ["acme"]', 'layer = "team"\nfor = ["nobody"]']
    ),
    bodies(),
)
def test_one_more_layer_lets_no_more_out(
    found: list[str], more: list[str], layer: str, body: dict[str, Any]
) -> None:
    bundles = [bundle(), bundle_of(found, "one", "")]
    stricter = loaded([*bundles, bundle_of(more, "two", layer)])
    before = loaded(bundles)
    out = Session(rules=before).send(body)
    assert_no_more_out(out, Session(rules=stricter).send(body))
    if "nobody" in layer:
        assert delivered(Session(rules=stricter), body) == (out.body or b"")


@dataclass
class OneMore(TinyDetector):
    """Finds one word more than before."""

    word: str = ""

    def scan(self, items: Sequence[ScanItem]) -> list[ScanResult]:
        return [
            ScanResult((*result.findings, *self._more(item.text)))
            for item, result in zip(items, super().scan(items), strict=True)
        ]

    def _more(self, text: str) -> list[Finding]:
        at = text.find(self.word)
        if at < 0:
            return []
        span = (at, at + len(self.word))
        return [Finding("email", Category.PII, Severity.MEDIUM, 900, *span, "more")]


@settings(max_examples=40, deadline=None)
@given(st.lists(rules, min_size=1, max_size=3), bodies(), st.integers(0, 12))
def test_one_more_finding_lets_no_more_out(found: list[str], body: dict[str, Any], which: int) -> None:
    policy = compiled(*found)
    before = Session(rules=policy).send(body)
    after = Session(rules=policy, detector=OneMore(word=f"w{which:03}x")).send(body)
    assert_no_more_out(before, after)


@settings(max_examples=40, deadline=None)
@given(st.data(), st.lists(rules, min_size=2, max_size=4), bodies())
def test_the_order_of_rules_changes_no_byte(
    data: st.DataObject, found: list[str], body: dict[str, Any]
) -> None:
    shuffled = data.draw(st.permutations(found))
    assert delivered(Session(rules=compiled(*found)), body) == delivered(
        Session(rules=compiled(*shuffled)), body
    )


@settings(max_examples=30, deadline=None)
@given(st.lists(rules, max_size=3), bodies())
def test_a_resend_leaves_with_the_same_prefix(found: list[str], body: dict[str, Any]) -> None:
    session = Session(rules=compiled(*found))
    first = delivered(session, body)
    following = {**body, "messages": [*body["messages"], {"role": "assistant", "content": "ok"}]}
    second = delivered(session, following)

    assert delivered(session, body) == first
    if first and second:
        assert second.startswith(first[: -len("]}")])
