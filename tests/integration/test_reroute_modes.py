"""Local models behind a parent proxy, on a listener for a network, and named amiss: a gateway of its own each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.app.offline import inspect
from gateway.config import parse
from gateway.errors import ConfigError
from gateway.proxy.routes import HostRules
from gateway.proxy.settings import ProxySettings
from gateway.proxy.upstream import PRIVATE, Dialler
from tests.integration.test_reroute import chat, configured
from tests.support.gateway import gateway
from tests.support.pki import make
from tests.support.provider import Provider


async def test_a_local_model_is_not_asked_for_through_the_parent_proxy(tmp_path: Path) -> None:
    local = Provider(make(tmp_path / "local", "localhost"))
    await local.start(plain=True)
    try:
        document = {**configured(tmp_path, local.port), "upstream": {"proxy": "http://127.0.0.1:9"}}
        async with gateway(tmp_path, document) as bench:
            reply = await bench.send(chat(), host="api.openai.com", target="/v1/chat/completions")
    finally:
        await local.stop()

    assert reply.status == 200
    assert len(local.arrived) == 1


async def test_a_listener_for_a_network_reaches_the_configured_model_and_nothing_beside_it(
    tmp_path: Path,
) -> None:
    trust = tmp_path / "roots.pem"
    trust.write_text("")
    settings = ProxySettings(
        hosts=HostRules(), trust_file=trust, is_loopback=False, local=frozenset({("127.0.0.1", 11434)})
    )
    dialler = Dialler(settings, lambda *_: None)

    assert await dialler._address(("127.0.0.1", 11434)) == (("127.0.0.1", 11434), None)
    assert (await dialler._address(("127.0.0.1", 11435)))[1] == PRIVATE


def test_a_model_that_is_not_configured_is_an_error_of_the_bundle(tmp_path: Path) -> None:
    document = configured(tmp_path, 11434)
    del document["local_models"]["chat-only"]
    config = parse(document, tmp_path, {})

    with pytest.raises(ConfigError) as raised:
        inspect(
            config, {"method": "POST", "url": "https://api.openai.com/v1/chat/completions", "body": chat()}
        )
    assert "no local model 'chat-only' is configured" in str(raised.value)


def test_inspect_says_where_it_would_go(tmp_path: Path) -> None:
    config = parse(configured(tmp_path, 11434), tmp_path, {})
    headers = {"content-type": "application/json"}
    said = inspect(
        config,
        {
            "method": "POST",
            "url": "https://api.openai.com/v1/chat/completions",
            "headers": headers,
            "body": chat(),
        },
    )

    assert said["outcome"] == "delivered"
    assert said["receipt"]["destination"]["provider"] == "ollama"


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.5:8000/v1",
        "http://ollama.example:11434/v1",
        "http://127.0.0.1/v1",
        "ftp://127.0.0.1:21/",
        "http://user:pass@127.0.0.1:11434",
        "http://127.0.0.1:11434/v1?key=a",
        "",
    ],
)
def test_what_is_not_on_this_machine_is_no_local_model(tmp_path: Path, url: str) -> None:
    document: dict[str, Any] = {"local_models": {"far": {"url": url, "model": "m"}}}

    with pytest.raises(ConfigError) as raised:
        parse(document, tmp_path, {})
    assert "local_models.far.url" in str(raised.value)
    assert "pass@" not in str(raised.value)
