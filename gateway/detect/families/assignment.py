"""Values of keys that name a secret: `DB_PASSWORD=...`, `"apiKey": "..."`, `--token ...`, `<password>...</password>`.

The engine finds a naming word followed by an operator and a value; here the key's words, the value's form and its
randomness decide. A reference (`${X}`, `os.environ[...]`), a call, a type, a number, a filler is not a value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from gateway.context.findings import Category, Severity
from gateway.detect.entropy import DIGIT, UUID, looks_random
from gateway.detect.keynames import KeyKind, key_kind
from gateway.detect.matcher import Trigger
from gateway.detect.rule import Named
from gateway.detect.scope import Scope
from gateway.detect.typelist import TypeRow
from gateway.detect.values import Assigned, plausible, without_digits

WORDS = (
    "(?:passw|passphrase|passcode|pwd|[a-z][._-]pass|[a-z][._-]pw|(?-i:[a-z]Pw)"
    "|(?:db|admin|root|user|mail|smtp|login|ldap)[ ]?pass|secret(?: key)?|token"
    "|api.?key|apikey|access.?key|auth.?key|private.?key|credential|(?-i:_PAT|_KEY)|webhook|encryption.?key|signing.?key"
    "|master.?key|basic_auth|account.?key|shared.?key|storage.?key|licen[cs]e.?key|service.?key|consumer.?key|app.?key"
    "|client.?key|subscription.?key)"
).replace(".?", "[_. -]?")
_AFTER_WORDS = (
    "[\\w.-]{0,24}\\\\{0,3}[\"'`\\])]{0,3}[ \t\xa0]{0,8}(?:=>|:=|[?]{1,2}=|[|]{2}=|=|:|\\|)[ \t]{0,4}\\n?[ \t]{0,12}"
    "[\\\\@]{0,3}[\"'`]{0,1}[^\\s\"'`\\\\=>,:|]",
    "[\\w.-]{0,24}\\\\{0,3}[\"'`\\])]{0,3}[ \t]{0,8},[ \t]{0,4}\\n?[ \t]{0,12}[\\\\@]{0,3}[\"'`][^\\s\"'`\\\\=>,:|]",
    '[\\w.-]{0,24}(?:[,;]|";")[^\\s"\'`\\\\=>,;:|()\\[\\]]',  # a row of a file, not a call
    "[\\w]{0,24}[ ]{0,2}:[ ]{0,2}(?:&|&'static )?[A-Za-z_][\\w<>\\[\\]?. ]{0,24}=[ ]{0,3}[\"'`]?[^\\s\"'`=]",
    '[\\w]{0,24} \\{ get; [a-z; ]{0,16}\\} = "[^\\s"]',
    "[\\w]{0,24} - [\"'`][^\\s\"'`]",
    "[\\w.-]{0,24}(?:[*]{2}:|:[*]{2}) {0,2}[\"'`]?[^\\s\"'`*]",
    "[\\w]{0,24}:[ ]{0,2}[|>][-+]?\\n[ ]{1,16}[^\\s]",
    "[\\w-]{0,24}[\"']?\\n[ ]{0,16}value: {0,2}[\"']?[^\\s\"']",
    "[\\w]{0,24}\\(\\\\{0,2}[\"'][^\\s\"']",
    "[\\w]{0,24}\\\\{0,3}[\"']?(?: value=\\\\{0,3}[\"']|>)[^\\s\"'<>]",
    "[\\w-]{0,24}[ ]{1,2}[\"']?[^\\s\"'=:]{7}",
    '[\\w]{0,24}[`"]? (?:is|was|to|as):? ["\'`]?[^\\s"\'`]{7}',
)
_SET = "[\"'\\])]{0,2}[ ]{0,4}(?:=>|:=|[?]{1,2}=|[|]{2}=|=|:)[ ]{0,4}\\\\{0,2}"
_SHORT_KEYS = (  # names too short, or too common in prose, for the other forms
    "[^a-z](?:pass|psk|pwd|pw)" + _SET + "[\"'`]?[^\\s\"'`=>:,|]",
    "(?:store|key|admin|user|root|db|sql|ftp|mail|ldap|become|login|ssh|my|remote|local)pass"
    + _SET
    + "[\"'`]?[^\\s\"'`=>:,|]",
    "_(?:pat|key)(?:_[a-z0-9]{1,12})?" + _SET + "[\"'`]?[^\\s\"'`=>:,|]",
)
_UNQUOTED_ROW = ",[ \t]{1,4}[^\\s\"'`\\\\=>,:|()\\[\\]]"  # `password, value` is two arguments but for these:
_ROWS = (
    "_(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|PWD)[A-Z0-9_]{0,12}" + _UNQUOTED_ROW,
    "\n[\\w.-]{0,24}(?:password|passwd|pwd|secret|token|[_-]key|apikey)" + _UNQUOTED_ROW,
)
_OWNED_KEYS = (  # a key of something: only a long value in quotes, or in a header
    "[a-z0-9](?:[_.-]key|Key|-Key|[.]key)" + _SET + "[\"'`][A-Za-z0-9+/_-]",
    "[Xx]-[A-Za-z-]{2,24}[Kk]ey: [A-Za-z0-9+/_-]",
    "[a-z0-9]Key: (?:&|&'static )?[A-Za-z_][A-Za-z_]{0,24} = [\"'`][A-Za-z0-9+/_-]",
)
_SPACED_REACH = 7  # characters of a value that the triggers without an operator ask for
_KEY = r"(?<![\w.$-])([\w.$-]{1,80}+)\\{0,3}[\"'`\])*]{0,3}"
_OPEN = r"[\\@]{0,3}[\"'`]?\Z"
_HEADS = tuple(
    re.compile(rf"{_KEY}(?:{between}){_OPEN}")
    for between in (
        r"[ ]{1,3}value(=)\\{0,3}|[ \t\xa0]{0,8}(=>|:=|\?{1,2}=|\|\|=|={1,3}|!={1,2}|:|,|;|\||>|\()"
        r"[ \t]{0,4}\n?[ \t]{0,16}",
        r"[ ]{0,2}:[ ]{0,2}(?:&(?:'\w{1,12} )?)?[A-Za-z_][\w<>\[\]?.| ]{0,30}(=)[ ]{0,4}",  # a type between
        r"[ ]{0,2}\{ get; (?:private |protected |init; )?(?:set; )?\} (=) ",  # a property of C#
        r"[ ](-)[ ](?=[\"'`])",
        r":[*]{2}[ ]{0,3}",
        r":[ ]{0,3}[|>][-+]?[ ]{0,3}\n[ \t]{1,20}",  # a YAML block
        r"[ ]{0,3}\n[ \t]{0,16}value:[ ]{0,4}",  # an entry of name and value
    )
)
_LAST_KEY = re.compile(
    r"[=>:?|!,;(]{1,3}[ \t\xa0]{0,8}[\"'`\])*]{0,3}\\{0,3}([\w.$-]{1,81})"
)  # backwards, for the first form
_KEY_REACH = 99
_VALUE_BACKWARDS = "eulav"  # of `key value="..."`, where the key stands before
_OPENING = "\\@\"'` \t\n"  # what may stand between the operator and the value
_PLAIN = (_HEADS[0], "")
_BLOCK = (_HEADS[5], ":")
_ENDING = {  # by the last character of the operator: the forms that can end in it, and what each holds besides
    "=": (_PLAIN, (_HEADS[1], ":"), (_HEADS[2], "{ get;")),
    "-": ((_HEADS[3], ""), _BLOCK),
    "*": ((_HEADS[4], ":*"),),
    "|": (_PLAIN, _BLOCK),
    ">": (_PLAIN, _BLOCK),
    "+": (_BLOCK,),
    ":": (_PLAIN, (_HEADS[6], "value:")),
    ",": (_PLAIN,),
    ";": (_PLAIN,),
    "(": (_PLAIN,),
}
_CLOSED = re.compile(
    r"\\{0,3}[\"'`]?[)\]]"
)  # the key was an argument or an index: what follows is not its value
_ROW_STARTS = frozenset(("", "\n", ";", '"'))  # what stands before a name whose value is the next cell
ALONE = frozenset(("key", "Key", "keys"))
"""Names of keys of something that the word before says."""
_FIRST_WORD = re.compile(
    r"(?i)(?<![\w])(api|access|secret|auth|private|service|licen[cs]e|account|signing|encryption|master|client|consumer|shared"
    r"|storage|session|deploy|webhook|subscription|app|application|admin) \Z"
)
_LONGEST_FIRST = 13  # characters of such a word and a blank
_SPACED_HEAD = re.compile(rf"{_KEY} (?:(?:is|was|to|as):? )?[ ]?{_OPEN}")
_UNQUOTED = re.compile(r"[^\s\x1b\"'`\\<>,;&|()\[\]{}]{1,400}")
_TO_SPACE = re.compile(r"[^\s\x1b\"'`\\]{1,400}")
_NEXT_MEMBER = re.compile(r"&[A-Za-z_][\w.-]{1,40}=")
_LINE_KEY = re.compile(r"(?:^|\n|\\n|\t)\s{0,16}(?:export |set |ENV |- |SET |\$env:)?\s{0,4}[\w.-]{1,80}\Z")
_CURLY = {
    "\u201c": "\u201d",
    "\u2018": "\u2019",
    "\u201e": "\u201c",
    "\u00ab": "\u00bb",
}  # as chats write quotes
_LONGEST = 500  # characters of a value
_QUOTES = frozenset("\"'`")
_BLANKS = frozenset(" \t\n")
_CALLED = re.compile(  # a call, an index, a type, or a name too short to be a password of letters
    r"[A-Za-z_][A-Za-z0-9_.]{0,60}[(\[]|(?:str|bytes|int|bool|None|Any|string|true|false|True|False)(?![\w.@-])"
    r"|[a-z_]{1,7}(?=[\s\x1b\"'`\\<>,;&|()\[\]{}]|\Z)"
)
_CONNECTION = re.compile(  # in small letters, of which `re` finds the first four times as fast as of either
    r"(?:server|data source|initial catalog|user id|uid|database)\s{0,2}=[^;\n]{1,120};"
)
_DETECTOR = "assignment"
_CONNECTION_COST = 5  # units of the budget for looking for the members of a connection string
# Units of the budget: for reading a key, and what it is set to; for judging a value; for what names it.
_KEY_COST, _JUDGE_COST, _VALUE_COST, _REPORT_COST = 2, 2, 3, 2
_KEY_CHARS, _VALUE_CHARS = 32, 8  # for one unit more
_BEFORE = 140  # characters before a value in which its key stands
CONSUMED = "assignment"
"""The place in `Scope.consumed` of assignments of every kind."""
_EXAMPLES = {
    "password_assignment": 'smtp_pass = "Walnut-juniper19"',
    "generic_secret": "APP_SECRET=pLL67wKurOEszTvfUEvKSNKHhG99yUqDQr2J8LEpJ9j=",
    "generic_token": "refresh_token=BxAuqn7nJBvOvhyIGgefY3RrcEEwbh7aQHlbmX00dI4",
    "generic_api_key": 'apiKey: "8prSCB8W9t25d41rlvMKVC5TX1gWJiEHpykNpwMQ3et9dfXV"',
    "mssql_connection_password": "Server=db-1;Database=erp;User Id=sa_app;Password=zQv14_TpnBK_on9Xj;Encrypt=True;",
    "uuid_api_key": "RAILWAY_TOKEN=3d384349-e720-447a-aad6-a21ce7165e9a",
}


def alternatives(head: str, tails: Sequence[str]) -> Trigger:
    """Many expressions as one, caseless: as many triggers would cost the engine as many times."""
    return Trigger(
        f"{head}(?:{'|'.join(tails)})", 0, caseless=True, parts=tuple(head + tail for tail in tails)
    )


class Assignments:
    """Finds values by the name of their key."""

    contextual = True
    triggers = (
        *(Trigger(expression, 0, caseless=True) for expression in _SHORT_KEYS),
        *(Trigger(expression, 0) for expression in (*_OWNED_KEYS, *_ROWS)),
        alternatives(WORDS, _AFTER_WORDS),
    )
    described = tuple(
        TypeRow(_DETECTOR, kind, Category.SECRET, Severity.HIGH, example, "own: key names and randomness")
        for kind, example in _EXAMPLES.items()
    )

    def __init__(self, named: Sequence[Named] = ()) -> None:
        self._named = tuple(named)
        self._rows_of = lru_cache(maxsize=4096)(self._find_rows)  # names of keys repeat, as in `key_kind`

    def _find_rows(self, key: str) -> tuple[Named, ...]:
        return tuple(row for row in self._named if row.key.search(key))

    def find(self, scope: Scope, end: int) -> None:
        """See Family."""
        text = scope.text
        if text[end - 2 : end - 1] in _BLANKS and _CALLED.match(text, end - 1) is not None:
            return  # as `plausible` would say of it, for much more
        before = text[from_line(text, max(0, end - _BEFORE), end - 1) : end - 1]
        scope.budget.hits -= _KEY_COST + len(before) // _KEY_CHARS
        read = _read_key(text, before, end)
        if read is None or read[1] < scope.consumed.get(CONSUMED, 0):
            return
        key, start, operator = read
        if text[start] == "-" and text.startswith("${", start - len(key) - 3):
            start += 1  # a default: `${KEY:-value}`
        self.judge(scope, key, start, operator)

    def judge(self, scope: Scope, key: str, start: int, operator: str, end: int = 0) -> None:
        """Add the value that begins at `start`, if it can be what the key names; a space for no operator.

        Where the value ends is read from the text, unless the caller knows it.
        """
        text, kind, given = scope.text, key_kind(key), end > 0
        if kind is KeyKind.NONE:
            return
        scope.budget.hits -= _JUDGE_COST
        if kind is KeyKind.OWNED and self._rows_of(key):
            kind = KeyKind.KEY
        if not end and text[start : start + 1] in _CURLY:
            end = text.find(_CURLY[text[start]], start + 1, start + _LONGEST)
            start, end = start + 1, max(end, start + 1)
        if end:
            value, quoted = text[start:end], text[start - 1 : start] in _QUOTES or text[start - 1] in _CURLY
        else:
            value, quoted = _read_value(text, start, operator, key)
        if not value:
            return
        stop = start + len(value)
        following = text[stop + 1 : stop + 3].lstrip("\\\"' ")
        if operator == "," and quoted and following[:1] == ":":
            return  # it is the name of the next member of JSON
        assigned = Assigned(
            key,
            kind,
            value,
            operator,
            quoted,
            tight=text[start - 1 : start] == "=" or (operator == " " and key.startswith("-")),
            following=following,
            ending="" if quoted else text[stop : stop + 1],
            connection=kind is KeyKind.PASSWORD and operator == "=" and _in_connection(scope, start),
        )
        verdict = scope.judged.get(assigned)
        if verdict is None:
            scope.budget.hits -= _VALUE_COST + len(value) // _VALUE_CHARS
            verdict = scope.judged[assigned] = plausible(assigned)
        if not verdict:
            return
        if not given:  # a cell far below is nothing that was passed
            scope.consumed[CONSUMED] = start + len(value)
        self._report(scope, assigned, start)

    def _report(self, scope: Scope, assigned: Assigned, start: int) -> None:
        key, kind, value = assigned.key, assigned.kind, assigned.value
        scope.budget.hits -= _REPORT_COST
        span = (start, start + len(value))
        for row in self._rows_of(key) if kind is not KeyKind.PASSWORD else ():
            if row.value.fullmatch(value):
                scope.add(span, (row.type, Category.SECRET, row.severity), row.confidence, row.id)
                return
            if row.strict:
                return
        if kind is KeyKind.PASSWORD:
            connection = assigned.connection or _in_connection(scope, start)
            name = "mssql_connection_password" if connection else "password_assignment"
            confidence = 800 if connection or looks_random(value, least=10) else 650
        elif UUID.fullmatch(value):
            name, confidence = "uuid_api_key", 700
        else:
            lowered = key.lower()
            name = (
                "generic_api_key"
                if "key" in lowered
                else "generic_token"
                if "token" in lowered
                else "generic_secret"
            )
            confidence = 780
        scope.add(span, (name, Category.SECRET, Severity.HIGH), confidence, _DETECTOR)


def _in_connection(scope: Scope, start: int) -> bool:
    before = scope.before(start, 240)
    semicolon = before.rfind(";")
    if semicolon < 0 or "=" not in before[:semicolon] or ";\n" in before:
        return False
    scope.budget.hits -= _CONNECTION_COST
    return _CONNECTION.search(before.lower()) is not None


def _read_key(text: str, before: str, end: int) -> tuple[str, int, str] | None:
    """The key, where its value starts, and the operator between, for a hit whose last character is the value's.

    `before` is what stands before that character. Triggers without an operator end some characters into the value; then
    the operator is a space.
    """
    stripped = before.rstrip(_OPENING)
    for form, held in _ENDING.get(stripped[-1:], ()):
        if held not in before:
            continue
        head = _at_key(form, before, len(stripped)) if form is _HEADS[0] else form.search(before)
        key = _whole_key(before, head) if head is not None else ""
        if head is not None and key_kind(key) is not KeyKind.NONE:
            operator = next((group for group in head.groups()[1:] if group), "=")
            in_call = operator == "," and _CLOSED.match(before, head.end(1)) is not None
            in_code = operator == ";" and before[head.start(1) - 1 : head.start(1)] not in _ROW_STARTS
            return None if in_call or in_code else (key, end - 1, operator)
    start = end - _SPACED_REACH
    before = text[max(0, start - 100) : max(0, start)]
    if not before.rstrip("\\@\"'`").endswith(" ") or not _may_be_spaced(text, start):
        return None
    head = _SPACED_HEAD.search(before)
    return (_whole_key(before, head), start, " ") if head else None


def _at_key(form: re.Pattern[str], before: str, stop: int) -> re.Match[str] | None:
    """What `form.search(before)` finds, tried only where the key of the operator that ends at `stop` begins."""
    key = _LAST_KEY.match(before[max(0, stop - _KEY_REACH) : stop][::-1])
    if key is None:
        return None
    return form.search(before) if key[1] == _VALUE_BACKWARDS else form.match(before, stop - key.end())


def from_line(text: str, low: int, end: int, lines: int = 3) -> int:
    """The start of the last `lines` lines, not before `low`: no form reaches further, and searching costs by length."""
    at = end
    for _ in range(lines):
        at = text.rfind("\n", low, at)
        if at < 0:
            return low
    return at


def _may_be_spaced(text: str, start: int) -> bool:
    """Whether the value from `start` can stand without an operator: in quotes, with a digit, or drawn by chance."""
    if text[start - 1] in _QUOTES:
        return True
    value = _UNQUOTED.match(text, start)
    return value is not None and (DIGIT.search(value[0]) is not None or without_digits(value[0]))


def _whole_key(before: str, head: re.Match[str]) -> str:
    """The key of a match; `api key` in prose and in tables is one key."""
    key = unescaped(before, head.start(1), head[1])
    return with_first_word(before, head.start(1), key) if key in ALONE else key


def with_first_word(before: str, at: int, key: str) -> str:
    """A key at `at` and the word before it that says of what it is one, if it does."""
    first = _FIRST_WORD.search(before, max(0, at - _LONGEST_FIRST), at)
    return f"{first[1]}_{key}" if first else key


def unescaped(before: str, at: int, key: str) -> str:
    r"""A key that begins at `at` without the letter of an escape before it: `npassword` of `\npassword`."""
    return key[1:] if before[at - 1 : at] == "\\" and key[0] in "nrt" else key


def _closing(text: str, start: int, quote: str) -> int:
    """Where the quotes end that were opened before `start`, on the same line; -1 where they do not.

    Quotes inside are escaped once more than those around them; where there are none around, the first one ends it.
    """
    line = text.find("\n", start, start + _LONGEST)
    end = line if line >= 0 else start + _LONGEST
    around = _backslashes(text, start - 1)
    first = close = text.find(quote, start, end)
    while close >= 0:
        escapes = _backslashes(text, close, start)
        if escapes <= around or (not around and escapes % 2 == 0):
            return close
        close = text.find(quote, close + 1, end)
    return first


def _backslashes(text: str, at: int, low: int = 0) -> int:
    """How many stand right before `at`."""
    count = 0
    while at - count > low and text[at - count - 1] == "\\":
        count += 1
    return count


def _read_value(text: str, start: int, operator: str, key: str) -> tuple[str, bool]:
    """The value from `start`, and whether it stood in quotes."""
    before = text[start - 1 : start]
    if before in _QUOTES and before:
        close = _closing(text, start, before)
        if close >= 0:
            value = text[start:close]
            return value.rstrip("\\") if text[start - 2 : start - 1] == "\\" else value, True
    if operator == ">":
        close = text.find("<", start, start + _LONGEST)
        return (text[start:close].strip().removesuffix("]]>"), True) if close >= 0 else ("", False)
    form = _UNQUOTED
    if (
        operator == "="
        and text[start - 1] == "="
        and _LINE_KEY.search(text, max(0, start - len(key) - 30), start - 1)
    ):
        form = _TO_SPACE
    found = form.match(text, start)
    if found is None:
        return "", False
    if operator == "=" and text[found.end() : found.end() + 1] == ";":
        return found[0], False  # a member of a connection string, to the last character
    if form is _TO_SPACE and (members := _NEXT_MEMBER.search(found[0])) is not None:
        return found[0][: members.start()], False  # a member of a form
    return found[0].rstrip(".,;:)" if form is _UNQUOTED else ",;"), False
