"""Operation of a running gateway: kill switch, budgets, reloading under load, signed bundles."""

from __future__ import annotations

import asyncio
import os
from base64 import b64encode
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.app.policies import load_bundles, sign_bundle, transformers_of
from gateway.config import parse
from gateway.errors import EvidenceError, PolicyError
from gateway.evidence.sign import Ed25519Signer, verifier_key
from tests.integration.test_review import Control, layer, settings
from tests.support.gateway import Bench, gateway
from tests.support.waiting import eventually

MAIL = "alice.meyer@northwind-traders.org"


def ask(text: str = "hi") -> dict[str, Any]:
    return {"model": "claude-x", "max_tokens": 5, "messages": [{"role": "user", "content": text}]}


def rule(word: str) -> str:
    """Every request gets this reason code, and a mail address is denied under the even ones."""
    return (
        f'[[rule]]\nid = "mark.{word}"\nwhy = "w"\nwhen = {{ kind = "text" }}\n'
        f'then = {{ disposition = "allow", reason_codes = ["mark.{word}"] }}\n'
        f'[[rule]]\nid = "also.{word}"\nwhy = "w"\nwhen = {{ kind = "parameters" }}\n'
        f'then = {{ disposition = "allow", reason_codes = ["mark.{word}"] }}\n'
    )


async def test_kill_switch_by_file_and_api_for_all_and_for_one_project(tmp_path: Path) -> None:
    document = settings(tmp_path)
    document["reviewers"]["ann"]["roles"] = ["operate"]
    async with gateway(tmp_path, document) as bench:
        ann, bob = Control(bench), Control(bench, "bob")
        before = await bench.send(ask())
        (bench.state / "kill").write_bytes(b"")
        everything = await bench.send(ask())
        (bench.state / "kill").write_text('{"projects": ["other"]}')
        others = await bench.send(ask())
        turned = await ann("POST", "/v1/kill", {"on": True, "project": "default"})
        mine = await bench.send(ask())
        assert (await bob("POST", "/v1/kill", {"on": False}))[0] == 403
        assert (await ann("POST", "/v1/kill", {"on": "yes"}))[0] == 400
        off = await ann("POST", "/v1/kill", {"on": False})
        after = await bench.send(ask())
        (bench.state / "kill").write_text('{"project": "typo"}')
        unreadable = await bench.send(ask())
        rows = await bench.rows()

    assert [r.status for r in (before, others, after)] == [200, 200, 200]
    for stopped in (everything, mine, unreadable):
        assert stopped.status == 503
        assert "policy.kill_switch" in stopped.body.decode()
        assert stopped.header("x-should-retry") == "false"
        assert not stopped.header("retry-after")
    assert turned[1] == {"all": False, "projects": ["default", "other"], "principals": []}
    assert off[1] == {"all": False, "projects": [], "principals": []}
    assert len(bench.arrived) == 3
    assert [row["effect"] for row in rows].count("refused") == 3


async def test_content_of_a_restricted_project_stays_here_and_rules_know_its_classification(
    tmp_path: Path,
) -> None:
    rules = (
        '[[rule]]\nid = "told.confidential"\nwhy = "w"\nwhen = { classification = "confidential", kind = "text" }\n'
        'then = { disposition = "allow", reason_codes = ["classification.flagged"] }\n'
    )
    document = {
        "policy": {"bundles": ["policies/default", layer(tmp_path, rules)], "poll_s": 0},
        "projects": {
            "lab": {"classification": "restricted"},
            "shop": {"classification": "confidential"},
            "blog": {},
        },
    }
    async with gateway(tmp_path, document) as bench:
        replies = [await bench.send(ask(), user=name) for name in ("lab", "shop", "blog")]
        rows = await bench.rows()

    assert [r.status for r in replies] == [400, 200, 200]
    assert "destination.remote_restricted" in replies[0].body.decode()
    texts = [o for row in rows for o in row["evaluation"]["objects"] if o["kind"] == "text"]
    assert [o.get("classification") for o in texts] == [None, "confidential", "restricted"]
    assert ["classification.flagged" in o["reason_codes"] for o in texts] == [False, True, False]


async def test_in_shadow_a_denial_is_only_said_but_nothing_leaves_without_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = (
        '[[rule]]\nid = "no.mail"\nwhy = "w"\nwhen = { type = "email" }\n'
        'then = { disposition = "deny", reason_codes = ["pii.blocked"] }\n'
    )
    document = {
        "policy": {
            "bundles": ["policies/default", layer(tmp_path, rules)],
            "enforcement": "shadow",
            "poll_s": 0,
        }
    }

    async def full(_records: Any, _row: Any = None) -> None:
        raise EvidenceError("evidence.unavailable", "the disk is full")

    async with gateway(tmp_path, document) as bench:
        delivered = await bench.send(ask(f"mail {MAIL}"))
        (row,) = await bench.rows()
        monkeypatch.setattr(
            type(bench.running.core.egress.store), "append", lambda _self, *given: full(*given)
        )
        refused = await bench.send(ask(f"mail {MAIL}"))
        arrived = len(bench.arrived)
        monkeypatch.undo()

    assert (delivered.status, refused.status, arrived) == (200, 503, 1)
    assert MAIL.encode() in bytes(bench.arrived[0].body)
    (said,) = [o for o in row["evaluation"]["objects"] if o["reason_codes"]]
    assert (said["disposition"], said["reason_codes"]) == ("allow", ["shadow.would_deny"])
    assert row["evaluation"]["enforcement"] == "shadow"
    assert row["effect"] == "forwarded"


