"""Laws of the boundary: nothing unknown is anyone's, fingerprints are the text's own, spans lie in the text."""

from __future__ import annotations

import re

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gateway.boundary import (
    Asking,
    BoundaryPolicy,
    CrossProjectEventTypeV1,
    Fact,
    FactPrivacy,
    FingerprintIndex,
    KnownProjects,
    check_boundary,
    is_visible,
)
from gateway.boundary.words import read, same_length

KEY = b"k" * 32
hashes = st.sampled_from(("", "a", "b"))
flags = st.booleans()
policies = st.builds(
    BoundaryPolicy,
    cross_project_search=flags,
    cross_project_import=flags,
    audit_cross_access=flags,
    universal_gotchas_enabled=flags,
)
facts = st.builds(
    Fact,
    hashes,
    st.sampled_from(list(FactPrivacy)),
    st.sampled_from(("", "red")),
    st.frozensets(hashes),
    st.just(""),
)
askers = st.builds(Asking, hashes, st.sampled_from(("", "red")), flags)
events = st.sampled_from(list(CrossProjectEventTypeV1))
words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=30)
lines = st.lists(
    st.sampled_from(
        (
            "def settle(batch, fee_schedule):",
            "    return batch.close(reason='cut-over')",
            "The quick brown fox, as they say, jumps over the lazy dogs of the neighbourhood.",
            "}",
            "",
            "größe = höhe * länge * übertragungsrate",
        )
    )
    | words,
    max_size=12,
).map("\n".join)


@given(facts, askers, policies, events)
def test_whoever_is_unknown_sees_nothing(
    fact: Fact, asking: Asking, policy: BoundaryPolicy, event: CrossProjectEventTypeV1
) -> None:
    if not asking.project or not fact.project:
        assert not is_visible(fact, asking, policy, event=event)


@given(facts, askers, policies, events)
def test_visible_is_never_wider_than_the_boundary(
    fact: Fact, asking: Asking, policy: BoundaryPolicy, event: CrossProjectEventTypeV1
) -> None:
    if is_visible(fact, asking, policy, event=event):
        assert check_boundary(asking.project, fact.project, policy, event)


@given(facts, askers, policies, events)
def test_closing_a_flag_never_opens_anything(
    fact: Fact, asking: Asking, policy: BoundaryPolicy, event: CrossProjectEventTypeV1
) -> None:
    if not is_visible(fact, asking, policy, event=event):
        tighter = BoundaryPolicy(universal_gotchas_enabled=False)
        assert not is_visible(fact, asking, tighter, event=event)


@given(lines)
def test_words_stand_where_they_are_said_to(text: str) -> None:
    """Every word has a place in the bytes of the text, in order, and what stands there has its hash."""
    data = same_length(text)
    assert len(data) == len(text.encode())
    tokens = read(data)
    end = 0
    for hashed, start, stop in zip(tokens.hashes, tokens.starts, tokens.ends, strict=True):
        assert end <= start < stop <= len(data)
        assert read(data[start:stop]).hashes.tolist() == [hashed]
        end = stop


# A line that begins as tools write its number is read without that: then none stands before it that tells more.
NUMBERED = re.compile(r"^[ \t]*[+\->]?[ \t]{0,8}\d{1,7}(?:[\t\u2192:|]| \|)", re.MULTILINE)


@settings(max_examples=60)
@given(lines, st.sampled_from(("", "  ", "\t", "+", "> ", " 12\u2192", "3: ")))
def test_what_stands_before_a_line_does_not_matter(text: str, prefix: str) -> None:
    assume(not NUMBERED.search(text))
    index = FingerprintIndex(KEY)
    carried = "\n".join(prefix + line for line in text.split("\n"))
    assert set(index.prints(text)["print"].tolist()) == set(index.prints(carried)["print"].tolist())


@settings(max_examples=60)
@given(lines, lines)
def test_spans_lie_in_the_text_and_do_not_overlap(owned: str, text: str) -> None:
    index = FingerprintIndex(KEY)
    index.add("a", owned)
    for match in index.look_up(f"{text}\n{owned}\n{text}", least=1.0):
        end = 0
        for start, stop in match.spans:
            assert end <= start < stop <= len(text) * 2 + len(owned) + 2
            end = stop


@settings(max_examples=60)
@given(lines, lines, st.lists(st.lists(lines, min_size=1, max_size=3).map("\n".join), max_size=6))
def test_texts_looked_up_together_are_what_they_are_alone(one: str, two: str, texts: list[str]) -> None:
    """Whatever their neighbours, and how many of them: projects, bits, spans and sources."""
    index = FingerprintIndex(KEY)
    index.add("a", one, source="aa")
    index.add("b", two)
    index.add("c", f"{two[::-1]}\n{one[::-1]}", source="cc")
    asked = [*texts, one, f"{two}\n{one}", "", f"{one[::-1]}\n{one}\n{one}", *texts]
    for least in (0.0, 1.0, 40.0):
        alone = [index.look_up(text, least=least) for text in asked]
        assert index.look_up_all(asked, least=least) == alone


@settings(max_examples=60)
@given(lines, lines)
def test_the_order_in_which_projects_are_indexed_does_not_matter(one: str, two: str) -> None:
    forward, backward = FingerprintIndex(KEY), FingerprintIndex(KEY)
    for index, order in ((forward, "ab"), (backward, "ba")):
        for project in order:
            index.add(project, one if project == "a" else two)
    for text in (one, two):
        assert {m.project for m in forward.look_up(text)} == {m.project for m in backward.look_up(text)}


@given(st.text(max_size=200), st.sampled_from(("/srv/a", "/srv/a/b", "C:\\x\\y", "/srv/a-b")))
def test_mentions_lie_in_the_text(text: str, root: str) -> None:
    known = KnownProjects({"a": ["/srv/a"], "ab": ["/srv/a-b"], "w": ["c:/x/y"]})
    whole = f"{text} {root} {text}"
    for mention in known.mentions(whole):
        assert 0 <= mention.start < mention.end <= len(whole)
        assert mention.project in known.names
