"""docker-compose.yml, held against the configuration that it mounts and against the variables of `egress env`."""

import json
import shlex
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from gateway.cli.environment import FIXED, LOCAL, NO_PROXY, PROXY, ROOTS
from gateway.cli.fake_provider import HOSTS
from gateway.cli.main import cli
from gateway.config import Config, load

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return document


@pytest.fixture(scope="module")
def config() -> Config:
    return load(ROOT / "docker" / "gateway.toml", {"HOME": "/nowhere"})


def mounts(service: dict[str, Any]) -> dict[str, tuple[str, bool]]:
    """Place in the container to (source, writable)."""
    found = {}
    for entry in service["volumes"]:
        source, target, *mode = entry.split(":")
        found[target] = (source, "ro" not in mode)
    return found


def test_every_mounted_file_and_volume_exists(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        for source, _ in mounts(service).values():
            assert (ROOT / source).exists() if source.startswith("./") else source in compose["volumes"]


def test_the_gateways_paths_are_mounted(compose: dict[str, Any], config: Config) -> None:
    gateway = mounts(compose["services"]["gateway"])

    assert gateway[str(config.state.dir)][1], "state must be writable"
    assert config.upstream.ca_file is not None
    source, writable = gateway[str(config.upstream.ca_file.parent)]
    assert not writable
    assert mounts(compose["services"]["provider"])[str(config.upstream.ca_file.parent)] == (source, True)


def test_the_agent_sees_the_certificate_and_no_key_and_no_evidence(
    compose: dict[str, Any], config: Config
) -> None:
    agent, gateway = compose["services"]["agent"], compose["services"]["gateway"]
    private = {source for target, (source, _) in mounts(gateway).items() if target == str(config.state.dir)}

    assert private.isdisjoint(source for source, _ in mounts(agent).values())
    assert not any(writable for _, writable in mounts(agent).values())
    assert agent["user"] not in {"0", "10001"}
    assert agent["network_mode"] == "service:gateway"
    assert compose["networks"]["closed"]["internal"] is True


def test_the_agents_variables_are_those_of_the_command_line(compose: dict[str, Any], config: Config) -> None:
    values = compose["services"]["agent"]["environment"]
    (project,) = config.projects

    assert set(values) == {*PROXY, *NO_PROXY, *ROOTS, *FIXED}
    assert {values[name] for name in PROXY} == {f"http://{project}:-@{config.listen.proxy}"}
    assert {values[name] for name in NO_PROXY} == {",".join(LOCAL)}
    (roots,) = {values[name] for name in ROOTS}
    assert str(PurePosixPath(roots).parent) in mounts(compose["services"]["agent"])
    assert {name: values[name] for name in FIXED} == FIXED


def test_the_gateway_dials_the_provider_where_it_listens(compose: dict[str, Any], config: Config) -> None:
    command = compose["services"]["provider"]["command"]
    port = int(command[command.index("--port") + 1])

    assert {str(target) for target in config.upstream.connect_to} == {f"{host}:443" for host in HOSTS}
    assert {(dial.host, dial.port) for dial in config.upstream.connect_to.values()} == {("provider", port)}
    assert str(config.listen.control) in str(compose["services"]["gateway"]["healthcheck"]["test"])


def test_the_gateways_commands_exist(compose: dict[str, Any]) -> None:
    (script,) = compose["services"]["gateway"]["command"]
    for part in script.split("&&"):
        words = shlex.split(part.strip().removeprefix("exec "))
        assert words[0] == "egress"
        command: Any = cli
        for word in words[1 : words.index("--config")]:
            if word.startswith("-"):
                assert word in {option for parameter in command.params for option in parameter.opts}
            else:
                command = command.commands[word]
        path = words[words.index("--config") + 1]
        assert path in mounts(compose["services"]["gateway"])


def test_the_agents_request_is_one_that_its_client_takes() -> None:
    task = json.loads((ROOT / "docker" / "request.json").read_text())

    assert set(task) == {"client", "messages", "tools"}
