"""Who speaks what where: the shape of the path first, then the host."""

import pytest

from gateway.errors import ConfigError
from gateway.providers import base, hosts, registry

ADAPTERS = registry.builtin()


@pytest.mark.parametrize(
    ("host", "path", "dialect"),
    [
        ("api.anthropic.com", "/v1/messages?beta=true", "anthropic"),
        ("api.anthropic.com", "/v1/messages/count_tokens", "anthropic"),
        ("api.anthropic.com", "/v1/messages/batches", "anthropic"),
        ("api.anthropic.com", "//v1//%6dessages/", "anthropic"),
        ("api.anthropic.com", "/v1/files/../messages", "anthropic"),
        ("api.anthropic.com", "/v1/something/new", "anthropic"),
        ("api.individual.githubcopilot.com", "/v1/messages", "anthropic"),
        ("api.deepseek.com", "/anthropic/v1/messages", "anthropic"),
        ("api.fireworks.ai", "/inference/v1/messages", "anthropic"),
        ("foo.services.ai.azure.com", "/anthropic/v1/messages", "anthropic"),
        ("us-east5-aiplatform.googleapis.com", "/v1/projects/p/locations/l/publishers/anthropic/models/claude-x:streamRawPredict",
         "anthropic"),
        ("localhost", "/v1/messages", "anthropic"),
        ("api.openai.com", "/v1/chat/completions", "openai_chat"),
        ("api.openai.com", "/v1/embeddings", "openai_chat"),
        ("api.openai.com", "/v1/moderations", "openai_chat"),
        ("api.openai.com", "/v1/unknown", "openai_chat"),
        ("api.groq.com", "/openai/v1/chat/completions", "openai_chat"),
        ("openrouter.ai", "/api/v1/chat/completions", "openai_chat"),
        ("x.openai.azure.com", "/openai/deployments/gpt/chat/completions?api-version=1", "openai_chat"),
        ("generativelanguage.googleapis.com", "/v1beta/openai/chat/completions", "openai_chat"),
        ("api.cohere.com", "/v2/chat", "cohere"),
        ("ollama.com", "/api/chat", "ollama"),
        ("localhost", "/api/generate", "ollama"),
        ("api.cohere.com", "/compatibility/v1/chat/completions", "openai_chat"),
        ("api.cohere.com", "/v1/unknown", "cohere"),
        ("api.mistral.ai", "/v1/chat/completions", "mistral"),
        ("api.mistral.ai", "/v1/conversations", "openai_responses"),
        ("codestral.mistral.ai", "/v1/fim/completions", "mistral"),
        ("api.openai.com", "/v1/responses", "openai_responses"),
        ("api.openai.com", "/v1/responses/compact", "openai_responses"),
        ("api.openai.com", "/v1/threads/t/messages", "openai_responses"),
        ("api.openai.com", "/v1/realtime?model=x", "openai_responses"),
        ("api.openai.com", "/v1/live/sessions", "openai_responses"),
        ("generativelanguage.googleapis.com", "/v1beta/interactions/live", "gemini"),
        ("api.openai.com", "/v1/conversations/c/items", "openai_responses"),
        ("api.githubcopilot.com", "/responses", "openai_responses"),
        ("chatgpt.com", "/backend-api/codex/responses", "openai_responses"),
        ("generativelanguage.googleapis.com", "/v1beta/models/gemini-x:streamGenerateContent?alt=sse", "gemini"),
        ("generativelanguage.googleapis.com", "/v1/models/gemini-x%3AgenerateContent", "gemini"),
        ("aiplatform.googleapis.com", "/v1/publishers/google/models/gemini-x:generateContent", "gemini"),
        ("cloudcode-pa.googleapis.com", "/v1internal:generateContent", "gemini"),
        ("cloudcode-pa.googleapis.com", "/v1internal:loadCodeAssist", "gemini"),
        ("bedrock-runtime.us-east-1.amazonaws.com", "/model/anthropic.claude-3-haiku-v1%3A0/converse-stream", "bedrock"),
        ("bedrock-runtime.us-east-1.amazonaws.com", "/model/arn:aws:bedrock:us-east-1:1:inference-profile%2Fx/invoke", "bedrock"),
        ("bedrock-mantle.us-east-1.api.aws", "/anthropic/v1/messages", "anthropic"),
        ("play.googleapis.com", "/log", "generic"),
        ("unknown.example", "/anything", "generic"),
    ],
)  # fmt: skip
def test_dialects(host: str, path: str, dialect: str) -> None:
    assert registry.find(ADAPTERS, host, path).id == dialect
    normal = base.normalise(path)
    assert len([a for a in ADAPTERS[:-1] if a.matches(host, normal)]) <= 1, (
        "the order of adapters must not matter"
    )


def test_without_a_generic_adapter_an_unknown_path_is_an_error() -> None:
    with pytest.raises(ConfigError, match="generic"):
        registry.find(ADAPTERS[:-1], "unknown.example", "/anything")


