"""Which project a connection belongs to by where it comes in and from, and what credentials may still say."""

from __future__ import annotations

import base64
import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.ports import Peer
from gateway.proxy.places import Listener, Place, Places
from gateway.proxy.routes import HostRules, authenticate
from gateway.proxy.settings import Access, ProxySettings

PLACES = Places(
    [
        Listener("zoo", "127.0.0.1", 8090),
        Listener("far", "10.0.0.1", 8090, is_loopback=False),
        Listener("six", "::1", 8091),
    ],
    [
        (ipaddress.ip_network("10.1.0.0/16"), "blue"),
        (ipaddress.ip_network("10.1.2.0/24"), "zoo"),
        (ipaddress.ip_network("fd00:1::/32"), "six"),
    ],
)


@pytest.mark.parametrize(
    ("mode", "address", "place"),
    [
        ("regular", "127.0.0.1", Place("", True)),
        ("upstream:http://parent:3128", "127.0.0.1", Place("", True)),
        ("regular", "10.1.9.9", Place("blue", True, True)),
        ("regular", "10.1.2.9", Place("zoo", True, True)),  # the smallest network
        ("regular", "10.2.0.1", Place("", True)),
        ("regular", "::ffff:10.1.2.9", Place("zoo", True, True)),
        ("regular", "fd00:1::7%eth0", Place("six", True, True)),
        ("regular", "not an address", Place("", True)),
        ("regular@127.0.0.1:8090", "127.0.0.1", Place("zoo", True)),
        ("upstream:http://parent:3128@127.0.0.1:8090", "127.0.0.1", Place("zoo", True)),
        ("regular@10.0.0.1:8090", "192.0.2.1", Place("far", False)),
        ("regular@::1:8091", "::1", Place("six", True)),
        ("regular@127.0.0.1:8090", "10.1.2.9", Place("zoo", True, True)),
        ("regular@127.0.0.1:8090", "10.1.9.9", Place("zoo", True, True, True)),
        ("regular@127.0.0.1:9999", "127.0.0.1", Place("", True)),
    ],
)
def test_where_a_connection_comes_in_and_from(mode: str, address: str, place: Place) -> None:
    assert PLACES.at(mode, address, is_loopback=True) == place


ACCESS = {
    "default": Access(Peer()),
    "open": Access(Peer(project="open")),
    "open+ann": Access(Peer(project="open", principal="ann", roles=("admin",))),
    "shut": Access(Peer(project="shut"), b"t0ken"),
    "shut+ann": Access(Peer(project="shut", principal="ann"), b"hers"),
}


def _basic(user: str, password: str = "") -> bytes:
    return b"Basic " + base64.b64encode(f"{user}:{password}".encode())


@pytest.mark.parametrize(
    ("place", "header", "who"),
    [
        # On a listener of its own: the project without a word, unless it has a token.
        (Place("open"), None, "open"),
        (Place("shut"), None, None),
        (Place("shut"), _basic("shut", "t0ken"), "shut"),
        (Place("open"), _basic("open+ann"), "open+ann"),
        (Place("shut"), _basic("+ann", "hers"), "shut+ann"),
        (Place("shut"), _basic("+ann", "t0ken"), None),
        (Place("shut"), _basic("", "t0ken"), "shut"),
        # Credentials of another project than the place's open nothing, however good they are.
        (Place("open"), _basic("shut", "t0ken"), None),
        (Place("open"), _basic("shut+ann", "hers"), None),
        (Place("open"), _basic("default"), None),
        # Elsewhere than on this machine a token or a network is needed.
        (Place("open", False), None, None),
        (Place("open", False), _basic("open"), None),
        (Place("shut", False), _basic("shut", "t0ken"), "shut"),
        # A network says which project, not who: a principal proves itself.
        (Place("open", False, True), None, "open"),
        (Place("open", False, True), _basic("open"), "open"),
        (Place("open", False, True), _basic("open+ann"), None),
        (Place("shut", False, True), None, None),
        (Place("shut", False, True), _basic("shut+ann", "hers"), "shut+ann"),
        # The listener of one, the network of another: nobody.
        (Place("open", True, True, True), None, None),
        (Place("open", True, True, True), _basic("open"), None),
        # A place without a project is as it ever was; one whose project has no entry gives none.
        (Place(), None, "default"),
        (Place(), _basic("shut", "t0ken"), "shut"),
        (Place("gone"), None, None),
    ],
)  # fmt: skip
def test_credentials_narrow_and_never_contradict(place: Place, header: bytes | None, who: str | None) -> None:
    peer = authenticate(header, ACCESS, place)
    expected = ACCESS[who].peer if who is not None else None
    assert peer == expected


places = st.builds(Place, st.sampled_from(["open", "shut"]), st.booleans(), st.booleans(), st.booleans())
headers = st.none() | st.builds(
    _basic, st.sampled_from([*ACCESS, "", "+ann", "gone"]), st.sampled_from(["", "t0ken", "hers"])
)


@given(places, headers)
def test_nobody_leaves_the_project_of_their_place(place: Place, header: bytes | None) -> None:
    peer = authenticate(header, ACCESS, place)
    assert peer is None or peer.project == place.project
    if place.conflict:
        assert peer is None


@pytest.mark.parametrize(("loopback", "local"), [(True, True), (False, False)])
def test_one_listener_that_others_reach_guards_all(loopback: bool, local: bool) -> None:
    """Private addresses upstream are refused as soon as anybody but this machine can ask for them."""
    from pathlib import Path

    places = Places([Listener("zoo", "10.0.0.1", 8090, is_loopback=loopback)])
    assert ProxySettings(HostRules(), Path("x"), places=places).is_local is local
