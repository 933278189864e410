"""Hosts of model providers, and of the package and code services that developers need: who they are, what they speak.

A table of facts, not a policy: what is done with a host is decided by the configuration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class HostEntry:
    """A provider's id as it stands in evidence, and the id of the dialect spoken where the path tells nothing."""

    provider: str
    dialect: str


# provider -> hosts that speak the OpenAI shapes, more or less
_OPENAI_SHAPED: Final[Mapping[str, str]] = {
    "abliteration": "api.abliteration.ai",
    "aiand": "api.aiand.com",
    "aihubmix": "aihubmix.com",
    "alibaba": "dashscope-intl.aliyuncs.com dashscope.aliyuncs.com",
    "anyscale": "api.endpoints.anyscale.com",
    "assemblyai": "llm-gateway.assemblyai.com",
    "cerebras": "api.cerebras.ai",
    "charityengine": "api.charityengine.services",
    "chutes": "llm.chutes.ai",
    "clarifai": "api.clarifai.com",
    "clfaigateway": "api.clfaigateway.dev",
    "cognition": "api.cognition.ai",
    "cohere": "api.cohere.ai api.cohere.com",
    "coralbricks": "inference.coralbricks.ai",
    "cortecs": "api.cortecs.ai",
    "crusoe": "api.inference.crusoecloud.com",
    "darkbloom": "api.darkbloom.dev",
    "deepinfra": "api.deepinfra.com",
    "deepseek": "api.deepseek.com",
    "edenai": "api.edenai.run",
    "empiriolabs": "api.empiriolabs.ai",
    "featherless": "api.featherless.ai",
    "fireworks": "api.fireworks.ai",
    "friendli": "api.friendli.ai",
    "galadriel": "api.galadriel.ai",
    "gigachat": "gigachat.devices.sberbank.ru",
    "github_models": "models.github.ai models.inference.ai.azure.com",
    "gmi_serving": "api.gmi-serving.com",
    "groq": "api.groq.com",
    "helicone": "ai-gateway.helicone.ai",
    "hostinger": "router.hostinger.com",
    "huggingface": "api-inference.huggingface.co router.huggingface.co",
    "hyperbolic": "api.hyperbolic.xyz",
    "inceptionlabs": "api.inceptionlabs.ai",
    "inferenceapis": "api.inferenceapis.com",
    "jina": "api.jina.ai",
    "kymaapi": "kymaapi.com",
    "lambda": "api.lambda.ai",
    "libertai": "api.libertai.io",
    "llamagate": "api.llamagate.dev",
    "meta": "api.llama.com api.meta.ai",
    "minimax": "api.minimax.io",
    "mistral": "api.mistral.ai codestral.mistral.ai",
    "modelscope": "api-inference.modelscope.cn",
    "moonshot": "api.moonshot.ai api.moonshot.cn",
    "morphllm": "api.morphllm.com",
    "nano_gpt": "nano-gpt.com",
    "nebius": "api.studio.nebius.ai",
    "neosantara": "api.neosantara.xyz",
    "nscale": "inference.api.nscale.com",
    "nvidia": "integrate.api.nvidia.com",
    "ollama": "ollama.com",
    "openinfer": "api.openinfer.ai",
    "openrouter": "openrouter.ai",
    "parasail": "api.parasail.io",
    "perplexity": "api.perplexity.ai",
    "pinstripes": "pinstripes.io",
    "poe": "api.poe.com",
    "prisminference": "api.prisminference.com",
    "publicai": "api.publicai.co",
    "refuseless": "api.refuseless.com",
    "reka": "api.reka.ai",
    "runanywhere": "inference.runanywhere.ai",
    "sailresearch": "api.sailresearch.com",
    "sambanova": "api.sambanova.ai",
    "sarvam": "api.sarvam.ai",
    "scaleway": "api.scaleway.ai",
    "scx": "api.scx.ai",
    "stima": "api.stima.tech",
    "streamlake": "vanchin.streamlake.ai",
    "synthetic": "api.synthetic.new",
    "tensormesh": "serverless.tensormesh.ai",
    "together": "api.together.ai api.together.xyz",
    "venice": "api.venice.ai",
    "vercel": "ai-gateway.vercel.sh api.v0.dev",
    "voyage": "ai.mongodb.com api.voyageai.com",
    "wandb": "api.inference.wandb.ai",
    "xai": "api.x.ai",
    "xiaomimimo": "api.xiaomimimo.com",
    "zai": "api.z.ai",
    "zerogpu": "api.zerogpu.ai",
    "zhipu": "open.bigmodel.cn",
}

