"""Keys, signed notes, envelopes and hand-overs."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gateway.errors import VerificationError
from gateway.evidence import sign
from gateway.evidence.checkpoint import Checkpoint, open_note, read_note
from gateway.evidence.merkle import EMPTY_ROOT
from gateway.evidence.verify import trusted_keys
from tests.support.evidence import signer

PETER = (
    "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"  # the C2SP signed-note example key
)


def refused(call: Callable[[], object], code: str = "") -> VerificationError:
    with pytest.raises(VerificationError) as caught:
        call()
    assert not code or caught.value.code == code
    return caught.value


def test_the_published_example_key_is_read() -> None:
    key = sign.read_public_key(PETER)
    assert sign.verifier_key("PeterNeumann", key) == PETER
    assert sign.key_id("PeterNeumann", key).hex() == "c74f20a3"


def test_the_published_example_note_verifies() -> None:
    """The example of the C2SP signed-note specification (and of golang.org/x/mod/sumdb/note)."""
    text = b"If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
    raw = b64decode(
        "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM="
    )
    key = sign.read_public_key(PETER)
    assert raw[:4] == sign.key_id("PeterNeumann", key)
    assert sign.verifies(key, raw[4:], text)
    assert not sign.verifies(key, raw[4:], text[:-1])


def test_public_keys_in_pem_and_text_are_the_same() -> None:
    private = Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)
    pem = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    one = signer(1)
    assert sign.read_public_key(pem) == one.public_key
    assert sign.read_public_key(sign.verifier_key(one.name, one.public_key) + "\n") == one.public_key


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        PETER.replace("c74f20a3", "c74f20a4"),
        PETER.replace("Peter", "Paul"),
        PETER[:-4],
        PETER.replace("ARpc", "AhpX"),
        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
        "a+b+*",
    ],
)
def test_what_is_no_public_key_is_refused(text: str) -> None:
    refused(lambda: sign.read_public_key(text))


def test_a_key_of_another_kind_is_refused() -> None:
    pem = (
        generate_private_key(SECP256R1())
        .public_key()
        .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    refused(lambda: sign.read_public_key(pem.decode()), "key.type")


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\nb", "a\u2003b"])
def test_names_that_a_note_cannot_carry(name: str) -> None:
    refused(lambda: signer(1, name), "key.name")


# -- checkpoints --------------------------------------------------------------------------------------------------

NOTE = Checkpoint("egress/test", 7, bytes(range(32))).sign(signer())


def test_a_checkpoint_has_the_published_form() -> None:
    body, _, signature = NOTE.decode().partition("\n\n")
    assert body == "egress/test\n7\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    dash, name, encoded = signature.rstrip("\n").split(" ")
    assert (dash, name) == ("—", "egress/test")
    assert len(b64decode(encoded)) == 4 + 64


def test_a_checkpoint_opens_with_its_key_only() -> None:
    assert open_note(NOTE, [signer().public_key]) == Checkpoint("egress/test", 7, bytes(range(32)))
    refused(lambda: open_note(NOTE, [signer(2).public_key]), "checkpoint.signature")
    refused(lambda: open_note(NOTE, []), "checkpoint.signature")


def test_several_signatures_and_extension_lines() -> None:
    both = Checkpoint("o", 0, EMPTY_ROOT).sign(signer(1), signer(2, "other"))
    assert len(read_note(both).signatures) == 2
    assert open_note(both, [signer(2).public_key]).size == 0
    body = b"o\n0\n" + b64encode(EMPTY_ROOT) + b"\nextension\n"
    one = signer()
    raw = sign.key_id(one.name, one.public_key) + one.sign(body)
    note = body + b"\n" + f"— {one.name} {b64encode(raw).decode()}\n".encode()
    assert open_note(note, [one.public_key]).size == 0


@pytest.mark.parametrize(
    "edit",
    [
        lambda n: n.replace(b"\n7\n", b"\n8\n"),
        lambda n: n.replace(b"egress/test\n", b"egress/tset\n", 1),
        lambda n: n.replace(b"AAEC", b"AAED"),
        lambda n: n.replace(b"\xe2\x80\x94 egress/test", b"\xe2\x80\x94 egress/tset"),
    ],
)
def test_an_altered_checkpoint_is_not_signed(edit: Callable[[bytes], bytes]) -> None:
    assert edit(NOTE) != NOTE
    refused(lambda: open_note(edit(NOTE), [signer().public_key]), "checkpoint.signature")


@pytest.mark.parametrize(
    "note",
    [
        b"",
        b"\xff",
        NOTE[:-1],
        NOTE.replace(b"\n\n", b"\n"),
        NOTE.replace(b"\n7\n", b"\n07\n"),
        NOTE.replace(b"\n7\n", b"\n-7\n"),
        NOTE.replace(b"\n7\n", b"\n7.0\n"),
        NOTE.replace(b"\n7\n", b"\n"),
        NOTE.replace(b"AAEC", b"AA*C"),
        NOTE.replace(b"AAECAwQF", b"AAEC"),
        NOTE.replace(b"\xe2\x80\x94", b"-"),
        NOTE + b"junk\n",
        NOTE + b"\xe2\x80\x94 name AAAA\n",
        b"\n7\n" + NOTE.partition(b"\n7\n")[2],
        b"x" * 70_000,
    ],
)
def test_what_is_no_checkpoint_is_refused(note: bytes) -> None:
    refused(lambda: open_note(note, [signer().public_key]))


# -- envelopes ----------------------------------------------------------------------------------------------------


def test_the_published_pre_authentication_encoding() -> None:
    assert sign.pre_authentication("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_an_envelope_survives_and_names_its_signers() -> None:
    made = sign.envelope("application/x", b"\x00payload", signer(1), signer(2))
    read = sign.Envelope.from_json(made.to_json())
    assert read == made
    assert read.signed_by(signer(1).public_key)
    assert read.signed_by(signer(2).public_key)
    assert not read.signed_by(signer(3).public_key)
    assert "payload" not in repr(made).replace("payload_type", "")


@pytest.mark.parametrize("name", ["payload", "payloadType", "signatures"])
def test_an_altered_envelope_is_not_signed(name: str) -> None:
    document = json.loads(sign.envelope("application/x", b"payload", signer()).to_json())
    document[name] = [] if name == "signatures" else "YWJj"
    assert not sign.Envelope.from_json(json.dumps(document).encode()).signed_by(signer().public_key)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"payload":"*","payloadType":"x","signatures":[]}', b"null"]
)
def test_what_is_no_envelope_is_refused(data: bytes) -> None:
    refused(lambda: sign.Envelope.from_json(data))


# -- hand-over ----------------------------------------------------------------------------------------------------


def handover(old: int, new: int) -> bytes:
    return sign.handover(signer(old), signer(new), "2026-01-01T00:00:00Z")


def test_a_hand_over_names_both_keys() -> None:
    assert sign.read_handover(handover(1, 2)) == (signer(1).public_key, signer(2).public_key)


def test_a_hand_over_needs_both_signatures() -> None:
    document = json.loads(handover(1, 2))
    for keep in (0, 1):
        one = json.dumps(document | {"signatures": [document["signatures"][keep]]}).encode()
        refused(lambda one=one: sign.read_handover(one), "handover.signature")
    refused(lambda: sign.read_handover(sign.envelope("x", b"{}", signer()).to_json()), "handover.type")
    empty = sign.envelope(sign.HANDOVER_TYPE, b"{}", signer()).to_json()
    refused(lambda: sign.read_handover(empty), "handover.malformed")


def test_trust_follows_hand_overs_both_ways_and_no_further() -> None:
    chain = [handover(1, 2), b"junk", handover(2, 3), handover(7, 8)]
    line = [signer(n).public_key for n in (1, 2, 3)]
    for known in (1, 2, 3):
        assert trusted_keys(signer(known).public_key, chain) == line
    assert trusted_keys(signer(9).public_key, chain) == [signer(9).public_key]
