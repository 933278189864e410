"""From a trigger hit to a finding: match the pattern at the hit, then ask what a match alone cannot tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from gateway.context.findings import Category, Finding, Severity
from gateway.context.views.lines import SEAM, begins_alike
from gateway.detect.checks import CHECKS, COSTS
from gateway.detect.citations import is_cited, may_be_cited
from gateway.detect.columns import cells_below, may_head
from gateway.detect.entropy import looks_random
from gateway.detect.labels import BEFORE, named_before
from gateway.detect.rule import Rule
from gateway.detect.samples import PUBLISHED, is_repeated
from gateway.detect.scope import Scope, as_value, heard_from, left_edge, past_escape

LOOKALIKE_TYPE = "token_lookalike"
_CONTEXT = 80
_UNLESS = 24
_OVER = 64  # characters beyond a window that a datum may go on for
_CUT = re.compile(rf"[A-Za-z0-9+/_=.-]{{4,200}}{SEAM}[A-Za-z0-9+/_-]{{2}}")
_NEXT_LINE = re.compile(rf"{SEAM}([A-Za-z0-9+/_-]{{12,512}})(?=[\s\"'`,;]|\Z)")
WIDE = 160
"""Characters of a window behind a hit; a wider one is searched together with those that it meets."""
_NARROW = 48  # of a window that begins before the hit
# Units of the budget, beside the one for the hit: see `scope.Budget`.
_MATCH_COST = 2  # of a match, and of the finding that it may become; one more for each view it is found in
_GOES_ON_COST = 8  # of asking whether what stands behind the line end is random
_BELOW_COST = 1  # of a label that may head a column
_BEFORE_COST = 2  # of what stands before a label
_CONTEXT_COST = 1  # of looking for the words that must stand before a match
_CHECK_COST = 1  # of a validator that has no cost of its own
_CITED_COST = 24  # of reading the quotes around a match
_PLACES = 192  # at which one alternative of a pattern is tried for a unit
_ROUND = 240  # characters on either side of a word that the engine cannot see
_STRETCH = 2048  # characters that are searched without a look at the budget


type Confirm = Callable[[Scope, int, Rule, int, int], None]
"""Tries a rule, given with its number, at a hit that spans `start..end` of the scope's text."""


def confirmer(rule: Rule) -> Confirm:
    """What tries `rule` at a hit of one of its triggers."""
    if rule.near is None:
        return _begun
    before, behind = rule.near
    if before + behind > (_NARROW if before else WIDE):
        return _deferred
    if before:
        return _around
    return _labelled if rule.category is Category.PII else _following


def _begun(scope: Scope, index: int, rule: Rule, start: int, _end: int) -> None:
    """Match what begins at a fixed distance before the hit."""
    begin = start - rule.at
    if begin < scope.consumed.get(index, 0) or begin < 0:
        return
    if rule.edge == "word" and not left_edge(scope.text, begin):
        return
    match = rule.pattern.match(scope.text, begin)
    if match is not None:
        _accept(scope, index, rule, match)
    if match is not None or rule.category is Category.SECRET:
        _note_cut(scope, begin, match)


def _window(scope: Scope, index: int, rule: Rule, start: int, end: int) -> tuple[int, int]:
    """What stands round a hit as far as the rule looks, without what it has found."""
    before, behind = rule.near or (0, 0)
    return max(scope.consumed.get(index, 0), start - before, 0), min(len(scope.text), end + behind)


def _note_cut(scope: Scope, begin: int, match: re.Match[str] | None) -> None:
    """Note a line end that cuts the token from `begin`: one without an end of its own, or one that matches nothing."""
    text = scope.text
    if match is None:
        cut = _CUT.match(text, begin)
        if cut is not None and not begins_alike(text, begin, cut.end() - 2):
            scope.cuts.append(cut.end())
        return
    going_on = _NEXT_LINE.match(text, match.end())
    if going_on is not None and not begins_alike(text, begin, going_on.start(1)):
        scope.budget.hits -= _GOES_ON_COST
        if looks_random(going_on[1], least=12):
            scope.cuts.append(going_on.start(1))