_OWN: Final = {"cohere": "cohere", "mistral": "mistral", "ollama": "ollama"}  # dialects of a provider's own

_EXACT: Final[Mapping[str, HostEntry]] = {
    host: HostEntry(provider, _OWN.get(provider, "openai_chat"))
    for provider, names in _OPENAI_SHAPED.items()
    for host in names.split()
} | {
    "api.openai.com": HostEntry("openai", "openai_chat"),
    "chatgpt.com": HostEntry("openai", "openai_responses"),
    "ab.chatgpt.com": HostEntry("openai", "generic"),
    "auth.openai.com": HostEntry("openai", "generic"),
    "oauth2.googleapis.com": HostEntry("google", "generic"),
    "api.anthropic.com": HostEntry("anthropic", "anthropic"),
    "claude.ai": HostEntry("anthropic", "anthropic"),
    "platform.claude.com": HostEntry("anthropic", "anthropic"),
    "console.anthropic.com": HostEntry("anthropic", "anthropic"),
    "claude.googleapis.com": HostEntry("anthropic", "anthropic"),
    "mcp-proxy.anthropic.com": HostEntry("anthropic", "generic"),
    "generativelanguage.googleapis.com": HostEntry("google", "gemini"),
    "cloudcode-pa.googleapis.com": HostEntry("google", "gemini"),
    "aiplatform.googleapis.com": HostEntry("google", "gemini"),
    "play.googleapis.com": HostEntry("google", "generic"),
    "api.githubcopilot.com": HostEntry("github_copilot", "openai_chat"),
    "copilot-proxy.githubusercontent.com": HostEntry("github_copilot", "openai_chat"),
    "copilot-telemetry.githubusercontent.com": HostEntry("github_copilot", "generic"),
    # services that keep memory for agents
    "api.mem0.ai": HostEntry("mem0", "generic"),
    "api.getzep.com": HostEntry("zep", "generic"),
    "api.letta.com": HostEntry("letta", "generic"),
    "r.jina.ai": HostEntry("jina", "generic"),
    "s.jina.ai": HostEntry("jina", "generic"),
    "deepsearch.jina.ai": HostEntry("jina", "openai_chat"),
}

_LABEL: Final = r"[a-z0-9-]+"
_PATTERNS: Final = tuple(
    (re.compile(pattern), HostEntry(provider, dialect))
    for pattern, provider, dialect in (
        (rf"{_LABEL}\.api\.openai\.com", "openai", "openai_chat"),
        (r"(?:us|eu)\.api\.mistral\.ai|api\.(?:us|eu)\.mistral\.ai", "mistral", "mistral"),
        (rf"{_LABEL}\.api\.x\.ai", "xai", "openai_chat"),
        (rf"{_LABEL}\.openai\.azure\.(?:com|us|cn)", "azure", "openai_chat"),
        (rf"{_LABEL}\.(?:cognitiveservices|services\.ai)\.azure\.(?:com|us|cn)", "azure", "openai_chat"),
        (rf"(?:{_LABEL}\.)+(?:inference|models)\.ai\.azure\.com", "azure", "openai_chat"),
        (rf"{_LABEL}-aiplatform\.googleapis\.com", "google", "gemini"),
        (r"aiplatform\.(?:us|eu)\.rep\.googleapis\.com", "google", "gemini"),
        (rf"(?:{_LABEL}\.)+prediction\.vertexai\.goog", "google", "gemini"),
        (rf"aws-external-anthropic\.{_LABEL}\.api\.aws", "anthropic", "anthropic"),
        (
            rf"bedrock-(?:runtime|agent-runtime)(?:-fips)?\.{_LABEL}\.amazonaws\.com(?:\.cn)?",
            "aws",
            "bedrock",
        ),
        (rf"(?:{_LABEL}\.)+bedrock-runtime\.{_LABEL}\.vpce\.amazonaws\.com", "aws", "bedrock"),
        (rf"bedrock-(?:runtime|mantle)\.{_LABEL}\.api\.aws", "aws", "bedrock"),
        (
            r"(?:api|proxy)\.(?:individual|business|enterprise)\.githubcopilot\.com",
            "github_copilot",
            "openai_chat",
        ),
        (rf"telemetry\.(?:{_LABEL}\.)?githubcopilot\.com", "github_copilot", "generic"),
        (rf"copilot-api\.{_LABEL}\.ghe\.com", "github_copilot", "openai_chat"),
        (rf"(?:{_LABEL}\.)+endpoints\.huggingface\.cloud", "huggingface", "openai_chat"),
        (rf"(?:{_LABEL}\.)+(?:cursor\.sh|cursorapi\.com)", "cursor", "generic"),
    )
)

