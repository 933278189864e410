"""combine: commutative, associative, idempotent, with `allow` neutral, and monotone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.context.decisions import ALLOW, Decision, combine
from gateway.contract import ContextDispositionV1, TransformationKindV1

names = st.frozensets(st.sampled_from(("a", "b", "c")))
decisions = st.builds(
    Decision,
    st.sampled_from(list(ContextDispositionV1)),
    names.map(lambda n: tuple(sorted(n))),
    st.frozensets(st.sampled_from(list(TransformationKindV1)), max_size=3),
    names,
    st.none() | names,
    names.map(lambda n: tuple(sorted(n))),
    names.map(lambda n: tuple(sorted((x, "1") for x in n))),
    names.map(lambda n: tuple(sorted(n))),
)


@given(decisions, decisions)
def test_commutative(a: Decision, b: Decision) -> None:
    assert combine(a, b) == combine(b, a)


@given(decisions, decisions, decisions)
def test_associative(a: Decision, b: Decision, c: Decision) -> None:
    assert combine(combine(a, b), c) == combine(a, combine(b, c)) == combine(a, b, c)


@given(decisions)
def test_idempotent_with_a_neutral_element(a: Decision) -> None:
    assert combine(a, a) == combine(a) == combine(ALLOW, a) == a


def test_of_nothing() -> None:
    assert combine() == ALLOW


@given(st.lists(decisions), decisions)
def test_monotone(found: list[Decision], more: Decision) -> None:
    before, after = combine(*found), combine(*found, more)
    assert after.disposition.order >= before.disposition.order
    assert after.mask >= before.mask
    assert after.transformations >= before.transformations
    assert before.destinations is None or after.destinations <= before.destinations  # type: ignore[operator]
