"""Ways to write a value down stand in one text, in any order: what is found of one takes nothing from another."""

from __future__ import annotations

from itertools import product
from typing import Final

import pytest

from gateway.context.findings import ScanItem
from gateway.detect.engine import Engine, build

FIRST: Final = "3hxAzmhp5Vm3nwUc"
SECOND: Final = "kd93jKKd02lwqZ7e"
WAYS: Final = (
    'DB_PASSWORD = "%s"',
    'api_key = "%s"',
    'apiKey: "%s"',
    '{"name": "DB_PASSWORD", "value": "%s"}',
    'let t = String::from("x"); let t = token("%s")',
    "password,%s",
    "mysql -u root -p%s app",
    "export API_TOKEN=%s",
    "<td>smtp_password</td><td>%s</td>",
    "https://bob:%s@host.io/x",
    "  db_pass: %s",
    "X-Api-Key: %s",
    "Authorization: Bearer %s",
    "db.pw := '%s'",
    "machine host login bob password %s",
    'const signingKey = "%s";',
    "user,password\nbob,%s",
    '{"db_password": {"type": "string", "value": "%s"}}',
    "the api token is `%s`",
    "DATABASE_URL=postgres://app:%s@host/db",
    "ALTER USER bob PASSWORD '%s';",
    "--token %s",
    "storepass=%s",
)


WHOLE: Final = (
    "GITLAB_TOKEN=glpat-7GO4qJ0oSe5YkR2wVx8b",
    "JWT=eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJ6NjFjcFZ0bW1EIiwiaWF0IjoxNzkwMDAwMDAwfQ.u23NJNwUerAgfa8Gh4l9jj-6uSjr7HkUYSV_KokLXKS",
    "APP_SECRET=pLL67wKurOEszTvfUEvKSNKHhG99yUqDQr2J8LEpJ9j=",
    "LINEAR=lin_api_UWiMJ22aLHLbETiKCV2r88NDHjBPpI7azJXbTcCX",
)
NEXT_LINES: Final = (
    "PORT=8080",
    "LOG_LEVEL: debug",
    "retry2(3)",
    "and then it runs",
    "EOF",
    "export A=1",
    "}",
)


@pytest.fixture(scope="module")
def engine() -> Engine:
    """The built-in rules, made once."""
    return build()


def test_what_is_found_behind_takes_nothing_from_what_stands_before(engine: Engine) -> None:
    pairs = list(product(WAYS, WAYS))
    texts = [f"{first % FIRST}\n\n# then\n\n{second % SECOND}\n" for first, second in pairs]
    results = engine.scan([ScanItem(text) for text in texts])
    missed = [
        pair
        for pair, text, result in zip(pairs, texts, results, strict=True)
        for value in (FIRST, SECOND)
        if not any(value in text[f.start : f.end] for f in result.findings)
    ]
    assert missed == []


def test_a_token_that_is_whole_at_a_line_end_leaves_the_next_line_alone(engine: Engine) -> None:
    texts = [f"{token}\n{line}\n" for token, line in product(WHOLE, NEXT_LINES)]
    results = engine.scan([ScanItem(text) for text in texts])
    ends = [max(f.end for f in result.findings) for result in results]
    assert [text for text, end in zip(texts, ends, strict=True) if end > text.index("\n")] == []


@pytest.mark.parametrize("cut", [9, 20, 40])
@pytest.mark.parametrize("margin", ["", "> ", "    "])
def test_a_token_that_a_line_end_cuts_is_read_to_its_end(engine: Engine, cut: int, margin: str) -> None:
    for token in (each.partition("=")[2] for each in WHOLE[1:2]):
        text = f"{margin}{token[:-cut]}\n{margin}{token[-cut:]}\n"
        found = engine.scan([ScanItem(text)])[0].findings
        assert max(f.end for f in found) == len(text) - 1


@pytest.mark.parametrize("width", [32, 60, 64])
@pytest.mark.parametrize("before", ["", "A=1\nGITHUB_TOKEN=", "x" * 40 + " ", "token: "])
def test_hex_over_lines_is_one_text(engine: Engine, width: int, before: str) -> None:
    token = "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"
    dump = f"{before}{token}\nB=2\n".encode().hex()
    lines = "\n".join(dump[at : at + width] for at in range(0, len(dump), width))
    found = engine.scan([ScanItem(f"$ xxd -p .env\n{lines}\n$ ls\n")])[0].findings
    assert [(f.type, f.value) for f in found] == [("github_token", token)]


TOKEN: Final = "sk_live_T7wgEWJ0lgItdnJ3b6O1uMdF"
HARMLESS: Final = "harmless words!"
HELD: Final = {
    "a comment of a blank": (f"k = {TOKEN[:12]}/* */{TOKEN[12:]}\n", ("stripe_secret_key",)),
    "lists of codes of two kinds": (
        f"x = [{', '.join(str(ord(c)) for c in TOKEN)}]\nsome prose\n"
        f"y = [{', '.join(hex(ord(c)) for c in HARMLESS)}]\n",
        ("stripe_secret_key",),
    ),
    "a number and a token that line ends cut": (
        f"ssn 219-09-\n9998\nand then some prose\nkey {TOKEN[:14]}\n{TOKEN[14:]}\nend\n",
        ("us_ssn", "stripe_secret_key"),
    ),
}


@pytest.mark.parametrize(("text", "types"), HELD.values(), ids=HELD.keys())
def test_what_one_view_read_hides_nothing_from_another(
    text: str, types: tuple[str, ...], engine: Engine
) -> None:
    (result,) = engine.scan([ScanItem(text)])
    assert {f.type for f in result.findings} >= set(types)


@pytest.mark.parametrize(
    "lines",
    [
        "{}\\nexport FOO",
        "{}\\r\\nexport FOO",
        "> {}\n> export FOO",
        "a\n  - {}\n  - export",
        "12\t{}\n13\texport FOO",
    ],
)
def test_marks_of_lines_hide_no_line_end(lines: str, engine: Engine) -> None:
    token = WHOLE[0].removeprefix("GITLAB_TOKEN=")
    text = lines.format(token)
    (result,) = engine.scan([ScanItem(text)])
    assert [text[f.start : f.end] for f in result.findings] == [token]
