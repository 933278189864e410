"""The boundary check and the visibility rule, by truth table."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from gateway.boundary import (
    Asking,
    BoundaryPolicy,
    CrossProjectEventTypeV1,
    Fact,
    FactPrivacy,
    check_boundary,
    is_visible,
    same_identity,
    visibility,
)

E = CrossProjectEventTypeV1
CHECK = json.loads((Path(__file__).parents[2] / "vectors/boundary/check.json").read_text())["cases"]
BOOLS = (False, True)


@pytest.mark.parametrize("case", CHECK, ids=lambda c: f"{c['source']}-{c['target']}-{c['event']}")
def test_check_boundary(case: dict[str, Any]) -> None:
    policy = BoundaryPolicy(cross_project_search=case["search"], cross_project_import=case["import"])
    crossing = check_boundary(case["source"], case["target"], policy, case["event"])
    assert crossing.allowed is case["allowed"]
    assert bool(crossing) is case["allowed"]


def test_reasons_are_the_contracts() -> None:
    assert check_boundary("a", "b", BoundaryPolicy(), "search").reason == "cross_project_search disabled"
    assert check_boundary("a", "b", BoundaryPolicy(), "import").reason == "cross_project_import disabled"


def test_an_event_that_does_not_exist() -> None:
    with pytest.raises(ValueError):
        check_boundary("a", "b", BoundaryPolicy(), "peek")


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [("x", "x", True), ("x", "y", False), ("", "", False), ("x", "", False), ("", "x", False)],
)
def test_two_unknown_projects_are_not_the_same(a: str, b: str, same: bool) -> None:
    assert same_identity(a, b) is same


def _expected(privacy: FactPrivacy, event: E, switches: tuple[bool, ...]) -> bool:
    """contract.md §9.4, written as one expression."""
    role, search, importing, team, link = switches
    flag = {E.SEARCH: search, E.IMPORT: importing, E.RECALL: False}[event]
    shared = {FactPrivacy.PROJECT_ONLY: False, FactPrivacy.TEAM: team, FactPrivacy.LINKED_PROJECTS: link}
    return role and flag and shared[privacy]


def test_the_whole_truth_table() -> None:
    """Every privacy, event, role, flag, team and link: 3 x 3 x 2^5 rows."""
    visible = 0
    for privacy, event, switches in product(FactPrivacy, E, product(BOOLS, repeat=5)):
        role, search, importing, team, link = switches
        fact = Fact("owner", privacy, "red", frozenset({"asker"} if link else {"other"}))
        asking = Asking("asker", "red" if team else "blue", role)
        policy = BoundaryPolicy(cross_project_search=search, cross_project_import=importing)
        got = is_visible(fact, asking, policy, event=event)
        assert got is _expected(privacy, event, switches)
        visible += got
    assert visible == 16


@pytest.mark.parametrize("event", list(E))
def test_the_own_project_sees_everything(event: E) -> None:
    assert is_visible(Fact("p"), Asking("p"), event=event)


def test_nothing_crosses_by_default() -> None:
    for privacy in FactPrivacy:
        fact = Fact("owner", privacy, "red", frozenset({"asker"}))
        assert not is_visible(fact, Asking("asker", "red", role_allows=True))


OPEN = BoundaryPolicy(cross_project_search=True, cross_project_import=True)


@pytest.mark.parametrize(
    ("fact", "asking", "reason"),
    [
        (Fact("o", FactPrivacy.TEAM, "red"), Asking("", "red", True), "asking project unknown"),
        (Fact("", FactPrivacy.TEAM, "red"), Asking("a", "red", True), "owning project unknown"),
        (Fact("", FactPrivacy.TEAM, "red"), Asking("", "red", True), "asking project unknown"),
        (Fact("o", FactPrivacy.TEAM, ""), Asking("a", "", True), "not on the team"),
        (
            Fact("o", FactPrivacy.TEAM, "red"),
            Asking("a", "red", False),
            "role denies allow_cross_project_search",
        ),
        (Fact("o"), Asking("a", "red", True), "fact is project_only"),
        (
            Fact("o", FactPrivacy.LINKED_PROJECTS, links=frozenset({"b"})),
            Asking("a", "", True),
            "not linked by the owner",
        ),
    ],
)
def test_why_not(fact: Fact, asking: Asking, reason: str) -> None:
    crossing = visibility(fact, asking, OPEN)
    assert (crossing.allowed, crossing.reason) == (False, reason)


def test_links_go_one_way() -> None:
    """The owner's list counts, not the asker's."""
    mine = Fact("a", FactPrivacy.LINKED_PROJECTS, links=frozenset({"b"}))
    theirs = Fact("b", FactPrivacy.LINKED_PROJECTS, links=frozenset())
    assert is_visible(mine, Asking("b", role_allows=True), OPEN)
    assert not is_visible(theirs, Asking("a", role_allows=True), OPEN)


@pytest.mark.parametrize("enabled", BOOLS)
@pytest.mark.parametrize("digest", ["sha256:aa", "sha256:ab", ""])
def test_universal_items_are_exempt_by_exact_digest(enabled: bool, digest: str) -> None:
    policy = BoundaryPolicy(universal_gotchas_enabled=enabled)
    fact = Fact("owner", digest=digest)
    visible = is_visible(fact, Asking("asker"), policy, universal=frozenset({"sha256:aa", ""}))
    assert visible is (enabled and digest == "sha256:aa")


def test_a_fact_without_privacy_is_project_only() -> None:
    assert FactPrivacy.of_fact({"text": "x"}) is FactPrivacy.PROJECT_ONLY
    assert Fact("p").privacy is FactPrivacy.PROJECT_ONLY
