"""Bundles from a URL: fetched, verified, kept for a start without a network; what is older, wrong or too much changes nothing."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.app.fetching import MAX_PACKED, Fetcher, fetcher_of, pack, precedence, unpack
from gateway.app.policies import SIGNATURE_FILE, policy_of, sign_bundle, transformers_of
from gateway.app.webclient import WebClient
from gateway.config import Config, parse
from gateway.errors import ConfigError, PolicyError, SetupError
from gateway.evidence.sign import Ed25519Signer, verifier_key
from tests.support.gateway import HOSTS, gateway
from tests.support.pki import make
from tests.support.provider import Answer, Arrived, Provider
from tests.support.waiting import eventually

SIGNER = Ed25519Signer(Ed25519PrivateKey.generate(), "policy")
BODY = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "the word is Nightjar"}]}


class Shelf(Provider):
    """Serves one archive under an ETag; `status` instead where it is set."""

    archive = b""
    etag = '"1"'
    status = 0
    pieces: tuple[Any, ...] = ()

    def answer_to(self, request: Arrived) -> Answer:
        if self.status:
            return Answer(self.status, pieces=(b"no",))
        if request.header("if-none-match") == self.etag:
            return Answer(304, (("etag", self.etag),), ())
        return Answer(200, (("etag", self.etag),), self.pieces or (self.archive,))


@dataclass
class Place:
    folder: Path
    shelf: Shelf
    document: dict[str, Any]

    @property
    def config(self) -> Config:
        return parse(self.document, self.folder, {})

    @property
    def fetcher(self) -> Fetcher:
        config = self.config
        return fetcher_of(config, transformers_of(config))

    def serve(self, version: str, disposition: str = "deny", *, sign: bool = True, **more: str) -> None:
        """Put a revision on the shelf."""
        folder = self.folder / "made"
        (folder / "rules").mkdir(parents=True, exist_ok=True)
        (folder / SIGNATURE_FILE).unlink(missing_ok=True)
        (folder / "bundle.toml").write_text(f'name = "org"\nversion = "{version}"\ndescription = "d"\n')
        (folder / "rules" / "r.toml").write_text(
            '[[rule]]\nid = "org.user"\nwhy = "w"\nwhen = { kind = "text" }\n'
            f'then = {{ disposition = "{disposition}", reason_codes = ["org.{more.get("code", "rule")}"] }}\n'
        )
        if sign:
            sign_bundle(folder, SIGNER)
        self.shelf.archive, self.shelf.etag = pack(folder), f'"{version}{disposition}"'

    def in_force(self) -> str:
        return policy_of(self.config).layers.bundles[0].version


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    pki = make(tmp_path / "pki", *HOSTS, "localhost")  # of the gateway's provider too
    shelf = Shelf(pki, alpn=("http/1.1",))
    await shelf.start()
    (tmp_path / "policy.pub").write_text(verifier_key(SIGNER.name, SIGNER.public_key))
    document = {
        "state": {"dir": str(tmp_path / "state")},
        "upstream": {"ca_file": str(pki.ca)},
        "policy": {
            "bundles": [f"https://localhost:{shelf.port}/org.tar.gz"],
            "public_key": str(tmp_path / "policy.pub"),
        },
    }
    yield Place(tmp_path, shelf, document)
    await shelf.stop()


async def test_it_is_fetched_once_and_asked_for_by_its_etag(place: Place) -> None:
    (place.folder / "token").write_text("fetch-me\n")
    place.document["policy"]["fetch_token_file"] = str(place.folder / "token")
    place.serve("1.0.0")
    first = await place.fetcher.fetch()
    again = await place.fetcher.fetch()
    place.serve("1.1.0")
    newer = await place.fetcher.fetch()

    assert [each[0].result for each in (first, again, newer)] == ["changed", "unchanged", "changed"]
    assert [arrived.header("if-none-match") for arrived in place.shelf.arrived] == [
        None,
        '"1.0.0deny"',
        '"1.0.0deny"',
    ]
    assert place.shelf.arrived[0].header("authorization") == "Bearer fetch-me"
    assert place.in_force() == "1.1.0"
    cache = place.folder / "state" / "bundles"
    assert len([each for each in cache.glob("*/*") if each.is_dir() and not each.is_symlink()]) == 1


async def _older(place: Place) -> None:
    place.serve("1.9.9")


async def _unsigned(place: Place) -> None:
    place.serve("3.0.0", sign=False)


async def _other_key(place: Place) -> None:
    place.serve("3.0.0", sign=False)
    other = Ed25519Signer(Ed25519PrivateKey.generate(), "policy")
    sign_bundle(place.folder / "made", other)
    place.shelf.archive, place.shelf.etag = pack(place.folder / "made"), '"x"'


async def _changed_after(place: Place) -> None:
    place.serve("3.0.0")
    rules = place.folder / "made" / "rules" / "r.toml"
    rules.write_text(rules.read_text().replace("deny", "allow"))
    place.shelf.archive, place.shelf.etag = pack(place.folder / "made"), '"x"'


async def _endless_version(place: Place) -> None:
    place.serve("3.0." + "9" * 5000)


async def _broken(place: Place) -> None:
    place.serve("3.0.0", disposition="explode")


async def _truncated(place: Place) -> None:
    place.serve("3.0.0")
    place.shelf.archive, place.shelf.etag = place.shelf.archive[:-20], '"x"'


async def _too_large(place: Place) -> None:
    place.shelf.archive, place.shelf.etag = b"x" * (MAX_PACKED + 1), '"x"'


async def _error(place: Place) -> None:
    place.shelf.status = 500


async def _redirect(place: Place) -> None:
    place.shelf.status = 302


async def _away(place: Place) -> None:
    await place.shelf.stop()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (_older, "policy.rollback"),
        (_unsigned, "policy.signature"),
        (_other_key, "policy.signature"),
        (_changed_after, "policy.signature"),
        (_endless_version, "policy.archive"),
        (_broken, "policy.invalid"),
        (_truncated, "policy.archive"),
        (_too_large, "web.too_large"),
        (_error, "policy.fetch"),
        (_redirect, "policy.fetch"),
        (_away, "web.unreachable"),
    ],
)
async def test_the_last_good_one_stays(place: Place, change: Any, code: str) -> None:
    place.serve("2.0.0")
    await place.fetcher.fetch()
    before = policy_of(place.config).digest
    if change is _broken:
        with pytest.raises(PolicyError):
            await change(place)
        place.shelf.archive = pack(place.folder / "made")
        place.shelf.etag = '"x"'
    else:
        await change(place)
    (result,) = await place.fetcher.fetch()

    assert (result.result, result.code) == ("failed", code)
    assert result.problems
    assert policy_of(place.config).digest == before
    await (
        place.fetcher.prepare()
    )  # a start without a network, or with a wrong bundle, begins with the last good one


async def test_a_revision_that_was_replaced_does_not_come_back_under_the_same_version(place: Place) -> None:
    place.serve("1.0.0", "allow", code="first")
    old = place.shelf.archive
    await place.fetcher.fetch()
    place.serve("1.0.0", "deny", code="second")
    (corrected,) = await place.fetcher.fetch()
    place.shelf.archive, place.shelf.etag = old, '"old"'
    (back,) = await place.fetcher.fetch()

    assert corrected.result == "changed"
    assert (back.result, back.code) == ("failed", "policy.rollback")


async def test_without_a_revision_there_is_no_start(place: Place) -> None:
    place.shelf.status = 404

    with pytest.raises(SetupError) as raised:
        await place.fetcher.prepare()
    assert raised.value.code == "policy.fetch"
    with pytest.raises(ConfigError):
        policy_of(place.config)


async def test_time_is_bounded_however_slowly_it_comes(place: Place) -> None:
    place.shelf.pieces = (b"a", *([0.2, b"a"] * 100))
    fetcher = place.fetcher
    fetcher.client = replace(WebClient.of(place.config), seconds=0.5)
    (result,) = await fetcher.fetch()

    assert (result.result, result.code) == ("failed", "web.timeout")


async def test_a_running_gateway_takes_up_a_new_revision_and_says_when_it_cannot(place: Place) -> None:
    place.serve("1.0.0", "allow")
    policy = {**place.document["policy"], "fetch_s": 1, "poll_s": 0}
    async with gateway(place.folder, {"policy": policy}) as bench:
        assert (await bench.send(BODY)).status == 200
        place.serve("1.1.0", "deny")
        refused = await eventually(lambda: bench.send(BODY), lambda reply: reply.status == 400)
        place.serve("1.0.1", "allow")
        await eventually(
            lambda: "gateway_policy_fetch_failed 1.0" in bench.running.core.metrics.render().decode()
        )
        assert (await bench.send(BODY)).status == 400
        log = bench.log.getvalue()

    assert "org.rule" in refused.body.decode()
    assert '"event": "policy_fetched"' in log
    assert '"code": "policy.rollback"' in log


@pytest.mark.parametrize(
    "name", ["../bundle.toml", "/etc/x.toml", "rules/a/b/c.toml", "run.sh", "bundle.toml"]
)
def test_an_archive_holds_the_files_of_a_bundle_and_nothing_else(name: str) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("bundle.toml"))
        archive.addfile(tarfile.TarInfo(name))
    with pytest.raises(PolicyError):
        unpack(gzip.compress(out.getvalue()))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_refused(kind: bytes) -> None:
    out, entry = io.BytesIO(), tarfile.TarInfo("bundle.toml")
    entry.type, entry.linkname = kind, "/etc/passwd"
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(entry)
    with pytest.raises(PolicyError):
        unpack(gzip.compress(out.getvalue()))


def test_a_bomb_is_refused() -> None:
    with pytest.raises(PolicyError):
        unpack(gzip.compress(b"\0" * (64 << 20)))


def test_versions_are_ordered_as_semver_has_them() -> None:
    ordered = [
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0",
        "1.0.10",
        "1.2.0",
    ]

    assert sorted(ordered[1:] + ordered[:1], key=precedence) == ordered


@pytest.mark.parametrize(
    "url", ["http://h/x.tar.gz", "https://u:p@h/x", "ftp://h/x", "https:///x", "https://h/x#f"]
)
def test_only_https_without_credentials(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse({"policy": {"bundles": [url]}}, tmp_path, {})
    assert "policy.bundles" in str(raised.value)
    assert "u:p" not in str(raised.value)
