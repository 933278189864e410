"""`inspect`, `scan`, `ca` and `doctor`, without a gateway."""

import base64
import io
import json
import sys
from pathlib import Path

import pytest

from gateway.cli.demo_script import github_token
from tests.unit.cli.conftest import Run

URL = "https://api.openai.com/v1/chat/completions"


def request(text: str) -> dict[str, object]:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    return {"method": "POST", "url": URL, "headers": {"content-type": "application/json"}, "body": body}


def test_inspect_shows_what_would_leave(egress: Run, folder: Path) -> None:
    token = github_token()
    (folder / "one.json").write_text(json.dumps(request(f"use {token} now")))
    done = egress("inspect", "one.json")
    result = json.loads(done.out)

    assert done.status == 0
    assert (result["outcome"], result["effect"]) == ("delivered", "rewritten")
    assert token.encode() not in base64.b64decode(result["body_b64"])
    assert token not in done.out + done.err


def test_inspect_reads_many_and_can_answer_with_its_status(egress: Run, folder: Path) -> None:
    denied = request("x") | {"body": '{"a":1,"a":2}'}
    many = [request("hello"), denied]
    (folder / "many.jsonl").write_text("".join(json.dumps(one) + "\n" for one in many))
    done = egress("inspect", "--jsonl", "many.jsonl")

    assert done.status == 0
    assert [json.loads(line)["effect"] for line in done.out.splitlines()] == ["forwarded", "refused"]
    assert egress("inspect", "--jsonl", "--exit-code", "many.jsonl").status == 1


@pytest.mark.parametrize("text", ["", "{", "[]", '{"url": 1}', '{"surprise": true}'])
def test_input_that_is_no_request_is_status_2(egress: Run, folder: Path, text: str) -> None:
    (folder / "bad.json").write_text(text)
    done = egress("inspect", "bad.json")

    assert done.status == 2
    assert "Traceback" not in done.err


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    stream = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
    return stream


def test_scan_finds_by_line_and_counts_in_characters(egress: Run, stdin: io.BytesIO) -> None:
    token = github_token()
    texts = [f"ä {token}", "nothing here", "lone \ud800 surrogate"]
    stdin.write("".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in enumerate(texts)).encode())
    stdin.seek(0)
    rows = [json.loads(line) for line in egress("scan", "--jsonl").out.splitlines()]

    assert [row["id"] for row in rows] == [0, 1, 2]
    (found,) = rows[0]["findings"]
    assert (found["start"], found["end"], found["category"]) == (2, 2 + len(token), "secret")
    assert set(found) == {"type", "category", "start", "end", "confidence_milli", "detector"}
    assert rows[1]["findings"] == rows[2]["findings"] == []


def test_scan_reads_plain_text_too(egress: Run, stdin: io.BytesIO) -> None:
    stdin.write(f"the token {github_token()}\n".encode())
    stdin.seek(0)

    assert len(json.loads(egress("scan").out)["findings"]) == 1


def test_scan_refuses_lines_without_text(egress: Run, stdin: io.BytesIO) -> None:
    stdin.write(b'{"id": 1}\n')
    stdin.seek(0)

    assert egress("scan", "--jsonl").status == 2


def test_scan_lists_what_it_knows(egress: Run) -> None:
    rows = [json.loads(line) for line in egress("scan", "--types").out.splitlines()]

    assert len(rows) > 40
    assert all({"type", "category"} <= set(row) for row in rows)


def test_the_ca_is_made_once(egress: Run, folder: Path) -> None:
    path = folder / "state" / "ca.pem"
    assert egress("ca", "init").out.strip() == str(path)
    before = path.read_bytes()
    egress("ca", "init")
    facts = json.loads(egress("ca", "show", "--json").out)

    assert path.read_bytes() == before
    assert egress("ca", "show", "--pem").out.encode() == before
    assert b"PRIVATE" not in before
    assert len(facts["sha256"]) == 64
    assert facts["not_after"] in egress("ca", "show").out


def test_a_rotated_ca_is_another_one_and_the_old_key_is_gone(egress: Run, folder: Path) -> None:
    egress("ca", "init")
    key, before = folder / "state" / "keys" / "ca.key", (folder / "state" / "ca.pem").read_bytes()
    old = key.read_bytes()
    assert egress("ca", "rotate").status == 0

    assert (folder / "state" / "ca.pem").read_bytes() != before
    assert not any(old == path.read_bytes() for path in key.parent.rglob("*") if path.is_file())


def test_doctor_names_what_is_not_right_and_what_to_do(egress: Run, folder: Path) -> None:
    before = egress("doctor")
    assert before.status == 3
    assert "egress ca init" in before.out
    egress("ca", "init")
    (folder / "state").chmod(0o755)
    checks = {check["name"]: check for check in json.loads(egress("doctor", "--json").out)["checks"]}

    assert checks["ca"]["ok"]
    assert checks["policy"]["ok"]
    assert not checks["state"]["ok"]
    assert "chmod 700" in checks["state"]["advice"]
    assert not checks["gateway"]["ok"]


def test_doctor_reports_a_bundle_that_is_not_valid_and_goes_on(egress: Run, folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "gateway.toml").write_text('[state]\ndir = "state"\n[policy]\nbundles = ["mine"]\n')
    checks = {check["name"]: check for check in json.loads(egress("doctor", "--json").out)["checks"]}

    assert not checks["policy"]["ok"]
    assert "gateway" in checks


def test_a_name_that_nothing_carries_is_stopped_and_told(egress: Run) -> None:
    typed = egress("kill", "on", "--project", "acme-wbe")
    known = egress("kill", "on", "--project", "default", "--json")

    assert (typed.status, typed.out) == (0, "stopped: projects acme-wbe\n")
    assert "no project acme-wbe" in typed.err
    assert known.err == ""
    assert json.loads(known.out)["projects"] == ["acme-wbe", "default"]
