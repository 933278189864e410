"""The table of settings. A field of a section below is a row: its type, kind, default and one line of help.

Defaults stand as they would in the file: an absent key, a written one and the documentation mean the same.
"""

# ruff: noqa: RUF009 - setting() makes a dataclasses.field, which the rule does not see through

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gateway.config import values
from gateway.config.anchors import Anchor
from gateway.config.destinations import Account, LocalModelSettings, Notify
from gateway.config.projects import Project
from gateway.config.rows import setting
from gateway.config.values import Address, Enforcement, ExtraFailure, HostPattern, Mode, Unknown
from gateway.ports import REVIEWER_ROLES

PRINCIPAL_KINDS: Final = frozenset(
    {"person", "team", "organization", "project", "agent", "session", "workload"}
)
"""Kinds of an authenticated principal (contract.md §4.1, PrincipalKindV1 without `unknown`)."""

_BYTES = values.whole(1, 1 << 40)
_COUNT = values.whole(1, 1 << 31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """Where agents and operators reach the gateway."""

    proxy: Address = setting(values.ADDRESS, "127.0.0.1:8080", "what agents put in HTTPS_PROXY")
    control: Address = setting(values.ADDRESS, "127.0.0.1:8081", "health, metrics, API and console")
    workers: int = setting(values.whole(0, 256), 1, "processes that share the proxy port; 0: one a core")
    tls_cert: Path | None = setting(
        values.FILE,
        "",
        "certificate of a TLS listener (https:// proxy); required where the listener is not loopback",
    )
    tls_key: Path | None = setting(values.FILE, "", "its private key")
    client_ca: Path | None = setting(
        values.FILE,
        "",
        "roots of client certificates; the subject's common name is the principal, its unit the project",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What outlives a run."""

    dir: Path = setting(
        values.FOLDER, "~/.local/state/egress", "ca.pem, egress.db, vault, control.token, sockets"
    )
    store: str = setting(
        values.STORE, "sqlite", "the evidence store: a name, or a URL whose scheme is one", secret=True
    )
    keep_days: int = setting(
        values.whole(0, 36_500), 0, "days for which evidence is kept; older leaves its hashes. 0: for ever"
    )
    keep_bytes: int = setting(
        values.whole(0, 1 << 50), 0, "bytes of evidence; over it the oldest leaves its hashes. 0: no limit"
    )
    vault_days: int = setting(
        values.whole(0, 36_500), 90, "days after its last use for which a masked value is kept. 0: for ever"
    )
    keys: Path | None = setting(values.KEYS, "", "where keys lie; empty: <dir>/keys")
    signer: str = setting(
        values.SIGNER,
        "",
        "the key that signs evidence, by URI: file:/path, or the scheme of a signer plug-in; empty: one in `keys`",
        secret=True,
    )
    seen_days: int = setting(
        values.whole(1, 3650), 90, "days for which what a project was seen to send is known as its own"
    )

    @property
    def keys_dir(self) -> Path:
        """The folder of the keys, effective."""
        return self.keys or self.dir / "keys"

    @property
    def database(self) -> Path:
        """The evidence database of the sqlite store."""
        return self.dir / "egress.db"

    @property
    def ca_key(self) -> Path:
        """The key of the interception CA, with its certificate."""
        return self.keys_dir / "ca.key"

    @property
    def public_key(self) -> Path:
        """The public half of the key that signs evidence, for auditors."""
        return self.keys_dir / "signing.pub"


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """How providers are reached."""

    ca_file: Path | None = setting(
        values.FILE, "", "extra roots trusted for upstream TLS, beside the public ones"
    )
    proxy: str = setting(
        values.PROXY_URL, "", "a company proxy to chain to, http://user:password@host:port", secret=True
    )
    aws_credentials: Path | None = setting(
        values.FILE,
        "",
        "AWS credentials file that signs Bedrock requests anew; empty: no signed one is changed",
    )
    connect_to: dict[Address, Address] = setting(
        values.DIAL, {}, '"host:port" = "host:port": dial there; TLS name and Host stay, as curl --connect-to'
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """Which connections are opened, passed or refused."""

    intercept: tuple[HostPattern, ...] = setting(
        values.HOSTS, [], "opened, beside the shipped provider table"
    )
    tunnel: tuple[HostPattern, ...] = setting(values.HOSTS, [], "passed through unread, and recorded")
    deny: tuple[HostPattern, ...] = setting(values.HOSTS, [], "refused, whatever the other lists say")
    unknown: Unknown = setting(
        values.choice(Unknown, empty=True),
        "",
        "every other host; empty: tunnel in developer mode, refuse in the other two",
    )
    websocket: str = setting(
        values.word(frozenset({"read", "refuse"})),
        "read",
        "WebSockets of known dialects: messages are read, or upgrades are answered 426 as all others are",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySettings:
    """Which rules decide. `folders` and `trial_folders` are the bundles as they were found, in order."""

    bundles: tuple[str, ...] = setting(
        values.BUNDLES,
        ["policies/default"],
        "folders relative to this file, else packaged bundles of that name, or https:// URLs of packed ones; "
        "later ones only tighten",
    )
    mode: Mode = setting(values.choice(Mode), "governed", "how strict the gateway is where a rule is silent")
    enforcement: Enforcement = setting(
        values.choice(Enforcement), "enforce", "shadow: denials are recorded, and not enforced"
    )
    public_key: Path | None = setting(
        values.FILE,
        "",
        "key that bundles must be signed with (`egress policy sign`); empty: none is asked for",
    )
    poll_s: int = setting(
        values.whole(0, 3600), 2, "seconds between looks whether bundles changed; 0: only when told to reload"
    )
    run: tuple[str, ...] = setting(
        values.TRIAL, [], "bundles of this run alone, the last layer (`egress up --bundle`)"
    )
    trial: tuple[str, ...] = setting(
        values.TRIAL,
        [],
        "bundles that are only asked what they would decide, which the evidence records beside the decision",
    )
    fetch_s: int = setting(
        values.whole(0, 86_400), 300, "seconds between looks at bundles that have a URL; 0: at start only"
    )
    fetch_token_file: Path | None = setting(
        values.FILE, "", "file with a token that servers of bundles ask for (`Authorization: Bearer`)"
    )
    unlisted_accounts: str = setting(
        values.word(frozenset({"", "allow", "refuse"})),
        "",
        "credentials of no listed account; empty: refused at providers of which an account is listed",
    )
    folders: tuple[Path, ...] = ()
    trial_folders: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds; a request over one is refused, never cut."""

    max_body_bytes: int = setting(_BYTES, 33_554_432, "bytes of a request body after decoding")
    max_decoded_ratio: int = setting(_COUNT, 100, "decoded bytes for each received one")
    max_nodes: int = setting(_COUNT, 2_000_000, "JSON values in a body")
    max_depth: int = setting(values.whole(1, 512), 128, "nesting of JSON in a body")
    max_objects: int = setting(
        values.whole(1, 4096), 4096, "context objects in a request (a receipt holds 4096)"
    )
    max_inflight_bytes: int = setting(_BYTES, 536_870_912, "bytes of all requests in flight; over it: 503")
    max_connections: int = setting(_COUNT, 1024, "client connections; over it: 503")
    ws_message_bytes: int = setting(_BYTES, 33_554_432, "bytes of a WebSocket message")
    deadline_ms: int = setting(
        values.whole(1, 600_000), 10_000, "milliseconds to a verdict; over it: refused"
    )
    approval_wait_ms: int = setting(
        values.whole(0, 3_600_000),
        0,
        "milliseconds to wait for a person; 0: answer at once that approval is pending",
    )
    inline_scan_bytes: int = setting(
        values.whole(0, 1 << 30),
        65_536,
        "text scanned where it is; more goes to a process that can be killed",
    )
    scan_workers: int = setting(values.whole(0, 256), 1, "processes that scan; 0: one a core")
    scan_queue: int = setting(values.whole(1, 65_536), 64, "scans that wait for a process; over it: refused")
    extra_deadline_ms: int = setting(
        values.whole(1, 600_000), 2_000, "milliseconds that an extra detector is waited for"
    )
    extra_failure: ExtraFailure = setting(
        values.choice(ExtraFailure),
        "deny",
        "content that an extra detector did not answer for: counts as not fully inspected, or is let through and said; "
        "sovereign mode denies",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugins:
    """What is active, by entry-point name; what is installed and not named here does nothing."""

    providers: tuple[str, ...] = setting(
        values.PLUGINS,
        [
            *("anthropic", "bedrock", "cohere", "gemini", "mistral"),
            *("oauth", "ollama", "openai_chat", "openai_responses"),
        ],
        "wire dialects",
    )
    detectors: tuple[str, ...] = setting(
        values.PLUGINS, ["builtin"], "detectors; those beside `builtin` run in processes of their own"
    )
    minimisers: tuple[str, ...] = setting(
        values.PLUGINS,
        ["head_tail", "match_lines", "drop_fields", "deduplicate"],
        "what rules can cut texts down with",
    )
    summarisers: tuple[str, ...] = setting(
        values.PLUGINS,
        [
            "auto",
            "counts",
            "json_schema",
            "csv_schema",
            "log_templates",
            "python_outline",
            "code_outline",
        ],
        "what rules can put an extract in the place of a text with",
    )
    extractors: tuple[str, ...] = setting(
        values.words(("pdf", "token_ids")),
        [],
        "what takes text out of `pdf` documents and `token_ids`; each needs an extra (`documents`, `tokens`)",
    )
    sinks: tuple[str, ...] = setting(values.PLUGINS, ["metrics"], "receivers of facts about requests")


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """Quarantine and approval: what it takes to let a held object go."""

    reviewers_needed: int = setting(
        values.whole(1, 8), 1, "different people who must release or approve; 2: four eyes"
    )
    release_hours: int = setting(
        values.whole(1, 8760), 24, "hours for which a release or an approval holds; a refusal holds for good"
    )
    break_glass_minutes: int = setting(
        values.whole(0, 10_080), 240, "longest time for which a person may lift rules; 0: none can be lifted"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Somebody who sends requests."""

    name: str
    kind: str = setting(values.word(PRINCIPAL_KINDS), "person", "what it is (contract: PrincipalKindV1)")
    roles: tuple[str, ...] = setting(values.NAMES, [], "roles that policy rules name")
    projects: tuple[str, ...] = setting(values.NAMES, [], "projects it may send for")
    token_file: Path | None = setting(values.FILE, "", "file with its token")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerSettings:
    """Somebody who may decide about held objects. Once there is one, the token of the control port decides nothing."""

    name: str
    token_file: Path | None = setting(values.FILE, "", "file with their token; required")
    roles: tuple[str, ...] = setting(
        values.words(REVIEWER_ROLES),
        ["view", "release", "approve"],
        "`content` looks at what is held, `operate` reloads and stops traffic, `break_glass` lifts rules",
    )
    projects: tuple[str, ...] = setting(values.NAMES, [], "projects they decide for; empty: every one")
    principals: tuple[str, ...] = setting(
        values.NAMES, [], "names under which they send requests, about which they cannot decide"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much may be asked of models in a window of time; counts outlive a restart."""

    name: str
    requests: int = setting(values.whole(0, 1 << 31), 0, "requests in a window; 0: any number")
    bytes: int = setting(values.whole(0, 1 << 40), 0, "bytes of request bodies in a window; 0: any number")
    tokens: int = setting(
        values.whole(0, 1 << 40),
        0,
        "tokens of requests and answers in a window, by the providers' count, which is known afterwards; 0: any number",
    )
    window_s: int = setting(values.whole(1, 31_536_000), 3600, "seconds of a window")
    per: str = setting(
        values.word(frozenset({"gateway", "project", "principal"})), "project", "what is counted by itself"
    )
    projects: tuple[str, ...] = setting(values.NAMES, [], "projects it is for; empty: every one")
    principals: tuple[str, ...] = setting(values.NAMES, [], "principals it is for; empty: every one")


SECTIONS: Final[dict[str, type]] = {
    "listen": Listen,
    "state": State,
    "upstream": Upstream,
    "hosts": Hosts,
    "policy": PolicySettings,
    "limits": Limits,
    "plugins": Plugins,
    "review": Review,
    "anchor": Anchor,
    "notify": Notify,
}
NAMED_SECTIONS: Final[dict[str, type]] = {
    "projects": Project,
    "principals": Principal,
    "reviewers": ReviewerSettings,
    "budgets": Budget,
    "accounts": Account,
    "local_models": LocalModelSettings,
}
"""Sections that hold one table a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The effective configuration; paths are absolute. `source` is the file, None for embedded defaults."""

    listen: Listen
    state: State
    upstream: Upstream
    hosts: Hosts
    policy: PolicySettings
    limits: Limits
    plugins: Plugins
    review: Review
    anchor: Anchor
    notify: Notify
    projects: dict[str, Project]
    principals: dict[str, Principal]
    reviewers: dict[str, ReviewerSettings]
    budgets: dict[str, Budget]
    accounts: dict[str, Account]
    local_models: dict[str, LocalModelSettings]
    source: Path | None = None
