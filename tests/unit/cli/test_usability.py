"""What a person meets who gives a command something else than it wants: a status that says so, and what to do."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from gateway.cli.examples import EXAMPLES
from gateway.cli.main import cli
from gateway.cli.receipts import STATES
from gateway.contract import ContextReceiptStateV1
from gateway.store.lock import StateLock
from tests.unit.cli.conftest import CONFIG, Run
from tests.unit.cli.test_upkeep import write


def leaves(command: click.Command, path: str = "") -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            yield from leaves(each, f"{path} {name}".strip())
    else:
        yield path, command


LEAVES = dict(leaves(cli))


@pytest.fixture
def log(folder: Path) -> Path:
    """A state folder with six receipts."""
    (folder / "state").mkdir(mode=0o700)
    asyncio.run(write(folder / "state", range(6)))
    return folder


def ask(**more: Any) -> str:
    body = {"model": "claude-x", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
    return json.dumps({"url": "https://api.anthropic.com/v1/messages", "body": body, **more})


@pytest.mark.parametrize("path", LEAVES)
def test_every_option_and_command_says_what_it_is(path: str) -> None:
    command = LEAVES[path]
    assert command.help, path
    unsaid = [p.opts[0] for p in command.params if isinstance(p, click.Option) and not p.help]
    assert not unsaid, unsaid


@pytest.mark.parametrize("path", LEAVES)
def test_help_is_there_under_both_names_and_an_unknown_option_is_usage(egress: Run, path: str) -> None:
    words = path.split()
    for flag in ("-h", "--help"):
        done = egress(*words, flag)
        assert (done.status, done.err) == (0, "")
        assert done.out.startswith(f"Usage: egress {path}")
    done = egress(*words, "--no-such-option")
    assert (done.status, done.out) == (2, "")
    assert "no-such-option" in done.err


@pytest.mark.parametrize("words", [("nope",), ("receipts", "nope"), ("ca", "nope"), ("recipts", "list")])
def test_an_unknown_command_is_usage(egress: Run, words: tuple[str, ...]) -> None:
    done = egress(*words)
    assert done.status == 2
    assert "No such command" in done.err


def test_states_are_those_of_the_contract(egress: Run, log: Path) -> None:
    assert tuple(str(state) for state in ContextReceiptStateV1) == STATES
    assert egress("receipts", "list", "--state", "prepared").status == 0
    wrong = egress("receipts", "list", "--state", "foo")
    assert wrong.status == 2
    assert "handed_off" in wrong.err


def test_an_export_of_nothing_is_no_silent_success(egress: Run, log: Path) -> None:
    target = log / "bundle"
    target.write_text("what was there")
    for arguments in (
        ("--receipt", "sha256:" + "0" * 64),
        ("--project", "nobody"),
        ("--receipt", "sha256:0000"),
    ):
        done = egress("receipts", "export", *arguments, "-o", str(target))
        assert done.status == 1, arguments
        assert arguments[1] in done.err
        assert target.read_text() == "what was there"
    empty = egress("receipts", "export", "--since", "2999-01-01T00:00:00Z", "-o", str(target))
    assert empty.status == 0
    assert "empty" in empty.err
    assert egress("receipts", "export", "--object", "/a").status == 2


def test_a_receipt_is_exported_by_how_its_digest_begins(egress: Run, log: Path) -> None:
    digest = json.loads(egress("receipts", "list", "--json", "--limit", "1").out)["digest"]
    done = egress("receipts", "export", "--receipt", digest[:20], "-o", str(log / "bundle"))
    assert (done.status, done.err) == (0, "")
    assert json.loads(egress("receipts", "verify", str(log / "bundle"), "--json").out)["entries"] == 1


@pytest.mark.parametrize(
    "content", [b"", b"hello\n", b"\xff\xfe\x00", b"[1, 2]\n", b'{"a": 1}\n', b"PK\x03\x04"]
)
def test_a_file_that_is_no_bundle_is_told_from_a_bad_one(egress: Run, log: Path, content: bytes) -> None:
    (log / "file").write_bytes(content)
    done = egress("receipts", "verify", str(log / "file"))
    assert (done.status, done.out) == (2, "")
    assert "not an exported bundle" in done.err


def test_a_bundle_that_was_changed_is_still_judged(egress: Run, log: Path) -> None:
    bundle = log / "bundle"
    egress("receipts", "export", "-o", str(bundle))
    data = bundle.read_bytes()
    for changed in (data[:50], data[:-5], data.replace(b'"v":1', b'"v":2', 1), data[1:]):
        bundle.write_bytes(changed)
        assert egress("receipts", "verify", str(bundle)).status in {1, 2}
    bundle.write_bytes(data[:50])
    assert egress("receipts", "verify", str(bundle)).status == 1


@pytest.mark.parametrize(
    "content", [b"notakey", b"", b"\xff\xfe", b"-----BEGIN PUBLIC KEY-----\nxx\n-----END PUBLIC KEY-----\n"]
)
def test_what_is_no_key_or_no_checkpoint_is_usage(egress: Run, log: Path, content: bytes) -> None:
    (log / "file").write_bytes(content)
    for option in ("--key", "--older"):
        done = egress("receipts", "verify", option, str(log / "file"))
        assert (done.status, done.out) == (2, ""), option
        assert option in done.err
    assert egress("receipts", "export", "--older", str(log / "file")).status == 2


def test_who_runs_is_named(egress: Run, log: Path) -> None:
    lock = StateLock(log / "state" / "lock")
    lock.acquire()
    try:
        for workers in (1, 2):
            (log / "gateway.toml").write_text(CONFIG + f"workers = {workers}\n")
            done = egress("up")
            assert done.status == 3
            assert f"(process {os.getpid()})" in done.err
    finally:
        lock.release()


def test_files_that_others_can_read_are_closed_and_named(egress: Run, folder: Path) -> None:
    (folder / "state" / "keys").mkdir(parents=True, mode=0o755)
    (folder / "state").chmod(0o755)
    (folder / "t").write_text("t" * 40)
    (folder / "t").chmod(0o644)
    (folder / "gateway.toml").write_text(CONFIG + '[reviewers.ann]\ntoken_file = "t"\n')
    assert "reviewers.ann.token_file" not in egress("doctor").out  # one at a time: the folder first
    lock = StateLock(folder / "state" / "lock")
    lock.acquire()
    try:
        done, again = egress("up"), egress("up")
    finally:
        lock.release()
    for named in ("state.dir", "state.keys", "reviewers.ann.token_file"):
        assert f"warning: {named}: " in done.err
    assert (folder / "t").stat().st_mode & 0o777 == 0o600
    assert (folder / "state").stat().st_mode & 0o777 == 0o700
    assert "was open" not in again.err


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({"project": "nope"}, "project"),
        ({"project": "shop", "principal": "nobody"}, "project"),
        ({"project": 3}, "project"),
        ({"method": 5}, "method"),
        ({"url": "http://["}, "url"),
        ({"url": "https://h:99999999/"}, "url"),
        ({"url": "file:///etc/passwd"}, "url"),
        ({"url": "api.anthropic.com/v1/messages"}, "url"),
        ({"url": None}, "url"),
        ({"headers": []}, "headers"),
        ({"headers": {"x": None}}, "headers"),
        ({"body_b64": "###", "body": None}, "body_b64"),
        ({"body_b64": 5, "body": None}, "body_b64"),
        ({"body_b64": "aGk="}, "body_b64"),
        ({"foo": 1}, "foo"),
    ],
)
def test_inspect_names_what_is_wrong_with_a_document(
    egress: Run, folder: Path, document: dict[str, Any], named: str
) -> None:
    (folder / "gateway.toml").write_text(CONFIG + "[projects.shop]\n")
    (folder / "one.json").write_text(ask(**document))
    done = egress("inspect", "one.json")
    assert (done.status, done.out) == (2, "")
    assert named in done.err
    assert "a fault of" not in done.err


def test_inspect_knows_projects_principals_and_accounts(
    egress: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io
    import sys

    base = CONFIG + '[projects.shop]\nclassification = "restricted"\n[principals.ann]\nprojects = ["shop"]\n'
    (folder / "gateway.toml").write_text(base)

    class Given:
        buffer = io.BytesIO(b"")

        @staticmethod
        def isatty() -> bool:
            return False

        @staticmethod
        def read(_size: int = -1) -> str:
            return "sk-company-key"

    monkeypatch.setattr(sys, "stdin", Given())
    hashed = json.loads(egress("account", "hash", "--json").out)["hash"]
    (folder / "gateway.toml").write_text(
        base + f'[accounts.ours]\nprovider = "anthropic"\nhashes = ["{hashed}"]\n'
    )
    documents = {
        "ours": ask(headers={"x-api-key": "sk-company-key"}),
        "personal": ask(headers={"x-api-key": "sk-my-own"}),
        "none": ask(),
        "restricted": ask(project="shop", principal="ann", headers={"x-api-key": "sk-company-key"}),
    }
    (folder / "many.jsonl").write_text("\n".join(documents.values()))
    done = egress("inspect", "--jsonl", "many.jsonl")
    rows = dict(zip(documents, map(json.loads, done.out.splitlines()), strict=True))
    codes = {name: row["evaluation"]["reason_codes"] for name, row in rows.items()}
    assert rows["ours"]["outcome"] == "delivered"
    assert rows["ours"]["receipt"]["destination"]["account_ref"] == "ours"
    assert "account.not_allowed" in codes["personal"]
    assert "account.missing" in codes["none"]
    assert rows["restricted"]["outcome"] == "withheld"
    assert "sk-" not in done.out


@pytest.mark.parametrize(
    "text", ["yesterday", "2026-01-31", "2026-01-31T12:00:00", "2026-13-01T00:00:00Z", "5", "1w", "-2h"]
)
def test_what_is_no_instant_is_usage_before_anything_is_written(egress: Run, log: Path, text: str) -> None:
    for command in (("receipts", "list"), ("receipts", "export"), ("receipts", "statements"), ("boundary", "events"),
                    ("policy", "replay")):  # fmt: skip
        done = egress(*command, f"--since={text}")
        assert (done.status, done.out) == (2, ""), command
        assert "2h" in done.err


def test_an_instant_can_be_how_long_ago(egress: Run, log: Path) -> None:
    everything = egress("receipts", "list", "--json").out.splitlines()
    assert len(everything) == 6
    for since in ("99999d", "2026-01-01T00:00:00+02:00", "2026-01-01t00:00:00z"):
        assert len(egress("receipts", "list", "--json", "--since", since).out.splitlines()) in {0, 6}
    assert egress("receipts", "list", "--json", "--since", "99999d").out.splitlines() == everything
    assert egress("receipts", "list", "--json", "--until", "99999d").out == ""


def test_before_the_first_start_nothing_is_told_to_be_lost(egress: Run, folder: Path) -> None:
    """A person who only looks around must not be sent to their backups."""
    for command in (("receipts", "verify"), ("store", "check"), ("store", "rotate"), ("receipts", "statements")):  # fmt: skip
        done = egress(*command)
        assert done.status in {2, 3}, command
        assert "backup" not in done.err, command
    assert not (folder / "state").exists()


@pytest.mark.parametrize("content", [b"", b"two words", b"two\nlines", b"\xff\xfe", b"a\x00b"])
def test_a_file_that_holds_no_token_is_usage(egress: Run, folder: Path, content: bytes) -> None:
    (folder / "token").write_bytes(content)
    for command in (("quarantine", "list"), ("reload",), ("break-glass", "list")):
        done = egress(*command, "--as", str(folder / "token"))
        assert (done.status, done.out) == (2, "")
        assert "--as" in done.err


def test_a_variable_with_one_underscore_too_few_is_not_passed_over(
    egress: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EGRESS_LISTEN_PROXY", "127.0.0.1:9")
    done = egress("config", "check")
    assert done.status == 2
    assert "EGRESS_LISTEN__PROXY" in done.err
    monkeypatch.delenv("EGRESS_LISTEN_PROXY")
    monkeypatch.setenv("EGRESS_SOMETHING_ELSE", "1")
    assert egress("config", "check").status == 0


def test_projects_that_are_not_there_yet(egress: Run, folder: Path) -> None:
    none = egress("project", "index")
    assert (none.status, none.out) == (0, "")
    assert "egress project add" in none.err
    (folder / "gateway.toml").unlink()
    linked = egress("project", "link", "shop", "blog")
    assert linked.status == 1
    assert "egress project add shop" in linked.err


@pytest.mark.parametrize("url", ["ftp://x/", "x", "file:///etc/passwd"])
def test_a_checkpoint_goes_to_a_web_address(egress: Run, log: Path, url: str) -> None:
    for option in ("--url", "--tsa"):
        assert egress("receipts", "anchor", option, url).status == 2


def test_errors_name_no_class_of_a_language(egress: Run, log: Path) -> None:
    (log / "key").write_text("no key")
    said = [
        egress("receipts", "anchor", "--url", "http://127.0.0.1:1/").err,
        egress("policy", "sign", "--key", str(log / "key"), "default").err,
        egress("quarantine", "list").err,
        egress("receipts", "verify", "--key", str(log / "key")).err,
        egress("config", "check", "--config", str(log / "state" / "egress.db")).err,
    ]
    assert all(
        text and "Error" not in text.replace("Error: ", "") and "codec" not in text for text in said
    ), said


WRITES = {"up", "demo", "exec", "project add", "project link", "memory inbox discard"}
"""Commands that print nothing to be read by a program."""


@pytest.mark.parametrize("path", sorted(set(LEAVES) - WRITES))
def test_what_can_be_read_can_be_read_as_json(path: str) -> None:
    assert "--json" in {word for param in LEAVES[path].params for word in param.opts}


@pytest.mark.parametrize("path", sorted(EXAMPLES))
def test_examples_are_read_by_the_parser_that_they_stand_under(egress: Run, path: str) -> None:
    command: click.Command = cli if not path else LEAVES[path]
    shown = egress(*path.split(), "--help").out
    for line in EXAMPLES[path]:
        assert line in shown  # not wrapped
        found = re.search(r"(?:^|\()(egress [^|<)#]*)", line)
        assert found, line
        words = shlex.split(found[1].strip().rstrip('"'))[1:]
        name, at = "", 0
        while f"{name} {words[at]}".strip() not in LEAVES:
            name, at = f"{name} {words[at]}".strip(), at + 1
        command = LEAVES[f"{name} {words[at]}".strip()]
        assert not path or command is LEAVES[path]
        context = click.Context(command, info_name=path)
        command.make_parser(context).parse_args(words[at + 1 :])  # UsageError where there is no such option


def test_env_as_json_is_what_the_lines_say(egress: Run) -> None:
    values = json.loads(egress("env", "--json").out)
    lines = egress("env").out.splitlines()
    assert [f"export {name}='{value}'" for name, value in values.items()] == lines


@pytest.mark.parametrize("place", ["file", "file/sub", "/proc/nothing/here", "l" * 300])
def test_a_state_folder_that_cannot_be_is_named(egress: Run, folder: Path, place: str) -> None:
    (folder / "file").write_text("x")
    (folder / "file").chmod(0o644)
    (folder / "gateway.toml").write_text(CONFIG.replace('"state"', f'"{place}"'))
    for command in (("up",), ("ca", "init"), ("kill", "on"), ("env",), ("doctor",), ("exec", "--", "true")):
        done = egress(*command)
        assert done.status == (125 if command[0] == "exec" else 3), command
        assert "a fault of" not in done.err
        assert command == ("doctor",) or place.rpartition("/")[0] in done.err
    assert (folder / "file").stat().st_mode & 0o777 == 0o644


def test_the_doctor_tells_what_the_running_gateway_goes_by(
    egress: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gateway.cli import doctor

    lifted = {"id": "b-1", "expires": "2027-01-01T00:00:00Z"}
    said = {"status": "ok", "policy": "stale", "break_glass": [lifted], "degraded": ["notify.webhook"]}
    monkeypatch.setattr(doctor, "ask_health", lambda _config: said)
    monkeypatch.setattr(doctor, "_in_use", lambda _address: True)
    egress("ca", "init")
    done = egress("doctor", "--json")
    checks = {each["name"]: each for each in json.loads(done.out)["checks"]}
    assert done.status == 3
    assert not checks["reload"]["ok"]
    assert "egress policy check" in checks["reload"]["advice"]
    assert checks["break-glass"]["ok"]
    assert "egress break-glass end b-1" in checks["break-glass"]["advice"]
    assert "notify.webhook" in checks["gateway"]["says"]
    assert not checks["canary"]["ok"]  # no gateway was ever started here
    assert "started once" in checks["canary"]["advice"]
    monkeypatch.setattr(
        doctor, "ask_health", lambda _config: {"status": "unavailable", "reason": "the disk is full"}
    )
    assert "the disk is full" in egress("doctor").out


def test_the_doctor_tells_of_a_ca_that_ends_and_of_one_that_was_revoked(
    egress: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gateway.cli import doctor

    egress("ca", "init")
    with monkeypatch.context() as patched:
        patched.setattr(doctor, "CA_LEFT_DAYS", 36_500)
        assert "egress ca rotate --prepare" in egress("doctor").out
    egress("ca", "revoke", "--yes")
    said = egress("doctor")
    assert said.status == 3
    assert "the CA was revoked  -> egress ca rotate" in said.out


@pytest.mark.parametrize(
    ("noun", "state", "word"),
    [
        ("quarantine", "held", "held"),
        ("quarantine", "released", "released"),
        ("quarantine", "refused", "discarded"),
        ("approvals", "held", "held"),
        ("approvals", "released", "approved"),
        ("approvals", "refused", "denied"),
    ],
)
def test_a_decision_is_told_in_the_word_of_its_command(noun: str, state: str, word: str) -> None:
    from gateway.cli.held import _word

    assert _word(noun, state) == word
