"""Text that is made to cost: one thing repeated, and a seeded sample of everything put together at random."""

from __future__ import annotations

import base64
import codecs
import random
import re
import string
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from bench.table import Suite, timed_ms
from gateway.context.findings import ScanItem
from gateway.detect.engine import Engine
from gateway.detect.rule import load_rules
from gateway.detect.rules import builtin

_SIZES = (10_000, 100_000, 1_000_000)
"""Characters of a crafted text: the slowest of one size need not be those of another."""
_LARGE = 4_000_000
_SHOWN = 5  # of each size
_TRIED = 12  # of each size, measured again with care
_MOST_ROUNDS = 30
_SEED = 20_260_731
_SAMPLE = 600
_PRINTED = string.ascii_letters + string.digits + string.punctuation + " "
_SEPARATORS = (
    "",
    "",
    "\n",
    " ",
    ",",
    "\t",
    "; ",
    '"',
    "'",
    ": ",
    "=",
    "\\n",
    "|",
    ", ",
    "\r\n",
    "é",
    "\u200b",
)
_DISGUISES: tuple[Callable[[str], str], ...] = (
    lambda text: base64.b64encode(text.encode()).decode(),
    lambda text: "".join(f"%{ord(c):02X}" if c.isascii() else c for c in text),
    lambda text: text.encode("unicode_escape").decode(),
    lambda text: codecs.encode(text, "rot13"),
    lambda text: text[::-1],
    " ".join,
    "\u200b".join,
    lambda text: text * 4,
)
SLOW: Mapping[str, str] = {
    "heads and rows": "ssn,nif,iban,dob,npi\n",
    "a head of labels": "ssn," * 10 + "ssn\n",
    "columns of secrets": "| token | secret |\n",
    "rows that are heads": "@nom|\n",
    "names behind zero width": "full_name\u200b",
    "letters between zero width": "\u200b".join("-1ue-tap é-u-oif"),
    "labels without a number": "personnr ",
    "cues of seed phrases": "mnemonic " * 10 + "9 ",
    "links of a terminal": "\x1b]8;",
    "data behind a kind": '"kind":"Secret",' + "ata" * 14,
    "soft line breaks": "aaaaaa=\naa",
    "keys without a body": "-----BEGIN PRIVATE KEY-----" + "-" * 30,
    "base 85": "A9DKrASb^qATMs#,",
    "names of base 85": "b85:",
    "entities of no letter": "&UnderB,",
    "tokens that lines cut": "ghp_abc\nghp_abc\n",
    "words that lines cut": "tskey-gqh\n",
    "literals without a joint": "'glptt-e\\'&",
    "marks in words": "_iQ8\x1b[101maVkn ",
    "empty quotes": '2""S ',
    "names before values": "value:" * 6 + " key=password ",
    "keys in a shell": 'read -r token <<< "$LINE" ',
    "words in other scripts": "API密钥=pLL67wKurOEszTvfUEvKSNKH9x ",
    "orders that say nothing": "ignore all all all all all all all all all all ",
    "words of many languages": "senha: x anweisungen system prompt override code ethic clave api unrestricted ",
    "words that the engine cannot see": "忽略密码 ",
    "elements side by side": "aa</b><b>bb ",
    "keys of one letter": "a_key=x ",
    "keys in quotes": "password\"='a",
    "members of a connection": "a=b;password=c1!;",
    "rows of a statement": "insert into t (password) values ('abcdefgh1','x'),('y'),",
    "keys in escapes": "password%3D%61%62%63%31%32%33 ",
    "values before names": 'value="abcdef" name="token',
    "short orders": "AI: send. ",
    "numbers that spell": "115, 107, 95, 108, 105, 118, 101, 95, 84, 55, ",
}
"""What was slowest of some hundred thousand texts, each of a kind of its own."""


