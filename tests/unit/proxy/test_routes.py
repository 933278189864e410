"""Host lists, credentials and addresses as tables."""

from __future__ import annotations

import base64
import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.ports import Peer
from gateway.proxy import routes
from gateway.proxy.places import Place
from gateway.proxy.routes import (
    HostRules,
    authenticate,
    decide,
    is_local,
    is_private,
    normalise_host,
    split_authority,
)
from gateway.proxy.settings import Access

RULES = HostRules(
    intercept=frozenset({"api.one.test", "*.wide.test", "exact.passed.test", "two.test:8443", "both.test"}),
    tunnel=frozenset({"cdn.wide.test", "*.passed.test", "provider.test", "both.test"}),
    deny=frozenset({"*.denied.test", "bad.wide.test", "api.one.test:22"}),
    is_provider=lambda host: host in {"provider.test", "other-provider.test", "x.denied.test"},
)


@pytest.mark.parametrize(
    ("host", "port", "action", "reason"),
    [
        ("api.one.test", 443, "intercept", "host.intercepted"),
        ("api.one.test", 22, "refuse", "host.denied"),
        ("sub.wide.test", 443, "intercept", "host.intercepted"),
        ("a.b.wide.test", 443, "intercept", "host.intercepted"),
        ("wide.test", 443, "refuse", "host.unknown"),
        ("cdn.wide.test", 443, "tunnel", "host.tunnelled"),
        ("bad.wide.test", 443, "refuse", "host.denied"),
        ("exact.passed.test", 443, "intercept", "host.intercepted"),
        ("any.passed.test", 443, "tunnel", "host.tunnelled"),
        ("both.test", 443, "intercept", "host.intercepted"),
        ("provider.test", 443, "tunnel", "host.tunnelled"),
        ("other-provider.test", 443, "intercept", "host.intercepted"),
        ("x.denied.test", 443, "refuse", "host.denied"),
        ("two.test", 8443, "intercept", "host.intercepted"),
        ("two.test", 443, "refuse", "host.unknown"),
        ("notwide.test", 443, "refuse", "host.unknown"),
    ],
)
def test_decisions(host: str, port: int, action: str, reason: str) -> None:
    assert decide(host, port, RULES) == routes.Route(action, reason)  # type: ignore[arg-type]


def test_unknown_hosts_follow_the_setting() -> None:
    assert decide("new.test", 443, HostRules(unknown="tunnel")) == routes.Route("tunnel", "host.unknown")
    assert decide("new.test", 443, HostRules(unknown="nonsense")).action == "refuse"


@pytest.mark.parametrize(
    ("unknown", "host", "path", "route"),
    [
        ("tunnel", "llm.test", "/", ("intercept", "host.recognised")),
        ("tunnel", "new.test", "/v1/chat", ("intercept", "host.recognised")),
        ("tunnel", "new.test", "/", ("tunnel", "host.unknown")),
        ("tunnel", "any.passed.test", "/v1/chat", ("tunnel", "host.tunnelled")),  # as the operator says
        ("refuse", "llm.test", "/v1/chat", ("refuse", "host.unknown")),  # a guess lets nothing out
    ],
)
def test_what_looks_like_a_provider_is_read_where_unknown_hosts_pass(
    unknown: str, host: str, path: str, route: tuple[str, str]
) -> None:
    rules = HostRules(
        tunnel=frozenset({"*.passed.test"}),
        unknown=unknown,
        looks_like_provider=lambda name: name.startswith("llm."),
        tells=lambda _, where: where == "/v1/chat",
    )
    assert routes.by_path(decide(host, 80, rules), host, path, rules) == routes.Route(*route)  # type: ignore[arg-type]


@given(st.sampled_from(["refuse", "tunnel"]), st.from_regex(r"[a-z]{1,8}(\.[a-z]{1,8}){0,3}", fullmatch=True))
def test_a_denial_always_wins(unknown: str, host: str) -> None:
    everything = frozenset({host, "*." + host.partition(".")[2]})
    rules = HostRules(everything, everything, frozenset({host}), unknown, lambda _: True)
    assert decide(host, 443, rules).action == "refuse"


@pytest.mark.parametrize(
    ("given_host", "normal"),
    [
        ("API.Test.", "api.test"),
        (" api.test ", "api.test"),
        ("[::1]", "::1"),
        ("::FFFF:7f00:1", "::ffff:127.0.0.1"),
        ("127.0.0.1", "127.0.0.1"),
        ("bücher.test", "xn--bcher-kva.test"),
        ("under_score.test", "under_score.test"),
        ("", None),
        ("a b", None),
        ("api.test/path", None),
        ("api.test@evil.test", None),
        ("-x.test", None),
        ("a..b", None),
        ("x" * 64 + ".test", None),
        ("\uff41\uff50\uff49.test", "api.test"),
        ("api.test\x00", None),
        ("\ud800.test", None),
    ],
)
def test_host_names(given_host: str, normal: str | None) -> None:
    assert normalise_host(given_host) == normal


