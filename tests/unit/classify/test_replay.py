"""Deciding again from stored records: equal to what was decided live, fast, and readable."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from gateway.classify.replay import Report, object_facts, replay, request_facts
from gateway.contract import EvaluationRecordV1
from gateway.egress.dossier import Dossier, Surroundings
from gateway.egress.records import FragmentCache
from gateway.egress.refusing import effect_of
from gateway.ports import OutboundRequest, Peer
from gateway.providers import registry
from tests.support.evaluation import ADAPTERS, Session, policy, rules_of

SECRET = "ghp_" + "aB3dE5fG7h" * 3 + "aB3dE5"
MAIL = "alice@corp.org"
HOLD = 'when = { type = "email" }\nthen = { disposition = "quarantine", reason_codes = ["custom.held"] }'
AT_NIGHT = (
    'when = { category = "pii", time = { from = 19:00:00, to = 07:00:00 } }\n'
    'then = { disposition = "deny", reason_codes = ["custom.night"] }'
)
SURROUNDINGS = Surroundings(
    detectors=("tiny-1",),
    engine="tiny",
    fragments=FragmentCache(("tiny", "1.0.0")),
    new_id=lambda: "0" * 32,
    digest_key=lambda project: b"k" * 32,
    url=lambda request: f"https://{request.host}:443/",
)


def stored(session: Session, body: Any, *, number: int = 0, rewritable: bool = True) -> dict[str, Any]:
    """The evaluation record of one request, as it would be stored."""
    data = json.dumps(body).encode()
    request = OutboundRequest(
        f"request-{number}",
        Peer("acme"),
        "POST",
        "https",
        "api.anthropic.com",
        443,
        "/v1/messages",
        (),
        data,
    )
    dossier = Dossier(
        request=request,
        adapter=registry.find(ADAPTERS, request.host, "/v1/messages"),
        policy=session.rules,
        surroundings=SURROUNDINGS,
        time="2027-01-15T12:00:00.000000Z",
        started=0,
        monotonic_us=lambda: 0,
    )
    found = session.send(data, rewritable=rewritable)
    dossier.model = "m"
    effect = "rewritten" if found.rewritten else "forwarded"
    effect = effect if found.delivered else effect_of(found.objects)
    digest = "sha256:" + "a" * 64 if found.delivered else None
    evidence = dossier.evidence(found.objects, found.reason_codes, effect, digest, len(data))
    record = next(r for r in evidence.records if r.kind == "evaluation")
    whole = b"".join(record.parts)
    EvaluationRecordV1.from_json(whole)
    document: dict[str, Any] = orjson.loads(whole)
    return document


def ask(*texts: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text} for text in texts], **more}


BODIES = [
    ask("clean"),
    ask(f"key {SECRET}"),
    ask(f"mail {MAIL}", f"and {MAIL} {SECRET}"),
    ask("hi", metadata={"user_id": MAIL}),
    ask("hi", model=SECRET),
    {"model": "m", "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": f"{MAIL}"}]}]},
]  # fmt: skip
POLICIES = {
    "default": policy(),
    "strict": policy("strict"),
    "layered": rules_of(HOLD),
    "developer": policy(mode="developer"),
}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("rewritable", [True, False])
def test_a_replay_of_the_same_policy_changes_nothing(name: str, rewritable: bool) -> None:
    rules = POLICIES[name]
    records = [stored(Session(rules=rules), body, rewritable=rewritable) for body in BODIES]
    report = replay(rules, records)

    assert report.requests == len(BODIES)
    assert report.document()["differences"] == []
    assert report.same + report.bound == report.objects


@pytest.mark.parametrize("old", POLICIES)
@pytest.mark.parametrize("new", POLICIES)
def test_a_replay_says_what_live_evaluation_would(old: str, new: str) -> None:
    """Every object gets, from the records of one policy, the disposition that it gets live under the other."""
    live = [stored(Session(rules=POLICIES[new]), body) for body in BODIES]
    before = [stored(Session(rules=POLICIES[old]), body) for body in BODIES]
    report = replay(POLICIES[new], before)
    changed = sum(
        was["disposition"] != now["disposition"]
        for a, b in zip(before, live, strict=True)
        for was, now in zip(a["objects"], b["objects"], strict=True)
    )

    assert report.objects - report.same - report.bound == changed
    assert sum(report.effects.values()) == sum(
        a["effect"] != b["effect"] and changed_somewhere(a, b) for a, b in zip(before, live, strict=True)
    )


def changed_somewhere(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return any(x["disposition"] != y["disposition"] for x, y in zip(a["objects"], b["objects"], strict=True))


def test_facts_of_a_record_are_those_that_rules_read() -> None:
    record = stored(Session(), ask(f"key {SECRET}"), rewritable=False)
    item = next(o for o in record["objects"] if o["findings"])

    assert item["rewritable"] is False
    assert object_facts(item).rewritable is False
    assert object_facts(item).findings[0].type == "github_token"
    assert request_facts(record, "governed").provider == "anthropic"
    assert request_facts(record, "governed").model == "m"


def test_the_report_names_rules_and_places() -> None:
    records = [stored(Session(), ask(f"mail {MAIL}"), number=n) for n in range(3)]
    document = replay(rules_of(HOLD), records).document()

    (found,) = document["differences"]
    assert (found["change"], found["rule"], found["objects"]) == ("hold", "layer.r0", 3)
    assert found["examples"][0] == {"receipt": records[0]["receipt"], "pointer": "/messages/0/content"}
    assert MAIL not in json.dumps(document)


def test_what_people_and_history_decided_stays() -> None:
    record = stored(Session(), ask(f"mail {MAIL}"))
    for item in record["objects"]:
        item["rules"] = [*item["rules"], "review:q-1.2"]

    report = replay(rules_of(AT_NIGHT, HOLD), [record])
    assert report.bound == report.objects
    assert report.document()["differences"] == []


def test_ten_thousand_decisions_take_seconds() -> None:
    records = [stored(Session(), body, number=n) for n, body in enumerate(BODIES)]

    def many() -> Iterator[dict[str, Any]]:
        for n in range(3500):
            yield {
                **records[n % len(records)],
                "time": f"2027-01-15T12:{n // 60 % 60:02}:{n % 60:02}.000000Z",
            }

    began = time.process_time()
    report: Report = replay(rules_of(HOLD, AT_NIGHT), many())

    assert report.objects >= 10_000
    assert time.process_time() - began < 10
