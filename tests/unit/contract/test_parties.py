"""Destinations made from URLs always have a usable name and never an assumed locality (contract §7.4)."""

from __future__ import annotations

import pytest

from gateway.contract import DestinationLocalityV1, DestinationV1, PrincipalKindV1, PrincipalV1


def test_the_provider_is_lower_case() -> None:
    made = DestinationV1.for_url("https://api.anthropic.com/v1/messages?key=x", "Anthropic", model="m")
    assert (made.provider, made.model) == ("anthropic", "m")
    assert made.locality is DestinationLocalityV1.REMOTE


def test_without_a_provider_the_host_names_it() -> None:
    assert DestinationV1.for_url("https://API.OpenAI.com:443/v1").provider == "api.openai.com"
    assert DestinationV1.for_url("not a url").provider == "unknown"


@pytest.mark.parametrize("label", ["a\nb", "   ", "x" * 1025, "\ud800"])
def test_an_unusable_label_becomes_a_short_hash(label: str) -> None:
    provider = DestinationV1.for_url("https://x.example", label).provider
    assert provider.startswith("provider-")
    assert len(provider) == len("provider-") + 16
    assert provider == DestinationV1.for_url("https://y.example", label).provider


def test_the_unknown_principal_is_only_its_kind() -> None:
    assert PrincipalV1.unknown().to_json() == b'{"kind":"unknown"}'
    assert PrincipalV1.unknown().kind is PrincipalKindV1.UNKNOWN