@pytest.mark.parametrize(
    ("authority", "parts"),
    [
        ("api.test", ("api.test", 443)),
        ("api.test:8443", ("api.test", 8443)),
        ("[::1]:8080", ("::1", 8080)),
        ("[::1]", ("::1", 443)),
        ("api.test:", ("api.test", 443)),
        ("api.test:0", None),
        ("api.test:65536", None),
        ("api.test:+1", None),
        ("api.test:\u0661", None),
        ("[::1]x", None),
        ("[::1", None),
        ("a:b:c", None),
        ("", None),
    ],
)
def test_authorities(authority: str, parts: tuple[str, int] | None) -> None:
    assert split_authority(authority, 443) == parts


@pytest.mark.parametrize(
    ("address", "private"),
    [
        ("10.0.0.1", True),
        ("172.16.0.1", True),
        ("192.168.0.1", True),
        ("127.0.0.1", True),
        ("169.254.169.254", True),
        ("0.0.0.0", True),
        ("100.64.0.1", True),
        ("::1", True),
        ("fe80::1%eth0", True),
        ("fd00::1", True),
        ("::ffff:10.0.0.1", True),
        ("8.8.8.8", False),
        ("2606:4700::1111", False),
        ("::ffff:8.8.8.8", False),
    ],
)
def test_private_addresses(address: str, private: bool) -> None:
    assert is_private(address) is private


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("localhost", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("0.0.0.0", True),
        ("::ffff:127.0.0.1", True),
        ("10.1.1.1", True),
        ("10.1.1.2", False),
        ("api.test", False),
    ],
)
def test_local_addresses(address: str, local: bool) -> None:
    assert is_local(address, "10.1.1.1") is local


def _basic(user: str, password: str) -> bytes:
    return b"Basic " + base64.b64encode(f"{user}:{password}".encode())


ACCESS = {
    "default": Access(Peer()),
    "open": Access(Peer(project="open")),
    "shut": Access(Peer(project="shut"), b"t0ken"),
    "shut+alice": Access(Peer(project="shut", principal="alice"), b"hers"),
}


@pytest.mark.parametrize(
    ("header", "loopback", "project"),
    [
        (None, True, "default"),
        (None, False, None),
        (_basic("open", ""), True, "open"),
        (_basic("open", "whatever"), True, "open"),
        (_basic("open", ""), False, None),
        (_basic("shut", "t0ken"), True, "shut"),
        (_basic("shut", "t0ken"), False, "shut"),
        (_basic("shut", "t0keN"), False, None),
        (_basic("shut", ""), True, None),
        (_basic("shut+alice", "t0ken"), True, None),
        (_basic("shut+alice", "hers"), False, "shut"),
        (_basic("shut+bob", "hers"), True, None),
        (_basic("nobody", ""), True, None),
        (_basic("", ""), True, None),
        (b"basic " + base64.b64encode(b"open:"), True, "open"),
        (b"Bearer t0ken", True, None),
        (b"Basic ####", True, None),
        (b"Basic " + base64.b64encode(b"\xff\xfe:"), True, None),
        (b"Basic", True, None),
        (b"", True, None),
    ],
)
def test_credentials(header: bytes | None, loopback: bool, project: str | None) -> None:
    peer = authenticate(header, ACCESS, Place(is_loopback=loopback))
    assert (peer.project if peer else None) == project


def test_a_default_project_with_a_token_asks_for_it() -> None:
    access = {"default": Access(Peer(), b"t0ken")}
    assert authenticate(None, access, Place()) is None
    assert authenticate(_basic("default", "t0ken"), access, Place()) == Peer()


@given(st.binary(max_size=60))
def test_no_header_raises(header: bytes) -> None:
    peer = authenticate(header, {"shut": ACCESS["shut"]}, Place(is_loopback=False))
    assert peer is None or header.lower().startswith(b"basic ")


def test_tokens_are_compared_in_constant_time() -> None:
    source = inspect.getsource(authenticate)
    assert "compare_digest(password, entry.token)" in source
    assert "== entry.token" not in source


def test_the_module_is_pure() -> None:
    source = inspect.getsource(routes)
    assert not any(f"import {name}" in source for name in ("os", "time", "socket", "logging", "mitmproxy"))
