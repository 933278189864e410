"""The demonstration's provider and script; the whole of it runs in tests/integration."""

import ssl
import zlib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from gateway.cli import demo_script
from gateway.cli.demo import MARK, _anew, _restored
from gateway.cli.fake_provider import PIECE, FakeProvider, fake_provider
from gateway.config import parse
from gateway.errors import SetupError
from gateway.policy.decide import load_policy

TEXT = "A text that is longer than one piece."


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[FakeProvider]:
    with fake_provider(tmp_path) as running:
        yield running


def post(provider: FakeProvider, host: str, path: str, body: dict[str, object]) -> httpx.Response:
    context = ssl.create_default_context(cafile=str(provider.ca_file))
    url = f"https://{provider.address[0]}:{provider.address[1]}{path}"
    with httpx.Client(verify=context, trust_env=False) as client:
        return client.post(url, json=body, headers={"host": host}, extensions={"sni_hostname": host})


@pytest.mark.parametrize(
    ("host", "path", "member"),
    [
        ("api.openai.com", "/v1/chat/completions", "content"),
        ("api.anthropic.com", "/v1/messages?beta=true", "text"),
    ],
)
def test_it_streams_what_it_received_in_pieces_and_keeps_the_body(
    provider: FakeProvider, host: str, path: str, member: str
) -> None:
    answered = post(provider, host, path, {"stream": True, "messages": [{"role": "user", "content": TEXT}]})
    lines = [line.removeprefix("data: ") for line in answered.text.splitlines() if line.startswith("data: {")]
    pieces = [line.partition(f'"{member}": "')[2].partition('"')[0] for line in lines]

    assert "".join(pieces) == f"I received: {TEXT}"
    assert max(map(len, pieces)) == PIECE
    (received,) = provider.received
    assert TEXT.encode() in received.body
    assert received.path == path.partition("?")[0]
    assert TEXT not in repr(received)


def test_it_answers_whole_where_no_stream_is_asked_for(provider: FakeProvider) -> None:
    body = {"messages": [{"role": "user", "content": [{"type": "text", "text": TEXT}]}]}

    assert (
        TEXT
        in post(provider, "api.openai.com", "/v1/chat/completions", body).json()["choices"][0]["message"][
            "content"
        ]
    )
    assert post(provider, "api.openai.com", "/v1/other", {}).status_code == 404


def test_it_leaves_no_private_key_behind(provider: FakeProvider, tmp_path: Path) -> None:
    assert not any(b"PRIVATE KEY" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_planted_values_are_of_the_true_form_and_new_every_time() -> None:
    one, other = demo_script.plant(), demo_script.plant()
    body, check = one.token[4:34], one.token[34:]
    number = 0
    for digit in check:
        number = number * 62 + demo_script._BASE62.index(digit)

    assert number == zlib.crc32(body.encode())
    doubled = [int(d) * (1 + (place % 2 == 0)) for place, d in enumerate(one.card)]
    assert sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0
    assert {one.token, one.mail, one.card}.isdisjoint({other.token, other.mail, other.card})


def test_its_policy_layer_is_valid_over_the_default_one(tmp_path: Path) -> None:
    layer = {name: text.encode() for name, text in demo_script.POLICY.items()}
    config = parse({}, tmp_path, {"HOME": "/"})
    default = {
        str(p.relative_to(config.policy.folders[0])): p.read_bytes()
        for p in config.policy.folders[0].rglob("*.toml")
    }

    assert load_policy([default, layer], mode="governed", enforcement="enforce").id


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("ten years of work")
    with pytest.raises(SetupError):
        _anew(tmp_path)
    assert (tmp_path / "thesis.txt").exists()

    mine = tmp_path / "demo"
    _anew(mine)
    (mine / "gateway.toml").write_text("")
    _anew(mine)
    assert [path.name for path in mine.iterdir()] == [MARK]


def test_an_operators_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "gateway.toml").write_text("")
    (tmp_path / "state").mkdir()
    with pytest.raises(SetupError) as refused:
        _anew(tmp_path)

    assert "--dir" in refused.value.hint
    assert (tmp_path / "state").is_dir()


def test_the_comparison_sees_any_other_change() -> None:
    sent = b'{"a":"use the token SECRET and go","b":1.0}'

    assert _restored(b'{"a":"use the token [PH-1] and go","b":1.0}', sent, ("SECRET",)) == sent
    assert _restored(b'{"a":"use the token [PH-1] and go","b":1}', sent, ("SECRET",)) != sent
    assert _restored(b'{"a":"[PH-1]"}', sent, ("SECRET",)) == b""
