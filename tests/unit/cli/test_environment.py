"""The variables that put a program behind the gateway."""

import shutil
import subprocess
from pathlib import Path

import click
import pytest

from gateway.cli.environment import (
    LOCAL,
    PROXY,
    ROOTS,
    export_lines,
    no_proxy,
    proxy_url,
    roots_file,
    variables,
)
from gateway.config import parse
from gateway.errors import SetupError
from tests.unit.cli.conftest import CONFIG, Run

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"

# Field notes on agents: what each runtime reads (clients and their certificate stores).
WANTED = {
    "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS", "AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "CODEX_CA_CERTIFICATE",
    "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "PIP_CERT", "DENO_CERT", "NODE_USE_ENV_PROXY",
    "CLAUDE_CODE_ATTRIBUTION_HEADER",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A state folder whose CA exists already."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "ca.pem").write_text(PEM)
    (tmp_path / "gateway.toml").write_text(CONFIG)
    return tmp_path


def settings(folder: Path, **sections: object) -> dict[str, object]:
    return {"state": {"dir": str(folder / "state")}, **sections}


def test_every_variable_that_a_runtime_needs_is_set(folder: Path) -> None:
    values = variables(parse(settings(folder), folder, {"HOME": "/"}), {})

    assert set(values) == WANTED
    assert {values[name] for name in PROXY} == {"http://127.0.0.1:8080"}
    assert len({values[name] for name in ROOTS}) == 1


def test_the_roots_file_holds_public_roots_the_users_own_and_the_ca(folder: Path) -> None:
    own, upstream = folder / "corporate.pem", folder / "upstream.pem"
    own.write_text(PEM.replace("MIIB", "CORP"))
    upstream.write_text(PEM.replace("MIIB", "UPST"))
    config = parse(settings(folder, upstream={"ca_file": str(upstream)}), folder, {"HOME": "/"})
    path = roots_file(config, {"SSL_CERT_FILE": str(own), "NODE_EXTRA_CA_CERTS": str(folder / "gone.pem")})
    text = path.read_text()

    assert text.count("BEGIN CERTIFICATE") > 100
    for mark in ("MIIB\n", "CORP", "UPST"):
        assert mark in text
    assert path.parent == folder / "state"
    again = roots_file(config, {"SSL_CERT_FILE": str(path)})
    assert "CORP" not in again.read_text(), "our own file must not be taken for the user's"


@pytest.mark.parametrize(
    ("environ", "listed"),
    [
        ({}, "localhost,127.0.0.1,::1"),
        ({"NO_PROXY": "corp.example, 10.0.0.1"}, "corp.example,10.0.0.1,localhost,127.0.0.1,::1"),
        ({"no_proxy": "localhost,a", "NO_PROXY": "a,b"}, "a,b,localhost,127.0.0.1,::1"),
        ({"NO_PROXY": "*"}, "localhost,127.0.0.1,::1"),
        ({"NO_PROXY": "a,*,"}, "a,localhost,127.0.0.1,::1"),
    ],
)
def test_the_users_no_proxy_is_added_to_and_cannot_switch_the_gateway_off(
    environ: dict[str, str], listed: str
) -> None:
    found = no_proxy(environ)

    assert sorted(found.split(",")) == sorted(listed.split(","))
    assert set(LOCAL) <= set(found.split(","))
    assert not {"[", "]", "/", "*"} & set(found)


def test_a_project_names_itself_in_the_address(folder: Path) -> None:
    (folder / "token").write_text("s3cr/et\n")
    document = settings(
        folder,
        projects={
            "web": {},
            "api": {"token_file": str(folder / "token")},
            "bad": {"token_file": str(folder / "gone")},
        },
        principals={
            "alice": {"projects": ["web", "api"], "token_file": str(folder / "token")},
            "bob": {"projects": ["web"]},
        },
    )
    config = parse(document, folder, {"HOME": "/"})

    assert proxy_url(config, "web", None) == "http://web:-@127.0.0.1:8080"
    assert proxy_url(config, "api", None) == "http://api:s3cr%2Fet@127.0.0.1:8080"
    assert proxy_url(config, "web", "alice") == "http://web%2Balice:s3cr%2Fet@127.0.0.1:8080"
    assert proxy_url(config, "api", "bob") == "http://api%2Bbob:s3cr%2Fet@127.0.0.1:8080"
    assert proxy_url(config, None, "bob") == "http://default%2Bbob:-@127.0.0.1:8080"
    with pytest.raises(SetupError):
        proxy_url(config, "bad", None)
    for project, principal, advice in (
        ("nobody", None, "egress project add nobody"),
        ("web", "nobody", "principals.nobody"),
    ):
        with pytest.raises(click.UsageError, match=advice):
            proxy_url(config, project, principal)


def test_a_tls_listener_is_an_https_proxy(folder: Path) -> None:
    listen = {"tls_cert": "c", "tls_key": "k"}

    assert proxy_url(parse(settings(folder, listen=listen), folder, {"HOME": "/"}), None, None).startswith(
        "https://"
    )


AWKWARD = 'it\'s "$HOME" `id` \\ $(id) %2F'


@pytest.mark.parametrize("shell", ["sh", "bash", "fish", "pwsh"])
def test_a_shell_reads_back_what_was_meant(shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} here")
    dialect = {"bash": "sh", "pwsh": "powershell"}.get(shell, shell)
    show = "Write-Host -NoNewline $env:VALUE" if shell == "pwsh" else 'printf %s "$VALUE"'
    script = export_lines({"VALUE": AWKWARD}, dialect) + f"\n{show}\n"
    done = subprocess.run([program, "-c", script], capture_output=True, text=True, timeout=20, check=True)

    assert done.stdout == AWKWARD


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("sh", "export A='it'\\''s'"),
        ("fish", "set -gx A 'it\\'s'"),
        ("powershell", "$env:A = 'it''s'"),
    ],
)
def test_quotes_are_escaped_in_every_dialect(shell: str, line: str) -> None:
    assert export_lines({"A": "it's"}, shell) == line


def test_env_prints_them(egress: Run, folder: Path) -> None:
    lines = egress("env").out.splitlines()

    assert len(lines) == len(WANTED)
    assert "export HTTPS_PROXY='http://127.0.0.1:1'" in lines
    assert egress("env", "--project", "nobody").status == 2
