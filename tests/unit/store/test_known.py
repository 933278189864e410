"""Known values: found however they are written, kept as keyed fingerprints, looked up in a million."""

import resource
import stat
import time
from pathlib import Path

import pytest

from gateway.context.findings import Category, ScanItem
from gateway.detect.engine import Engine, build
from gateway.detect.known import PROBE
from gateway.errors import SetupError
from gateway.store.known import KnownFile, values_key, write_known

KEY = bytes(range(32))
VALUES = [
    "KD-48213377",
    "4711 0815 2342",
    "Zebra&falcon!9",
    "Bergmann-Okonkwo",
    "a1",
    "short",
    "x" * 200 + "1",
    "ﬁnance-2042",
]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    path = tmp_path_factory.mktemp("known") / "values" / "known"
    counts = write_known(path, KEY, VALUES)
    assert (counts.values, counts.passed_over) == (5, 3)
    return build(rules=[], known=KnownFile(path, KEY), engine="hyperscan")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("customer KD-48213377.", "KD-48213377"),
        ("customer kd48213377, please", "kd48213377"),
        ("KD 4821-3377", "KD 4821-3377"),
        ("no=471108152342;", "471108152342"),
        ("4711-0815-2342", "4711-0815-2342"),
        ('{"note": "Zebra&falcon!9"}', "Zebra&falcon!9"),
        ("ask BERGMANN OKONKWO", "BERGMANN OKONKWO"),
        ("the ﬁnance-2042 file", "ﬁnance-2042"),
    ],
)
def test_a_value_is_found_however_it_is_written(engine: Engine, text: str, value: str) -> None:
    [result] = engine.scan([ScanItem(text)])
    [finding] = result.findings
    assert (finding.type, finding.category) == ("known_value", Category.CUSTOM)
    assert text[finding.start : finding.end].rstrip("!") == value.rstrip("!")


@pytest.mark.parametrize(
    "text", ["KD-48213378", "XKD-48213377", "KD-4821\n3377", "KD-4821 , , 3377", "a1 short", "4711 0815"]
)
def test_what_is_not_the_value_is_not_found(engine: Engine, text: str) -> None:
    [result] = engine.scan([ScanItem(text)])
    assert result.findings == ()


def test_a_value_is_found_in_what_was_encoded(engine: Engine) -> None:
    [result] = engine.scan([ScanItem("see %4b%44-48213377 there")])
    assert [f.value for f in result.findings] == ["KD-48213377"]


def test_the_start_up_test_looks_the_probe_up(engine: Engine) -> None:
    assert not [problem for problem in engine.self_test() if problem.startswith("known-value")]
    assert [row.example for row in engine.types() if row.type == "known_value"] == [PROBE]


def test_the_revision_names_the_list(engine: Engine, tmp_path: Path) -> None:
    write_known(tmp_path / "known", KEY, [*VALUES, "KD-11112222"])
    other = build(rules=[], known=KnownFile(tmp_path / "known", KEY), engine="hyperscan")
    assert other.revision != engine.revision
    assert other.rules_revision == engine.rules_revision


def test_the_file_holds_no_value_and_is_private(tmp_path: Path) -> None:
    write_known(tmp_path / "values" / "known", KEY, VALUES)
    path = tmp_path / "values" / "known"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert b"48213377" not in path.read_bytes()


@pytest.mark.parametrize("at", [0, 10, 30, -1])
def test_a_damaged_list_is_refused(tmp_path: Path, at: int) -> None:
    path = tmp_path / "known"
    write_known(path, KEY, VALUES)
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    with pytest.raises(SetupError, match="known values"):
        KnownFile(path, KEY)


def test_another_key_and_an_empty_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "known"
    write_known(path, KEY, VALUES)
    with pytest.raises(SetupError):
        KnownFile(path, bytes(32))
    path.write_bytes(b"")
    with pytest.raises(SetupError):
        KnownFile(path, KEY)


def test_the_key_is_made_once_and_must_be_private(tmp_path: Path) -> None:
    with pytest.raises(SetupError):
        values_key(tmp_path)
    key = values_key(tmp_path, create=True)
    assert len(key) == 32
    assert values_key(tmp_path, create=True) == key
    (tmp_path / "values.key").chmod(0o644)
    with pytest.raises(SetupError):
        values_key(tmp_path)


def test_a_million_values_take_few_megabytes_and_microseconds(tmp_path: Path) -> None:
    path = tmp_path / "known"
    began = time.thread_time()
    counts = write_known(path, KEY, (f"KD-{number * 7919:010d}" for number in range(1_000_000)))
    written = time.thread_time() - began
    assert counts.values == 1_000_000
    assert path.stat().st_size < 16_400_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    known = KnownFile(path, KEY)
    began = time.thread_time()
    found = sum(known.holds(f"kd{number:010d}") for number in range(0, 79_190_000, 7919))
    took = (time.thread_time() - began) / 10_000
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"written in {written:.1f} s, {took * 1e6:.1f} us a look-up, {grown:.1f} MB")
    assert found == 10_000
    assert took < 100e-6
    assert grown < 64
