"""Detection rules that a bundle brings: checked as the built-in ones are, in force here and in scanning processes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gateway.app import wiring
from gateway.app.detection import own_rules
from gateway.app.policies import LivePolicy, policy_of, transformers_of
from gateway.cli.main import main
from gateway.config import Config, load
from gateway.context.findings import ScanItem
from gateway.errors import ConfigError, SetupError
from gateway.store.rulefile import read_rules, write_rules
from gateway.workers import ScanPool

KEY = "acme_4f1c0a9d2b7e6f3855aa01c9de47b28e"
RULE = """
[[rule]]
id = "acme-key"
type = "acme_key"
category = "secret"
severity = "critical"
trigger = ['acme_[a-z0-9]{4}']
pattern = 'acme_[a-z0-9]{32}'
positive = ["acme_4f1c0a9d2b7e6f3855aa01c9de47b28e"]
negative = ["acme_example"]
source = "ACME API reference"
"""


def configured(folder: Path, rules: str = RULE) -> Config:
    """A gateway whose second bundle brings these rules."""
    bundle = folder / "ours"
    (bundle / "detectors").mkdir(parents=True, exist_ok=True)
    (bundle / "bundle.toml").write_text('name = "ours"\nversion = "1.0.0"\ndescription = "d"\n')
    (bundle / "detectors" / "acme.toml").write_text(rules)
    document = f'[state]\ndir = "{folder / "state"}"\n[policy]\nbundles = ["policies/default", "ours"]\n'
    (folder / "gateway.toml").write_text(document)
    return load(folder / "gateway.toml", {})


async def test_a_bundle_brings_a_rule_that_processes_know_too(tmp_path: Path) -> None:
    config = configured(tmp_path)
    detector = wiring.build_detector(config)
    item = ScanItem(f"use {KEY} now")
    pool = ScanPool(
        detector, wiring.DETECTOR_FACTORY, arguments=wiring.detector_arguments(config), inline_bytes=0
    )
    await pool.start()
    try:
        [there] = await pool.scan([item], deadline_us=1 << 62)
    finally:
        await pool.close()
    [here] = detector.scan([item])

    assert [f.type for f in here.findings] == ["acme_key"]
    assert there == here
    assert detector.revision != wiring.build_detector().revision
    assert "acme_key" in getattr(detector, "type_names", ())
    assert policy_of(config).layers.bundles[1].detectors == tuple(own_rules(config.policy.folders))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("acme_[a-z0-9]{4}", ".*acme"), "not allowed"),
        (("[a-z0-9]{32}", "[a-z0-9]+"), "bound"),
        (("acme_4f1c", "acne_4f1c"), "positive"),
        (("acme_example", KEY), "negative"),
        (("acme-key", "github-token"), "twice"),
        (("critical", "terrible"), "severity"),
        (("[[rule]]", "[[rules]]"), "unknown tables"),
    ],
)
def test_a_rule_that_is_not_valid_stops_the_start_and_the_check(
    tmp_path: Path, change: tuple[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = configured(tmp_path, RULE.replace(*change))
    with pytest.raises(ConfigError, match=said):
        wiring.build_detector(config)
    with pytest.raises(ConfigError, match=said):
        policy_of(config)
    with pytest.raises(SystemExit, match="2"):
        main(["policy", "check", "--config", str(tmp_path / "gateway.toml")])

    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("trigger", "said"),
    [
        ("acme\\G[a-z0-9]{4}", "cannot compile"),
        ("acme_[a-z0-9]{2000}", "cannot compile"),
        ("\u043a\u043b\u044e\u0447_[a-z0-9]{4}", "Latin-1"),
    ],
)
def test_a_trigger_that_no_engine_takes_is_a_problem(
    tmp_path: Path, trigger: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configured(tmp_path, RULE.replace("acme_[a-z0-9]{4}", trigger))
    with pytest.raises(SystemExit, match="2"):
        main(["policy", "check", "--config", str(tmp_path / "gateway.toml")])

    told = capsys.readouterr().err
    assert "rule acme-key" in told
    assert said in told


LONG = "acme_" + "x{1000}" * 17  # more than Hyperscan takes


@pytest.mark.parametrize(("trigger", "warned"), [(LONG, True), ("acme_x{4}", False)])
def test_a_rule_that_gives_up_the_fast_engine_is_a_warning(
    tmp_path: Path, trigger: str, warned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = RULE.replace("acme_[a-z0-9]{4}", trigger).replace("acme_[a-z0-9]{32}", LONG) + "samples = true\n"
    configured(tmp_path, rule.replace("acme_4f1c0a9d2b7e6f3855aa01c9de47b28e", "acme_" + "x" * 17_000))
    check = ["policy", "check", "--config", str(tmp_path / "gateway.toml")]
    for arguments in (check, [*check, "--json"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert not ended.value.code
    told = capsys.readouterr()
    warnings = json.loads(told.out.splitlines()[-1])["warnings"] if told.out else []

    assert ["acme-key" in one and "re2" in one and "`trigger`" in one for one in warnings] == [True] * warned
    assert ("warning: detectors: rule acme-key" in told.err) is warned


async def test_a_change_asks_for_a_restart(tmp_path: Path) -> None:
    config = configured(tmp_path)
    told: list[str] = []
    live = LivePolicy(
        config,
        transformers_of(config),
        config.policy.folders,
        lambda _: None,
        lambda r: told.extend(r.problems),
    )
    configured(tmp_path, RULE.replace("acme_key", "acme_token"))
    result = await live.reload()

    assert not result.ok
    assert told
    assert "start the gateway again" in told[0]


def test_a_file_of_rules_is_what_its_name_says(tmp_path: Path) -> None:
    path = write_rules(tmp_path / "cache", json.dumps([{"rule": []}]).encode())
    assert read_rules(path) == [{"rule": []}]
    assert path.stat().st_mode & 0o777 == 0o600
    assert write_rules(tmp_path / "cache", json.dumps([{"rule": []}]).encode()) == path
    path.write_bytes(b"[]")
    with pytest.raises(SetupError, match="not what it was"):
        read_rules(path)
    path.unlink()
    with pytest.raises(SetupError, match="cannot be read"):
        read_rules(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_where_rules_cannot_be_kept_the_start_says_so(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(SetupError, match="cannot be written"):
        write_rules(tmp_path / "cache", b"[]")