developer_hosts: Final = frozenset(
    # package indexes
    {
        "pypi.org",
        "files.pythonhosted.org",
        "registry.npmjs.org",
        "registry.yarnpkg.com",
        "npm.jsr.io",
        "jsr.io",
    }
    | {
        "crates.io",
        "index.crates.io",
        "static.crates.io",
        "static.rust-lang.org",
        "proxy.golang.org",
        "sum.golang.org",
    }
    | {"rubygems.org", "index.rubygems.org", "repo.maven.apache.org", "repo1.maven.org", "plugins.gradle.org"}
    | {
        "services.gradle.org",
        "downloads.gradle.org",
        "api.nuget.org",
        "repo.packagist.org",
        "packagist.org",
        "hex.pm",
    }
    | {
        "repo.hex.pm",
        "conda.anaconda.org",
        "repo.anaconda.com",
        "hackage.haskell.org",
        "cpan.metacpan.org",
        "nodejs.org",
    }
    | {
        "deb.debian.org",
        "security.debian.org",
        "archive.ubuntu.com",
        "security.ubuntu.com",
        "dl-cdn.alpinelinux.org",
    }
    | {"mirrors.fedoraproject.org", "formulae.brew.sh", "cache.nixos.org", "go.dev", "dl.google.com"}
    # container registries
    | {
        "registry-1.docker.io",
        "auth.docker.io",
        "production.cloudflare.docker.com",
        "ghcr.io",
        "quay.io",
        "gcr.io",
    }
    | {"pkg-containers.githubusercontent.com", "mcr.microsoft.com", "registry.k8s.io", "public.ecr.aws"}
    # code hosts
    | {
        "github.com",
        "api.github.com",
        "codeload.github.com",
        "objects.githubusercontent.com",
        "raw.githubusercontent.com",
    }
    | {
        "release-assets.githubusercontent.com",
        "github-cloud.githubusercontent.com",
        "lfs.github.com",
        "gitlab.com",
    }
    | {"registry.gitlab.com", "bitbucket.org", "codeberg.org", "git.sr.ht"}
)
"""Exact hosts that are passed through unread, and recorded, in developer and governed mode."""


def lookup(host: str) -> HostEntry | None:
    """What is known of a host (lower case, no port); None for one that is no provider's."""
    host = host.lower().rstrip(".")
    entry = _EXACT.get(host)
    if entry is not None:
        return entry
    return next((found for pattern, found in _PATTERNS if pattern.fullmatch(host)), None)


# words in the names of hosts that serve models: gateways of companies, servers of teams, providers of next month
_TELLING: Final = frozenset(
    {"llm", "llms", "inference", "openai", "anthropic", "claude", "chatgpt", "gpt", "gemini", "genai"}
    | {"ollama", "vllm", "litellm", "llamacpp", "lmstudio", "completions", "aigateway", "aiproxy"}
)
_TELLING_PAIRS: Final = re.compile(r"(?:^|[.-])(?:ai-(?:gateway|proxy|api)|llama-cpp|lm-studio)(?:[.-]|$)")
_API_AI: Final = re.compile(r"api\.(?:[a-z0-9-]+\.)?[a-z0-9-]+\.ai")


def looks_like_provider(host: str) -> bool:
    """Whether the name of a host that is in no table says that it serves models: a guess, which may open it."""
    host = host.lower().rstrip(".")
    words = re.split(r"[.\-_]|(?<=[a-z])\d+", host)
    return not _TELLING.isdisjoint(words) or bool(_TELLING_PAIRS.search(host) or _API_AI.fullmatch(host))


def provider(host: str) -> str:
    """The provider's id of a host, the host itself where none is known: what a path looks like proves nothing."""
    entry = lookup(host)
    return host if entry is None else entry.provider


def table() -> list[tuple[str, HostEntry]]:
    """Every host, and every pattern of hosts as a regular expression, with its entry: for the documentation."""
    return [*_EXACT.items(), *((pattern.pattern, entry) for pattern, entry in _PATTERNS)]
