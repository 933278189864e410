"""The configuration: what is read, what is refused, and that every problem is told at once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.config import (
    SECTIONS,
    Address,
    Config,
    HostPattern,
    Mode,
    Unknown,
    find,
    find_bundle,
    load,
    parse,
    settings_of,
    show,
    warnings,
)
from gateway.errors import ConfigError

HOME = {"HOME": "/home/me"}


def read(document: Mapping[str, Any], folder: Path, environ: Mapping[str, str] = HOME) -> Config:
    return parse(document, folder, environ)


def problems(document: Mapping[str, Any], folder: Path, environ: Mapping[str, str] = HOME) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse(document, folder, environ)
    return caught.value.problems


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "policies" / "default").mkdir(parents=True)
    return tmp_path


def test_defaults_are_those_of_the_interface(base: Path) -> None:
    config = read({}, base)

    assert config.listen.proxy == Address("127.0.0.1", 8080)
    assert config.listen.control == Address("127.0.0.1", 8081)
    assert config.state.dir == Path("/home/me/.local/state/egress")
    assert config.state.keys_dir == Path("/home/me/.local/state/egress/keys")
    assert config.policy.folders == (base / "policies" / "default",)
    assert config.policy.mode is Mode.GOVERNED
    assert config.limits.max_body_bytes == 33_554_432
    assert config.hosts.unknown is Unknown.REFUSE


def test_what_is_shown_reads_back_as_the_same_configuration(base: Path) -> None:
    document = {
        "upstream": {"connect_to": {"api.openai.com:443": "127.0.0.1:9443"}, "ca_file": "roots.pem"},
        "hosts": {"intercept": ["*.openai.azure.com", "llm.corp:8443"], "unknown": "tunnel"},
        "state": {"keys": "file:/keys"},
        "projects": {
            "acme-web": {"roots": ["/src"], "team": "platform"},
            "other": {"linked_projects": ["acme-web"]},
        },
        "principals": {"alice": {"roles": ["developer"], "projects": ["acme-web"]}},
    }
    config = read(document, base)

    assert read(show(config), base) == config
    assert config.upstream.connect_to == {Address("api.openai.com", 443): Address("127.0.0.1", 9443)}
    assert config.upstream.ca_file == base / "roots.pem"
    assert config.state.keys_dir == Path("/keys")


@pytest.mark.parametrize(
    ("mode", "unknown"), [("developer", "tunnel"), ("governed", "refuse"), ("sovereign", "refuse")]
)
def test_unknown_hosts_follow_the_mode_unless_said(base: Path, mode: str, unknown: str) -> None:
    assert read({"policy": {"mode": mode}}, base).hosts.unknown == unknown
    for said in ("refuse", "tunnel"):
        assert read({"policy": {"mode": mode}, "hosts": {"unknown": said}}, base).hosts.unknown == said


def test_every_problem_is_reported_at_once_with_its_path(base: Path) -> None:
    document = {
        "listen": {"proxy": "nowhere", "workers": True, "colour": "red"},
        "limits": {"max_depth": "128", "deadline_ms": 0},
        "policy": {"mode": "lax", "bundles": ["policies/none"]},
        "hosts": {"deny": ["ok.example", "not a host"]},
        "surprise": {},
        "state": 3,
        "projects": {"Acme": {}, "web": {"linked_projects": ["nobody"], "roots": "x"}},
        "principals": {"bob": {"kind": "unknown"}},
    }
    found = problems(document, base)

    paths = [problem.partition(": ")[0] for problem in found]
    assert sorted(paths) == sorted(
        [
            "listen.colour",
            "listen.proxy",
            "listen.workers",
            "limits.max_depth",
            "limits.deadline_ms",
            "policy.mode",
            "policy.bundles",
            "hosts.deny",
            "surprise",
            "state",
            "projects.'Acme'",
            "projects.web.linked_projects",
            "projects.web.roots",
            "principals.bob.kind",
        ]
    )


def _wrong_values() -> list[tuple[str, str]]:
    return [(name, row.key) for name, section in SECTIONS.items() for row in settings_of(section)]


@pytest.mark.parametrize(("section", "key"), _wrong_values())
@pytest.mark.parametrize("value", [1.5, None, [[]], {"a": {}}, "\x00"])
def test_every_setting_refuses_values_of_another_type_and_names_itself(
    base: Path, section: str, key: str, value: object
) -> None:
    found = problems({section: {key: value}}, base)

    assert any(problem.startswith(f"{section}.{key}: ") for problem in found)
    assert not any("1.5" in problem for problem in found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "host",
        ":80",
        "host:",
        "host:65536",
        "host:-1",
        "host:+1",
        "host:0x1",
        "::1:80",
        "[::1]",
        "a b:80",
        "host:٣",
        "-a:1",
    ],
)
def test_addresses_that_are_none(base: Path, text: str) -> None:
    assert problems({"listen": {"proxy": text}}, base)


@pytest.mark.parametrize(
    ("text", "host", "shown", "loopback"),
    [
        ("[::1]:80", "::1", "[::1]:80", True),
        ("LOCALHOST.:1", "localhost", "localhost:1", True),
        ("127.8.8.8:0", "127.8.8.8", "127.8.8.8:0", True),
    ],
)
def test_addresses(base: Path, text: str, host: str, shown: str, loopback: bool) -> None:
    address = read({"listen": {"proxy": text}}, base).listen.proxy

    assert (address.host, str(address), address.is_loopback) == (host, shown, loopback)


@pytest.mark.parametrize(
    ("pattern", "host", "port", "matches"),
    [
        ("api.openai.com", "api.openai.com", 443, True),
        ("api.openai.com", "api.openai.com.evil.example", 443, False),
        ("api.openai.com:8443", "api.openai.com", 443, False),
        ("*.openai.azure.com", "eu.openai.azure.com", 443, True),
        ("*.openai.azure.com", "openai.azure.com", 443, False),
        ("*.openai.azure.com", "evilopenai.azure.com", 443, False),
        ("[::1]", "::1", 443, True),
        ("[::1]:8443", "::1", 8443, True),
    ],
)
def test_host_patterns(base: Path, pattern: str, host: str, port: int, matches: bool) -> None:
    (read_back,) = read({"hosts": {"deny": [pattern]}}, base).hosts.deny

    assert isinstance(read_back, HostPattern)
    assert read_back.matches(host, port) is matches
    assert str(read_back) == pattern


@pytest.mark.parametrize(
    "pattern", ["*", "*.", "a.*", "*.*.com", "http://a.com", "a.com/x", "bücher.example", "a..b"]
)
def test_host_patterns_that_are_none(base: Path, pattern: str) -> None:
    assert problems({"hosts": {"deny": [pattern]}}, base)


def test_the_environment_lies_over_the_file(base: Path) -> None:
    environ = HOME | {
        "EGRESS_LISTEN__PROXY": "127.0.0.1:1",
        "EGRESS_LIMITS__MAX_DEPTH": "64",
        "EGRESS_HOSTS__TUNNEL": '["pypi.org"]',
        "EGRESS_UPSTREAM__CONNECT_TO": '{ "a.example:443" = "127.0.0.1:2" }',
        "EGRESS_CONFIG": "not a setting",
    }
    config = read({"listen": {"proxy": "127.0.0.1:9", "control": "127.0.0.1:8"}}, base, environ)

    assert (config.listen.proxy.port, config.listen.control.port) == (1, 8)
    assert config.limits.max_depth == 64
    assert [str(host) for host in config.hosts.tunnel] == ["pypi.org"]
    assert list(config.upstream.connect_to.values()) == [Address("127.0.0.1", 2)]


def test_variables_that_name_no_setting_or_hold_no_value_are_refused(base: Path) -> None:
    environ = HOME | {
        "EGRESS_LISTEN__COLOUR": "red",
        "EGRESS_PROJECTS__X": "{}",
        "EGRESS_LIMITS__MAX_DEPTH": "many",
        "EGRESS_LIMITS__MAX_NODES": "1\nother = 2",
        "EGRESS_POLICY__MODE": "lax",
    }
    found = problems({}, base, environ)

    assert len(found) == 5
    assert {problem.partition(":")[0] for problem in found} == {*environ} - {
        "HOME",
        "EGRESS_POLICY__MODE",
    } | {"policy.mode"}


SECRET_PROXY = {"upstream": {"proxy": "http://me:hunter2@proxy.corp:3128"}}


def test_secrets_are_left_out_of_what_is_shown(base: Path) -> None:
    config = read(SECRET_PROXY, base)

    assert config.upstream.proxy.endswith("hunter2@proxy.corp:3128")
    assert "hunter2" not in str(show(config))
    assert "hunter2" not in repr(config)
    assert show(config)["upstream"]["proxy"] == "http://***@proxy.corp:3128"


@pytest.mark.parametrize(
    "value",
    ["me:hunter2@proxy:3128", "socks5://me:hunter2@p:1", "http://me:hunter2@p/x", "http://me:hunter2@[:1"],
)
def test_problems_never_quote_the_value(base: Path, value: str) -> None:
    found = problems(
        {"upstream": {"proxy": value}, "limits": {"max_depth": value}, "policy": {"mode": value}}, base
    )

    assert len(found) == 3
    assert "hunter2" not in str(found)


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"listen": {"control": "127.0.0.1:8080"}}, "listen.control"),
        ({"listen": {"tls_cert": "c.pem"}}, "listen.tls_key"),
        ({"listen": {"client_ca": "a"}}, "listen.client_ca"),
        ({"state": {"store": "memory"}}, "state.store"),
        ({"state": {"store": "postgresql://u:p@db/e"}}, "state.store"),
        ({"reviewers": {"r": {}}}, "reviewers.r.token_file"),
        ({"budgets": {"b": {}}}, "budgets.b.requests"),
        ({"budgets": {"b": {"requests": 1, "projects": ["a"]}}}, "budgets.b.projects"),
        ({"listen": {"proxy": "0.0.0.0:8080"}, "projects": {"a": {"token_file": "t"}}}, "listen.tls_cert"),
        ({"listen": {"proxy": "gateway.corp:8080", "tls_cert": "c", "tls_key": "k"}}, "listen.client_ca"),
        ({"upstream": {"connect_to": {"a.example:443": "127.0.0.1:8080"}}}, "upstream.connect_to"),
        ({"projects": {"a": {"linked_projects": ["a"]}}}, "projects.a.linked_projects"),
        ({"principals": {"p": {"projects": ["a"]}}}, "principals.p.projects"),
        ({"projects": {"a": {"listen": "127.0.0.1:8080"}}}, "projects.a.listen"),
        ({"projects": {"a": {"listen": "127.0.0.1:8081"}}}, "projects.a.listen"),
        (
            {"projects": {"a": {"listen": "127.0.0.1:9"}, "b": {"listen": "127.0.0.1:9"}}},
            "projects.b.listen",
        ),
        ({"projects": {"a": {"listen": "127.0.0.1:0"}}}, "projects.a.listen"),
        ({"projects": {"a": {"listen": "0.0.0.0:9", "token_file": "t"}}}, "projects.a.listen"),
        (
            {"listen": {"tls_cert": "c", "tls_key": "k"}, "projects": {"a": {"listen": "0.0.0.0:9"}}},
            "projects.a.listen",
        ),
        ({"projects": {"a": {"networks": ["10.1.2.3/24"]}}}, "projects.a.networks"),
        ({"projects": {"a": {"networks": ["office"]}}}, "projects.a.networks"),
        (
            {"projects": {"a": {"networks": ["10.0.0.0/8"]}, "b": {"networks": ["10.0.0.0/8"]}}},
            "projects.b.networks",
        ),
        (
            {
                "projects": {"a": {"listen": "127.0.0.1:9"}},
                "upstream": {"connect_to": {"a.example:443": "127.0.0.1:9"}},
            },
            "upstream.connect_to",
        ),
    ],
)
def test_settings_that_do_not_go_together(base: Path, document: dict[str, Any], path: str) -> None:
    assert [problem.partition(":")[0] for problem in problems(document, base)] == [path]


def test_a_listener_for_a_network_needs_tls_and_somebody_who_may_connect(base: Path) -> None:
    listen = {"proxy": "0.0.0.0:8080", "tls_cert": "c", "tls_key": "k"}
    assert read({"listen": listen, "principals": {"p": {"token_file": "t"}}}, base)
    assert read({"listen": listen, "projects": {"p": {"networks": ["10.0.0.0/8", "fd00::/16"]}}}, base)


def test_warnings_name_what_is_allowed_and_odd(base: Path) -> None:
    config = read({"projects": {"a": {"roots": ["gone"]}}, "policy": {"enforcement": "shadow"}}, base)

    assert [warning.partition(":")[0] for warning in warnings(config)] == [
        "projects.a.roots",
        "policy.enforcement",
    ]
    assert warnings(read({"projects": {"a": {"roots": ["."]}}}, base)) == ()


def test_files_that_are_named_and_not_there_are_warned_of(base: Path) -> None:
    (base / "there.pem").touch()
    document = {
        "listen": {"tls_cert": "there.pem", "tls_key": "gone.pem"},
        "upstream": {"ca_file": "gone.pem"},
        "policy": {"public_key": "gone.pub"},
        "projects": {"a": {"token_file": "gone"}},
        "reviewers": {"r": {"token_file": "gone"}},
    }

    assert [warning.partition(":")[0] for warning in warnings(read(document, base))] == [
        "listen.tls_key", "upstream.ca_file", "policy.public_key", "projects.a.token_file",
        "reviewers.r.token_file",
    ]  # fmt: skip


def test_the_search_order(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, home = base / "work", base / "home"
    named, variable = base / "named.toml", base / "variable.toml"
    here, users = work / "gateway.toml", home / ".config" / "egress" / "gateway.toml"
    work.mkdir()
    users.parent.mkdir(parents=True)
    monkeypatch.chdir(work)
    environ = {"HOME": str(home)}

    assert find(None, environ) is None
    users.write_text("")
    assert find(None, environ) == users
    here.write_text("")
    assert find(None, environ) == Path("gateway.toml")
    assert find(None, environ | {"EGRESS_CONFIG": str(variable)}) == variable
    assert find(named, environ | {"EGRESS_CONFIG": str(variable)}) == named
    here.unlink()
    assert find(None, environ | {"XDG_CONFIG_HOME": str(base)}) is None


def test_paths_start_at_the_file_and_not_at_the_current_folder(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (base / "gateway.toml").write_text('[state]\ndir = "state"\n[projects.p]\nroots = ["~", "src"]\n')
    monkeypatch.chdir("/")
    config = load(base / "gateway.toml", HOME)

    assert config.source == base / "gateway.toml"
    assert config.state.dir == base / "state"
    assert config.projects["p"].roots == (Path("/home/me"), base / "src")


@pytest.mark.parametrize("content", [None, b"[listen\n", b"\xff", b"a = 1\na = 2\n", b"x" * (1 << 20) + b"x"])
def test_files_that_cannot_be_read(base: Path, content: bytes | None) -> None:
    path = base / "gateway.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(path, HOME)

    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].startswith(str(path))


def test_no_file_at_all_gives_the_defaults(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(base)

    assert load(None, {"HOME": str(base / "home")}).source is None


def test_bundles_beside_the_file_come_first_and_only_plain_names_fall_back(tmp_path: Path) -> None:
    packaged = find_bundle("policies/default", tmp_path)
    assert packaged.name == "default"
    assert find_bundle("default", tmp_path) == packaged
    for name in (
        "other/default",
        "../default",
        "policies/../default",
        "./policies/default/x",
        "no-such",
        "policies/.",
        "policies/",
    ):
        with pytest.raises(FileNotFoundError):
            find_bundle(name, tmp_path)
    (tmp_path / "policies" / "default").mkdir(parents=True)
    assert find_bundle("policies/default", tmp_path) == tmp_path / "policies" / "default"


def test_bundles_of_a_run_come_last_and_examples_have_names(tmp_path: Path) -> None:
    (tmp_path / "today").mkdir()
    document = {"policy": {"bundles": ["policies/default", "policies/examples/approvals"], "run": ["today"]}}
    folders = parse(document, tmp_path, {"HOME": str(tmp_path)}).policy.folders

    assert [folder.name for folder in folders] == ["default", "approvals", "today"]
    for name in (
        "policies/examples/../default",
        "examples/",
        "policies/examples/nobody",
        "../examples/approvals",
    ):
        with pytest.raises(ConfigError):
            parse({"policy": {"bundles": [name]}}, tmp_path, {"HOME": str(tmp_path)})