@pytest.mark.parametrize(
    ("host", "provider"),
    [
        ("API.OpenAI.com.", "openai"),
        ("eu.api.openai.com", "openai"),
        ("my-res.openai.azure.com", "azure"),
        ("europe-west4-aiplatform.googleapis.com", "google"),
        ("aiplatform.eu.rep.googleapis.com", "google"),
        ("bedrock-runtime.us-east-1.amazonaws.com", "aws"),
        ("bedrock-runtime-fips.us-gov-west-1.amazonaws.com", "aws"),
        ("aws-external-anthropic.us-east-1.api.aws", "anthropic"),
        ("api.business.githubcopilot.com", "github_copilot"),
        ("copilot-api.acme.ghe.com", "github_copilot"),
        ("api5.cursor.sh", "cursor"),
        ("llm.chutes.ai", "chutes"),
        ("codestral.mistral.ai", "mistral"),
    ],
)
def test_hosts_of_providers(host: str, provider: str) -> None:
    entry = hosts.lookup(host)
    assert entry is not None
    assert entry.provider == provider
    assert entry.dialect in {adapter.id for adapter in ADAPTERS}


@pytest.mark.parametrize(
    "host",
    ["api.openai.com.evil.example", "xapi.openai.com.example", "evil-api.anthropic.com", "openai.com", "a.b.api.openai.com",
     "-aiplatform.googleapis.com.evil", "s3.us-east-1.amazonaws.com", "github.com", "localhost", ""],
)  # fmt: skip
def test_look_alikes_are_nobody(host: str) -> None:
    assert hosts.lookup(host) is None
    assert hosts.provider(host) == host


def test_developer_hosts_are_no_providers() -> None:
    assert "pypi.org" in hosts.developer_hosts
    assert "github.com" in hosts.developer_hosts
    assert [host for host in hosts.developer_hosts if hosts.lookup(host)] == []


def test_a_path_proves_no_provider() -> None:
    anthropic = ADAPTERS[0]
    assert anthropic.destination("llm.internal.example", "/v1/messages", {"model": "m"}) == (
        "llm.internal.example",
        "m",
    )


def test_models_in_paths() -> None:
    by_id = {adapter.id: adapter for adapter in ADAPTERS}
    gemini = by_id["gemini"].destination(
        "generativelanguage.googleapis.com", "/v1beta/models/gemini-x:generateContent", {}
    )
    assert gemini == ("google", "gemini-x")
    arn = "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fx/invoke"
    assert by_id["bedrock"].destination("bedrock-runtime.us-east-1.amazonaws.com", arn, {}) == (
        "aws", "arn:aws:bedrock:us-east-1:1:inference-profile/x")  # fmt: skip
    azure = by_id["openai_chat"].destination(
        "r.openai.azure.com", "/openai/deployments/gpt-x/chat/completions", {}
    )
    assert azure == ("azure", "gpt-x")


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("/V1//messages/?a=/x#f", "/v1/messages"),
        ("/a/%2e%2e/b", "/b"),
        ("", "/"),
        ("/model/a%3Ab/converse", "/model/a:b/converse"),
    ],
)
def test_paths_for_matching(path: str, normal: str) -> None:
    assert base.normalise(path) == normal


@pytest.mark.parametrize(
    "host",
    [
        "llm.corp.example", "my-llm-gateway.corp.example", "inference.team.example", "openai-proxy.corp.example", "vllm01.corp.example",
        "ai-gateway.corp.example", "api.newmodels.ai", "api.eu.newmodels.ai", "claude.corp.example", "gpt4.corp.example", "OLLAMA.corp.example.",
    ],
)  # fmt: skip
def test_hosts_that_look_like_providers(host: str) -> None:
    assert hosts.looks_like_provider(host)
    assert hosts.lookup(host) is None


@pytest.mark.parametrize(
    "host",
    ["example.com", "api.github.com", "maillist.example", "www.newmodels.ai", "docs.api.newmodels.ai", "openair.example",
     "api.example.com", "gptx.example", "chain.example", "pypi.org", "localhost"],
)  # fmt: skip
def test_and_that_do_not(host: str) -> None:
    assert not hosts.looks_like_provider(host)
    assert not any(hosts.looks_like_provider(each) for each in hosts.developer_hosts)


@pytest.mark.parametrize(
    ("path", "tells"),
    [
        ("/v1/chat/completions", True), ("/api/chat", True), ("//v1//messages?beta=true", True), ("/v1/responses", True),
        ("/v1beta/models/m:generateContent", True), ("/model/m/converse", True), ("/", False), ("/v1/users", False),
        ("/token", False), ("/oauth/token", False), ("/index.html", False),
    ],
)  # fmt: skip
def test_paths_that_tell_a_request_to_a_model(path: str, tells: bool) -> None:
    assert registry.tells(ADAPTERS, "some.host.example", path) == tells