async def test_a_budget_that_is_used_up_refuses(tmp_path: Path) -> None:
    document = {
        "budgets": {
            "few": {"requests": 2, "window_s": 1_000_000},
            "small": {"bytes": 200, "per": "gateway", "window_s": 1_000_000},
        }
    }
    async with gateway(tmp_path, document) as bench:
        large = await bench.send(ask("x" * 300))
        replies = [await bench.send(ask()) for _ in range(3)]

    assert (large.status, [r.status for r in replies]) == (400, [200, 200, 400])
    assert "budget.bytes" in large.body.decode()
    assert "budget." in replies[2].body.decode()
    assert replies[2].header("x-should-retry") == "false"


async def test_tokens_count_by_what_the_provider_said_and_over_a_restart(tmp_path: Path) -> None:
    document = {"budgets": {"few": {"tokens": 1, "window_s": 31_536_000}}}
    async with gateway(tmp_path, document) as bench:
        first = await bench.send(ask())
        await bench.rows()
        second = await bench.send(ask())
    async with gateway(tmp_path, document) as bench:
        third = await bench.send(ask())
        told = await _budgets(bench)

    assert [r.status for r in (first, second, third)] == [200, 400, 400]
    assert "budget.tokens" in third.body.decode()
    assert third.header("x-should-retry") == "false"
    (row,) = told["items"]
    assert (row["budget"], row["of"], row["limits"]["tokens"]) == ("few", "default", 1)
    assert row["used"]["tokens"] > 0
    assert row["used"]["requests"] == 1


async def _budgets(bench: Bench) -> Any:
    token = (bench.state / "control.token").read_text().strip()
    url = f"http://127.0.0.1:{bench.running.control.port}/v1/budgets"
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {token}"}) as client:
        return (await client.get(url)).json()


async def _traffic(bench: Bench, stop: asyncio.Event, replies: list[Any]) -> None:
    while not stop.is_set():
        replies.append(await bench.send(ask(MAIL)))


RELOADS = int(os.environ.get("RELOADS", "24"))


