"""The ways to write a value away from its key: the examples of `data/forms.toml`, and what no form may take for one."""

from __future__ import annotations

import re

import pytest

from gateway.context.findings import Category, ScanItem
from gateway.detect.data import document
from gateway.detect.engine import Engine, build
from gateway.detect.matcher import HyperscanMatcher, Re2Matcher

FORMS = document("forms.toml")["form"]


@pytest.fixture(scope="module")
def engine() -> Engine:
    return build()


def secrets(engine: Engine, text: str) -> list[str]:
    [result] = engine.scan([ScanItem(text, "", "tool")])
    return [text[f.start : f.end] for f in result.findings if f.category is Category.SECRET]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form["positive"][0][:40])
def test_every_form_is_found_wherever_it_stands(engine: Engine, form: dict[str, list[str]]) -> None:
    for text in form["positive"]:
        for before, after in (("", ""), ("import os\n\n", "\nx = 3\n"), ("  42\t", "\n  43\treturn\n")):
            [found] = secrets(engine, before + text + after)
            assert re.fullmatch(r"Harbor#copper88|pLL67wKurOEszTvfUEvKSNKH\w{0,10}", found)


@pytest.mark.parametrize("text", [text for form in FORMS for text in form["negative"]])
def test_look_alikes_of_a_form_are_nothing(engine: Engine, text: str) -> None:
    assert secrets(engine, text) == []


def test_both_engines_find_the_same_forms(engine: Engine) -> None:
    plan = engine.databases[0][0]
    chosen = [t for t in plan.triggers if t.length == 0]
    text = "\n".join(text for form in FORMS for text in (*form["positive"], *form["negative"]))
    data = text.encode("latin-1", "replace")
    assert set(HyperscanMatcher(chosen).scan(data)) >= set(Re2Matcher(chosen).scan(data))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("rabbitmqctl add_user svc Walnut88x", "Walnut88x"),
        ('sql.Open("mysql", "svc:Walnut#88@tcp(db:3306)/app")', "Walnut#88"),
        ("Login: svc / Walnut#88x", "Walnut#88x"),
        ("пароль: Copper44x", "Copper44x"),
        ("密码\uff1aTundra#19", "Tundra#19"),
        ("please use pLL67wKurOEszTvfUEvKSNKH9x as the api key", "pLL67wKurOEszTvfUEvKSNKH9x"),
        ("client_secret=edacb6c19ae19a86b939f6249eeb55b4&user=svc", "edacb6c19ae19a86b939f6249eeb55b4"),
        ("| admin_pass | Falcon!harbor4422 |", "Falcon!harbor4422"),
        ('if password == "junip3rSilver!80":', "junip3rSilver!80"),
    ],
)
def test_the_span_is_the_value_alone(engine: Engine, text: str, value: str) -> None:
    assert secrets(engine, text) == [value]


@pytest.mark.parametrize(
    "value",
    ["hmac-sha256", "aes-256-gcm", "v2.1.0", "acme/token-service:1.4.2", "application/json", "getpass.getpass()",
     "config/credentials.yml", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
     "arn:aws:secretsmanager:eu-west-1:123456789012:secret:db", "${DB_PASSWORD}", "2026-11-30"],
)  # fmt: skip
@pytest.mark.parametrize(
    "written",
    ["db_password = {}", 'db_password = "{}"', "the db password is {}", "password: {}", '{{"password": "{}"}}',
     'os.environ.get("DB_PASSWORD") or "{}"', "| db_password | {} |"],
)  # fmt: skip
def test_what_names_a_thing_is_no_password(engine: Engine, written: str, value: str) -> None:
    assert secrets(engine, written.format(value)) == []


def test_addresses_of_documentation_with_a_word_for_a_password_are_samples(engine: Engine) -> None:
    assert secrets(engine, 'open("http://evil:thing@example.com")') == []
    assert secrets(engine, "token ghp_EXAMPLENOTAREALGITHUBTOKEN0000000000 ok") == []
    assert secrets(engine, "http://svc:Harbor#copper88@example.com/") == ["Harbor#copper88"]