def search_cost(rule: Rule, chars: int) -> int:
    """Units for a search of so many characters: at each of them all alternatives of a pattern may be tried."""
    return -(-chars * (rule.ways + 2) // _PLACES)


def _around(scope: Scope, index: int, rule: Rule, start: int, end: int) -> None:
    """Search the window of a hit for what it is a part of, or stands beside."""
    low, high = _window(scope, index, rule, start, end)
    for found in rule.pattern.finditer(scope.text, low, high):
        match = found if found.end() < high else _whole(scope, rule, found)
        if match is None or match.start() > end:
            return
        if match.end() > start:
            _accept(scope, index, rule, match)


def _following(scope: Scope, index: int, rule: Rule, start: int, end: int) -> None:
    """Search the window of a hit for what ends behind it."""
    low, high = _window(scope, index, rule, start, end)
    _behind(scope, index, rule, low, high, start)


def _labelled(scope: Scope, index: int, rule: Rule, start: int, end: int) -> None:
    """Look for what a label at `start..end` names: below it in its column, behind it in the window, before it."""
    first, last = scope.asked.get(index, (0, 0))
    if first <= start < last:
        return  # a part of a label that was looked round
    scope.asked[index] = start, end
    if may_head(scope.text, end):
        scope.budget.hits -= _BELOW_COST
        if _below(scope, index, rule, start, end):
            return
    low, high = _window(scope, index, rule, start, end)
    digits = rule.digits
    if digits and not scope.has_digits(digits, start - BEFORE, high):
        return
    if (not digits or scope.has_digits(digits, low, high)) and _behind(scope, index, rule, low, high, start):
        return
    # A label follows many a number: only what has a check digit stands before it.
    if not rule.check or rule.unchecked != "drop":
        return
    if not digits or scope.has_digits(digits, start - BEFORE, start + 1):
        scope.budget.hits -= _BEFORE_COST
        before = named_before(scope.text, rule, scope.consumed.get(index, 0), start)
        if before is not None:
            _accept(scope, index, rule, before)


def _behind(scope: Scope, index: int, rule: Rule, low: int, high: int, start: int) -> bool:
    """Search the window `low..high` for what ends behind `start`; whether anything was the datum."""
    for found in rule.pattern.finditer(scope.text, low, high):
        match = found if found.end() < high else _whole(scope, rule, found)
        if match is None:
            return False
        if match.end() > start and _accept(scope, index, rule, match):
            return True
    return False


def _whole(scope: Scope, rule: Rule, found: re.Match[str]) -> re.Match[str] | None:
    """A match that the window's end may have cut, as it is without that end; none where there is none."""
    return rule.pattern.match(scope.text, found.start(), min(len(scope.text), found.end() + _OVER))


def _below(scope: Scope, index: int, rule: Rule, start: int, end: int) -> bool:
    """Try `rule` at the cells below a label that heads a column; whether any held the datum."""
    accepted = False
    for low, high in cells_below(scope, index, start, end):
        match = rule.pattern.match(scope.text, low, min(len(scope.text), high + 1))
        if match is not None and match.end() <= high:
            accepted = _accept(scope, index, rule, match) or accepted
    return accepted


def foreign_words(words: Sequence[str]) -> tuple[tuple[str, frozenset[str]], ...]:
    """Each word, also with a capital, and its characters beyond ASCII: a text without them does not hold it."""
    forms = dict.fromkeys(form for word in words for form in (word, word.capitalize()))
    return tuple((word, frozenset(c for c in word if not c.isascii())) for word in forms)


def confirm_wide(scope: Scope, index: int, rule: Rule, words: Sequence[str]) -> None:
    """Search round the `words` of a rule's `wide` ones that a text holds, as the engine cannot see them."""
    text, read = scope.text, 0
    for low, high in _round_words(text, words):
        if scope.budget.hits <= 0:
            scope.leave_out(low, len(text))
            return
        scope.budget.hits -= search_cost(rule, 4 * (high - low))  # each character may be a word
        for match in rule.pattern.finditer(text, max(low, read), high):
            whole = match if match.end() < high else _whole(scope, rule, match)
            if whole is not None:
                read = whole.end()
                _accept(scope, index, rule, whole)


def _round_words(text: str, words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """What stands round the places of the words, in order; long stretches in parts."""
    said = re.compile("|".join(map(re.escape, words)))
    low = high = at = 0
    while (place := said.search(text, at)) is not None:
        at = place.start() + _ROUND  # those before it lie in the same window
        if place.start() - _ROUND > high:
            if high:
                yield low, high
            low = place.start() - _ROUND
        high = min(len(text), at + _ROUND)
        if high - low > _STRETCH:
            yield low, high
            low = high - _ROUND  # what lies across is found whole
    if high > low:
        yield low, high


def _deferred(scope: Scope, index: int, rule: Rule, start: int, end: int) -> None:
    """Wide windows that overlap are searched once, together: a text full of triggers stays linear."""
    low, high = _window(scope, index, rule, start, end)
    windows = scope.windows.setdefault(index, [])
    if windows and low <= windows[-1][1]:
        first, last = windows[-1]
        windows[-1] = min(low, first), max(high, last)
        added = max(first - low, 0) + max(high - last, 0)
    else:
        windows.append((low, high))
        added = high - low
    scope.budget.hits -= search_cost(rule, added)


def confirm_windows(scope: Scope, rules: Sequence[Rule]) -> None:
    """Search the wide windows that hits asked for."""
    for index, windows in scope.windows.items():
        for low, high in windows:
            for found in rules[index].pattern.finditer(scope.text, low, high):
                if scope.budget.hits <= 0:
                    scope.leave_out(found.start(), high)
                    break
                match = found if found.end() < high else _whole(scope, rules[index], found)
                if match is not None:
                    _accept(scope, index, rules[index], match)
    scope.windows.clear()


def _accept(scope: Scope, index: int, rule: Rule, match: re.Match[str]) -> bool:
    """Add the finding of a match; false where the match is not the datum that the rule is for."""
    scope.consumed[index] = match.end()
    scope.budget.hits -= _MATCH_COST + scope.depth
    span = _datum(scope, rule, match)
    value = scope.text[span[0] : span[1]]
    published = value in PUBLISHED or (rule.category is Category.SECRET and is_repeated(value))
    if not value or (published and not rule.samples):
        return False
    if rule.edge == "word" and rule.near is not None and not left_edge(scope.text, span[0]):
        return False
    confidence, severity = rule.confidence, rule.severity
    kind, category = rule.type, rule.category
    agrees = bool(rule.check) and _agrees(scope, rule.check, value)
    if rule.check and not agrees and rule.unchecked == "drop":
        return False
    if not _stands(scope, rule, match, span[0]):
        return False
    if category is Category.PROMPT_INJECTION:
        severity = heard_from(scope.channel, severity)
    if rule.check:
        if agrees:
            confidence = rule.checked
        elif rule.unchecked == "lookalike" and not as_value(scope.text, span[0]):
            kind, category, severity, confidence = (
                "token_lookalike",
                Category.CLASSIFICATION,
                Severity.LOW,
                300,
            )
        else:
            severity = min(severity, Severity.HIGH, key=lambda s: s.rank)
    scope.found.append(Finding(kind, category, severity, confidence, span[0], span[1], rule.id))
    return True


def _stands(scope: Scope, rule: Rule, match: re.Match[str], start: int) -> bool:
    """Whether the words around a match let it count: those that must stand there, those that must not, quotes."""
    if rule.context:
        scope.budget.hits -= _CONTEXT_COST
        if not _is_said(scope.before(match.start(), _CONTEXT), rule.context):
            return False
    if rule.unless and _is_said(scope.before(start, _UNLESS), rule.unless):
        return False
    if rule.category is not Category.PROMPT_INJECTION:
        return True
    if not may_be_cited(scope.text, match.start()):
        return True
    scope.budget.hits -= _CITED_COST
    return not is_cited(scope.text, *match.span())


def _datum(scope: Scope, rule: Rule, match: re.Match[str]) -> tuple[int, int]:
    """Where the datum of a match stands, without an escape that it was matched into; empty where nothing is left."""
    span = match.span(match.lastgroup) if match.lastgroup else match.span()
    if rule.near is None or span != match.span():
        return span
    behind = past_escape(scope.text, *span)
    if behind == span[0]:
        return span
    return (behind, span[1]) if rule.pattern.fullmatch(scope.text[behind : span[1]]) else (behind, behind)


def _agrees(scope: Scope, check: str, value: str) -> bool:
    """What the validator says of a value, asked once for each value of a text."""
    key = check, value
    verdict = scope.judged.get(key)
    if verdict is None:
        scope.budget.hits -= COSTS.get(check, _CHECK_COST)
        verdict = scope.judged[key] = CHECKS[check](value)
    return verdict


def _is_said(around: str, words: Sequence[str]) -> bool:
    return any(map(around.lower().__contains__, words))
