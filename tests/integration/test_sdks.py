"""The official SDKs behind the gateway: masked on the way out, whole again in tool arguments and text on the way back.

Each conversation is three requests: the model reads a file that holds a key, writes the key to another file, and tells
it. Where it goes next stands in what the SDK sends, so a value that was lost or altered on the way ends it elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

import pytest
import pytest_asyncio
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from gateway.cli import demo_script
from gateway.cli.environment import PROXY, ROOTS
from tests.support.copyist import COPIED, CopyingProvider, Copyist
from tests.support.gateway import Bench, gateway
from tests.support.sdk import Agent, AnthropicMessages, OpenAIChat, OpenAIResponses, converse

pytestmark = pytest.mark.asyncio(loop_scope="module")

AGENTS = {"chat": OpenAIChat(), "responses": OpenAIResponses(), "messages": AnthropicMessages()}


@dataclass(frozen=True)
class Place:
    """A gateway that denies payment cards, and the files that are copied."""

    bench: Bench
    provider: CopyingProvider
    token: str

    @property
    def copyist(self) -> Copyist:
        return self.provider.copyist


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    """One gateway for all: each conversation is its own, so that nothing is carried over."""
    folder = tmp_path_factory.mktemp("sdks")
    for name, text in demo_script.POLICY.items():
        path = folder / "policy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    copyist = Copyist(folder / "settings.conf", folder / "copy.conf")
    token = demo_script.github_token()
    copyist.source.write_text(f"# deployment\nGITHUB_TOKEN={token}\n")
    policy = {"policy": {"bundles": ["policies/default", "policy"]}}
    async with gateway(folder, policy, lambda pki: CopyingProvider(pki, copyist)) as bench:
        assert isinstance(bench.provider, CopyingProvider)
        yield Place(bench, bench.provider, token)


@pytest.fixture(autouse=True)
def _environment(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `egress exec` sets, and a provider that remembers nothing."""
    for name in PROXY:
        monkeypatch.setenv(name, f"http://127.0.0.1:{place.bench.port}")
    for name in ROOTS:
        monkeypatch.setenv(name, str(place.bench.state / "ca-bundle.pem"))
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    place.provider.arrived.clear()
    place.copyist.target.unlink(missing_ok=True)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS.keys())
async def test_a_tool_call_gets_the_value_that_the_model_never_saw(
    place: Place, agent: Agent, *, is_async: bool, streamed: bool
) -> None:
    said = await converse(agent, "Copy the token.", is_async=is_async, streamed=streamed)
    bodies = [bytes(request.body).decode() for request in place.provider.arrived]

    assert len(bodies) == 3
    assert not any(place.token in body for body in bodies)
    assert len({found for body in bodies for found in COPIED.findall(body)}) == 1
    assert place.copyist.target.read_text() == f"token={place.token}\n"
    assert said == f"I copied {place.token} for you."


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS.keys())
async def test_the_same_holds_over_http2(place: Place, agent: Agent, *, streamed: bool) -> None:
    said = await converse(agent, "Copy the token.", is_async=True, streamed=streamed, http2=True)

    assert {request.http for request in place.provider.arrived} == {"2"}
    assert not any(place.token in bytes(request.body).decode() for request in place.provider.arrived)
    assert place.copyist.target.read_text() == f"token={place.token}\n"
    assert said == f"I copied {place.token} for you."


def _pem() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


PEM = _pem().strip()
FILES: dict[str, tuple[str, str, Callable[[str], str]]] = {
    "text": (PEM, "{}", str),
    "json": (
        json.dumps({"type": "service_account", "private_key": PEM}),
        '{{"token": "{}"}}',
        lambda text: str(json.loads(text)["token"]),
    ),
}
"""What is read, what the model writes with its placeholder, and how the key is read from that."""


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("file", FILES.values(), ids=FILES.keys())
@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS.keys())
async def test_a_value_of_several_lines_arrives_as_the_place_asks(
    place: Place, agent: Agent, file: tuple[str, str, Callable[[str], str]], *, streamed: bool
) -> None:
    """Once escaped in the arguments of a call; in a JSON file that a call writes, twice."""
    content, written, read = file
    copyist = place.copyist
    source = copyist.source.with_name("key.conf")
    source.write_text(content)
    place.provider.copyist = replace(copyist, source=source, written=written)
    try:
        said = await converse(agent, "Copy the key.", is_async=True, streamed=streamed)
    finally:
        place.provider.copyist = copyist

    sent = b"".join(bytes(request.body) for request in place.provider.arrived).decode()
    assert not any(line in sent for line in PEM.splitlines()[1:-1])
    assert read(copyist.target.read_text()) == PEM
    assert said == f"I copied {PEM} for you."


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS.keys())
async def test_a_denial_is_the_sdks_own_exception_after_one_attempt(
    place: Place, agent: Agent, *, is_async: bool, streamed: bool
) -> None:
    card = demo_script.card_number()
    before = {row["digest"] for row in await place.bench.rows()}
    with pytest.raises(agent.refusal) as raised:
        await converse(agent, f"Refund card {card}, please.", is_async=is_async, streamed=streamed)
    new = [row for row in await place.bench.rows() if row["digest"] not in before]

    assert "pii.card_blocked" in str(raised.value)
    assert card not in str(raised.value)
    assert place.provider.arrived == []
    assert [row["effect"] for row in new] == ["refused"]
    assert new[0]["digest"] in str(raised.value)
