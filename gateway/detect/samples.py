"""Values that stand in documentation everywhere, and fillers: not findings, by value and never by substring.

A real key may contain the letters of FOO or TODO; only the whole value decides.
"""

from __future__ import annotations

import re

from gateway.detect.data import words

PUBLISHED = words("published")

TEST_CARDS = words("test_cards")

_PLACEHOLDER = re.compile(
    r"""(?ix)
    [<\[({]{1,2}[^<>]{0,80}[>\])}]{1,2}                        # <YOUR_API_KEY>, [token], {{x}}
    | (?:your|my|some|the|an?|insert|enter|replace|put|add|fill|paste|use)[-_\s][^\d]{0,60}
    | (?:your|my)(?:api|secret|access|auth|token|key|password|pass|pwd)[^\d]{0,40}
    | (?:must|should|shall|may|can|do)[-_ ]?not[-_ ][a-z]{2,8}(?:[-_ ][a-z]{2,12}){0,4}   # must-not-be-empty
    | [a-z]{2,6}-your-[^\d]{0,40}
    | [^\d]{0,40}[-_](?:here|goes_here|placeholder)
    | (?:change|replace|fill|update|edit|set)[-_]?(?:me|this|it|in)(?:[-_!.].{0,30})?
    | (?:redacted|removed|hidden|masked|sanitized|censored|secret|password|passwd|pass|passphrase|token|key
        |api[-_]?key|apikey|none|null|nil|undefined|true|false|yes|no|default|empty|unset|todo|tbd|fixme|dummy
        |example|sample|test|testing|demo|placeholder|string|str|text|value|foo|bar|baz|foobar|changeit|unknown|n/?a|\.{2,}|username|user|private|public
        |not[-_]set|not[-_]?a[-_].{0,40}|bearer|basic)
    | (?:test|testing|dummy|sample|example|fake|mock)[-_]?\d{1,4}
    | [a-z]{2,8}[-_][a-z]{0,40}(?:example|notareal|fake|dummy|sample)[a-z]{0,40}0{0,40}
    | \W{0,80}
    | [*xX.•#_-]{3,200}
    """
)
_FILL = frozenset("xX0*.-_#•")


def is_filler(value: str) -> bool:
    """Whether the whole value is a published sample or an obvious filler."""
    if value in PUBLISHED:
        return True
    if len(value) < 80 and _PLACEHOLDER.fullmatch(value):
        return True
    return is_repeated(value)