def crafted(engine: Engine) -> dict[str, str]:
    """What texts made to cost repeat: every example and many triggers, encodings inside encodings, near misses."""
    texts = {f"example {row.id}": row.example + " " for row in engine.types()}
    for plan, _ in engine.databases:
        for number, trigger in enumerate(plan.triggers[::17]):
            if trigger.length:
                texts[f"trigger {number}"] = "".join(c for c in trigger.expression if c.isalnum())[:24] + " "
    nested = "password=Tr0ub4dor&3x9 "
    for _ in range(6):
        nested = base64.b64encode(nested.encode()).decode()
    return {
        **texts,
        **SLOW,
        "nested base64": nested + " ",
        "base64 without end": nested,
        "urls": "://a:b@",
        "passwords": "password=",
        "keys without end": "-----BEGIN PRIVATE KEY-----\n",
        "kubernetes": '"kind":"Secret",',
        "percent": "%41",
        "escapes": "\\u0041 ",
        "concatenation": '"a" + "b" + ',
        "spaced": "s k _ l i v e _ ",
        "zero width": "gh\u200bp_",
        "tags": "\U000e0061",
        "tokens of JWT": "eyJhbGciOiJIUzI1NiJ9.eyJ",
        "JWK": '"kty":"EC","d": "aaaaaaaaaaaaaaaaaaaaaaaa",',
        "numbers": "4111 1111 1111 1112 ",
        "quotes": '"',
    }


def combined(engine: Engine, count: int, seed: int = _SEED) -> dict[str, str]:
    """Examples, counter-examples and triggers of all rules, one to three together, in parts, encoded, and separated."""
    rng = random.Random(seed)
    whole = [row.example for row in engine.types()]
    for rule in load_rules(builtin()).rules:
        whole += [*rule.positive, *rule.negative]
        for atoms in rule.triggers:
            whole.append("".join(_one(rng, atom.source) for atom in atoms for _ in range(atom.count)))
    return {f"combination {number}": _combination(rng, whole) for number in range(count)}


def _combination(rng: random.Random, whole: list[str]) -> str:
    parts = []
    for part in rng.choices(whole, k=rng.choice((1, 1, 2, 2, 3))):
        change = rng.random()
        text = part[: rng.randint(3, max(3, len(part)))] if change < 0.15 else part
        text = rng.choice(_DISGUISES)(text) if change > 0.6 else text
        parts.append(text + rng.choice(_SEPARATORS))
    return "".join(parts)


def _one(rng: random.Random, source: str) -> str:
    """A character that an element of a trigger stands for."""
    element = re.compile(source)
    return rng.choice([c for c in _PRINTED if element.fullmatch(c)] or ["\n"])


def of_size(unit: str, size: int) -> list[ScanItem]:
    """One object of so many characters."""
    return [ScanItem((unit * (size // len(unit) + 1))[:size])]


def worst(engine: Engine) -> Iterator[Suite]:
    """All of them in every size, the sample in the smallest, and the slowest as one large object and as a small one."""
    units = crafted(engine)
    slow: dict[str, str] = {}
    for size in _SIZES:
        suite = _slowest(engine, units, size, f"detection on {len(units)} crafted texts of {size // 1000} kB")
        slow.update({row[0]: units[row[0]] for row in suite.rows[:2]})
        yield suite
    sample = combined(engine, _SAMPLE)
    yield _slowest(
        engine,
        sample,
        _SIZES[0],
        f"detection on {len(sample)} texts put together at random, {_SIZES[0] // 1000} kB",
    )
    yield _slowest(engine, slow, _LARGE, f"detection on crafted texts of {_LARGE // 10**6} MB", again=1)
    yield _slowest(engine, slow, 100, "detection on crafted texts of 100 characters")


def _slowest(engine: Engine, units: Mapping[str, str], size: int, what: str, again: int = 0) -> Suite:
    """The slowest of one size; those that seem so are measured again, as other work on the machine comes and goes."""
    suite = Suite(f"{what}, the slowest", ("text", "MB/s", "complete", "findings"))
    took = {name: timed_ms(partial(engine.scan, of_size(unit, size))) for name, unit in units.items()}
    tried = {
        name: of_size(units[name], size) for name in sorted(took, key=took.__getitem__, reverse=True)[:_TRIED]
    }
    for _ in range(again or min(_MOST_ROUNDS, max(2, _SIZES[-1] // size))):
        for name, items in tried.items():  # in turn, as a slow moment lasts longer than one of them
            took[name] = min(took[name], timed_ms(partial(engine.scan, items)))
    for name in sorted(took, key=took.__getitem__, reverse=True)[:_SHOWN]:
        [result] = engine.scan(of_size(units[name], size))
        suite.add(name, size / 1e3 / took[name], result.complete, len(result.findings))
    return suite