async def test_reloads_under_traffic_are_whole_or_nothing(
    tmp_path: Path, signed: tuple[Path, Ed25519Signer, dict[str, Any]]
) -> None:
    """Valid, invalid, truncated and wrongly signed bundles in turn: each request is decided under one valid revision.

    `make test-reload` does it 200 times.
    """
    folder, signer, document = signed
    document["policy"]["poll_s"] = 0
    nobody = Ed25519Signer(Ed25519PrivateKey.generate(), "policy")
    sign_bundle(folder, signer)
    versions, path = ["aaa", "bbb"], folder / "rules" / "r.toml"
    valid = 0
    async with gateway(tmp_path, document) as bench:
        policy, replies, stop = bench.running.core.policy, [], asyncio.Event()
        digests = {policy().digest}
        sending = [asyncio.ensure_future(_traffic(bench, stop, replies)) for _ in range(2)]
        for number in range(RELOADS):
            kind, text = ("valid", "invalid", "truncated", "signature")[number % 4], rule(versions[valid % 2])
            path.write_text(
                {"invalid": "[[rule]]\n" + text, "truncated": text[: len(text) // 2]}.get(kind, text)
            )
            if kind in {"valid", "signature"}:
                sign_bundle(folder, signer if kind == "valid" else nobody)
            before = policy()
            result = await policy.reload()
            assert result.ok is (kind == "valid"), kind
            if kind == "valid":
                valid += 1
                digests.add(policy().digest)
            else:
                assert policy() is before, kind
                assert result.problems, kind
            await asyncio.sleep(0.02)
        stop.set()
        await asyncio.gather(*sending)
        rows = await _all_rows(bench)
        metrics = bench.running.core.metrics.render().decode()

    assert len(rows) == len(replies) > 0
    assert {reply.status for reply in replies} == {200}
    assert not any(MAIL.encode() in bytes(arrived.body) for arrived in bench.arrived)
    for row in rows:
        marks = {code for item in row["evaluation"]["objects"] for code in item["reason_codes"]} & {
            "mark.aaa",
            "mark.bbb",
        }
        assert len(marks) == 1
        assert row["evaluation"]["bundles"][0]["digest"] == row["receipt"]["policy"]["digest"]
        assert row["receipt"]["policy"]["digest"] in digests
    assert f'gateway_policy_reloads_total{{result="failed"}} {RELOADS - valid}.0' in metrics
    assert "gateway_policy_stale 1.0" in metrics


async def _all_rows(bench: Bench) -> list[dict[str, Any]]:
    await bench.rows()
    found: list[dict[str, Any]] = []
    query: dict[str, Any] = {"limit": 1000}
    while True:
        rows, cursor = await bench.running.core.egress.store.rows(query)
        found += rows
        if cursor is None:
            return found
        query["after"] = cursor


async def test_a_changed_file_is_found_and_a_broken_one_changes_nothing(tmp_path: Path) -> None:
    folder = Path(layer(tmp_path, rule("aaa")))
    document = {"policy": {"bundles": ["policies/default", str(folder)], "poll_s": 1}}
    async with gateway(tmp_path, document) as bench:
        policy = bench.running.core.policy
        first = policy().digest
        (folder / "rules" / "r.toml").write_text(rule("bbb"))
        await eventually(lambda: policy().digest != first)
        second = policy()
        (folder / "rules" / "r.toml").write_text("broken")
        await eventually(lambda: "policy_reload_failed" in bench.log.getvalue())

    assert policy() is second
    assert "policy_reloaded" in bench.log.getvalue()


@pytest.fixture
def signed(tmp_path: Path) -> tuple[Path, Ed25519Signer, dict[str, Any]]:
    folder = Path(layer(tmp_path, rule("aaa")))
    signer = Ed25519Signer(Ed25519PrivateKey.generate(), "policy")
    (tmp_path / "policy.pub").write_text(verifier_key("policy", signer.public_key))
    document = {
        "policy": {
            "bundles": ["policies/default", str(folder)],
            "public_key": str(tmp_path / "policy.pub"),
        }
    }
    return folder, signer, document


def test_bundles_must_be_signed_where_a_key_is_configured(
    tmp_path: Path, signed: tuple[Path, Ed25519Signer, dict[str, Any]]
) -> None:
    folder, signer, document = signed
    config = parse(document, tmp_path, {"HOME": str(tmp_path)})

    def load() -> str:
        return load_bundles(config, config.policy.folders, transformers_of(config)).digest

    with pytest.raises(PolicyError, match="no signature"):
        load()
    sign_bundle(folder, signer)
    good = load()
    (folder / "rules" / "r.toml").write_text("# a comment changes no revision\n" + rule("aaa"))
    assert load() == good
    (folder / "rules" / "r.toml").write_text(rule("bbb"))
    with pytest.raises(PolicyError, match="not one of the configured key"):
        load()
    sign_bundle(folder, Ed25519Signer(Ed25519PrivateKey.generate(), "policy"))
    with pytest.raises(PolicyError, match="not one of the configured key"):
        load()
    (folder / "bundle.sig").write_text(b64encode(b"\0" * 64).decode())
    with pytest.raises(PolicyError, match="not one of the configured key"):
        load()


def test_rules_that_name_what_is_not_active_are_errors(tmp_path: Path) -> None:
    bad = (
        '[[rule]]\nid = "a.b"\nwhy = "w"\nwhen = { kind = "text" }\nthen = { disposition = "allow_minimized",'
        ' reason_codes = ["x.y"], transformations = ["selection"], parameters = PARAMETERS }\n'
    )
    for parameters, said in (
        ('{ minimiser = "nobody" }', "no minimiser 'nobody' is active"),
        ('{ minimiser = "head_tail", lines = 3 }', "parameter 'lines' is none of"),
        ('{ minimiser = "match_lines", pattern = "(" }', "no RE2 expression"),
        ('{ minimiser = "drop_fields" }', "needs the parameter 'fields'"),
    ):
        folder = layer(tmp_path, bad.replace("PARAMETERS", parameters))
        config = parse(
            {"policy": {"bundles": ["policies/default", folder]}}, tmp_path, {"HOME": str(tmp_path)}
        )
        with pytest.raises(PolicyError, match="rule 'a\\.b'") as caught:
            load_bundles(config, config.policy.folders, transformers_of(config))
        assert said in str(caught.value)


async def test_a_policy_on_trial_is_recorded_and_changes_nothing(tmp_path: Path) -> None:
    stricter = (
        '[[rule]]\nid = "trial.mail"\nwhy = "w"\nwhen = { type = "email" }\n'
        'then = { disposition = "deny", reason_codes = ["pii.blocked"] }\n'
    )
    document = {"policy": {"trial": ["policies/default", layer(tmp_path, stricter)], "poll_s": 0}}
    async with gateway(tmp_path, document) as bench:
        reply = await bench.send(ask(f"mail {MAIL}"))
        clean = await bench.send(ask())
        rows = await bench.rows()
        metrics = bench.running.core.metrics.render().decode()

    assert (reply.status, clean.status) == (200, 200)
    assert rows[1]["evaluation"]["shadow_reason_codes"] == [
        "pii.blocked",
        "pii.redacted",
        "shadow.would_deny",
    ]
    assert rows[1]["effect"] == "rewritten"
    assert "shadow_reason_codes" not in rows[0]["evaluation"]
    assert 'gateway_shadow_objects_total{code="shadow.would_deny"} 1.0' in metrics