def is_repeated(value: str) -> bool:
    """Whether the tail of a token is a filler character over and over (`ghp_xxxx...`, `T0000/B0000/XXXX`)."""
    body = value[-20:] if len(value) > 28 else value[len(value) // 3 :]
    if len(body) < 6:
        return False
    # At most 4 of at most 20 may be others, so one of the last five is the filler: most values end the search here.
    tail = body[-5:]
    if _FILL.isdisjoint(tail):
        return False
    return any(body.count(filler) * 10 >= len(body) * 8 for filler in _FILL.intersection(tail))


_REFERENCE = re.compile(
    r"""(?x)
    [$%@][\w$]{1,80} | @[\w.-]{1,80}@ | [$%@]\w{1,80}(?:::\w{1,80}){0,8}-?     # a variable, as of Perl: `$A::B->`
    | &lt;.{0,80} | [$%#@]?(?:\{.{0,200}\}|\(.{0,200}\)|<.{0,200}>)
    | .{0,80}(?:\$\{|\{\{|\#\{|<%|%\(|\$\().{0,200}
    | (?:os|process|env|ENV|System|self|this|config|settings|secrets|vault|var|local|data|module|args|options|params
        |props|request|req|ctx|context|state|app|conf|cfg|opts|user|form|input|event|credentials|creds|account|client
        |session|row|obj|result|response|res|body|payload|item|record|entity|model|values?|kwargs|environ|import\.meta
        |Deno|Bun|std|viper)
      (?:\.|\[|::|->).{0,200}
    | \w{1,60}\(.{0,200}
    | %[A-Z_][A-Z0-9_]{1,60}%                                   # a variable of cmd.exe
    | (?:vault|op|awssm|gcpsm|akv|ref\+\w{2,20}|secretsmanager|ssm|doppler|env|file|keyring):.{0,200}
    | !(?:vault|secret|Ref|Sub|GetAtt|ImportValue|env|reference|var)\b.{0,200}                  # tags of YAML
    | @(?:int|float|bool|json|format|jinja|merge|reset|get|read_file|env|empty|none|note|insert|del)(?:\ .{0,200})?
    | projects/[\w-]{1,40}/secrets/.{0,160} | /run/secrets/.{0,160}
    """
)


_LONGEST_REFERENCE = 300


def is_reference(value: str) -> bool:
    """Whether a value names where the secret is, instead of being it (`${X}`, `os.environ[...]`, `vault(...)`)."""
    return len(value) <= _LONGEST_REFERENCE and _REFERENCE.fullmatch(value) is not None


_PUBLIC = re.compile(
    r"(?:pk\.eyJ|pk_(?:live|test)_|pk-lf-|phc_|xpub|ypub|zpub|age1|ssh-(?:rsa|ed25519|dss) |ecdsa-sha2"
    r"|6L[A-Za-z0-9_-]{38}\Z|sha(?:1|256|384|512)[-:]|h1:|AC[0-9a-f]{32}\Z|G-[A-Z0-9]{10}\Z|UA-\d|ENC\[|\$ANSIBLE_VAULT|arn:aws:|urn:[a-z0-9-]{2,32}:|data:|EGRESS_"
    r"|Ag[A-D][A-Za-z0-9+/]{150}|hv[sbr]\.[\w-]{1,79}\Z|[sbr]\.\w{25,40}\Z)"
)


_NAMED_THING = re.compile(
    r"""(?x)
    (?i:(?:hmac|aes|sha|rsa|ecdsa|hs|rs|es|ps|pbkdf2|bcrypt|argon2|scrypt|chacha20|md5|tls|camellia)(?:id)?[-_]?v?[\d.]{0,5}
        (?:[-_](?:gcm|cbc|ctr|ccm|ecb|sha|sha\d{1,3}|poly1305|\d{1,4}|with|hmac|rsa|aes)){0,4})
    | (?:[A-Za-z][A-Za-z_]{1,30}-)?v?\d{1,4}(?:\.\d{1,5}){1,3}(?:[-+.][\w.]{1,20})?    # a version of something
    | (?:(?:Ctrl|Control|Alt|Shift|Cmd|Command|Meta)\+){1,3}[A-Za-z0-9]{1,10}                     # keys to press
    | [a-z0-9][a-z0-9.-]{1,60}(?:/[a-z0-9._-]{1,60}){1,3}:[\w.-]{1,40}       # an image and its tag
    | (?:application|text|image|audio|video|multipart|font)/[\w.+-]{1,60}     # a media type
    | [\w./~-]{1,120}\.(?:ya?ml|json|toml|pem|key|crt|cer|txt|env|cfg|conf|ini|py|js|ts|sh|xml|properties|sock)
    | [A-Za-z_][\w.]{1,60}\(\)                                              # a call
    | \w{3,128}(?:(?:/|%2F)[a-z0-9-]{2,40}){3}(?:/|%2F)aws4_request           # the scope of a signature (AWS)
    | (?:localhost|(?:[a-z0-9-]{1,40}\.){1,6}[a-z]{2,10}):\d{2,5}             # a host and its port
    """
)


def is_public(value: str) -> bool:
    """Whether a value is no secret by its form: publishable keys, digests, encrypted values, names of things."""
    return _PUBLIC.match(value) is not None or _NAMED_THING.fullmatch(value) is not None
