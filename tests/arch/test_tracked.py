"""What stands in the repository: layers for every room, no machine's paths, no registry's address."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MAX_LINES = 400

# Put together here, so that this file is not one that holds them.
MACHINE_PATHS = [
    re.escape("/" + "/".join(parts)) for parts in (("root", ""), ("work", "main"), ("work", "shared"))
]
HOME_PATHS = ["/" + r"home/(?!me\b|user\b|agent\b|alice\b)\w+/", "/" + "Users/(?!me" + r"\b)\w+/"]


def tracked() -> list[Path]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False, timeout=30)
    if done.returncode:  # an archive without its history
        skip = {".venv", ".git", "__pycache__", ".demo"}
        return [path for path in ROOT.rglob("*") if path.is_file() and not skip & set(path.parts)]
    return [ROOT / name for name in done.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def test_no_file_names_a_machines_paths() -> None:
    everywhere, home = re.compile("|".join(MACHINE_PATHS)), re.compile("|".join(HOME_PATHS))
    found = []
    for path in tracked():
        name, text = str(path.relative_to(ROOT)), _text(path)
        # Tests may have people in their texts, whose paths are what is tested.
        if everywhere.search(text) or (not name.startswith("tests/") and home.search(text)):
            found.append(name)

    assert found == []


def test_the_lock_file_has_hashes_and_no_address() -> None:
    text = _text(ROOT / "requirements.lock")
    packages = re.findall(r"^([a-z0-9._-]+)==", text, flags=re.MULTILINE)

    assert "://" not in text
    assert not re.search(r"--(index|extra-index|find-links|trusted)", text)
    assert len(packages) > 20
    for block in re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]:
        assert "--hash=sha256:" in block, block.splitlines()[0]


@pytest.mark.parametrize(
    "name", ["Makefile", ".ci/run", "tools/setup.sh", "tools/find-python.sh", "Dockerfile", "pyproject.toml"]
)
def test_set_up_names_no_registry(name: str) -> None:
    assert not re.search(r"--(extra-)?index-url|--trusted-host|https?://", _text(ROOT / name))


def test_every_room_is_in_a_layer() -> None:
    (contract,) = [c for c in PROJECT["tool"]["importlinter"]["contracts"] if c["type"] == "layers"]
    layers = {name.strip() for layer in contract["layers"] for name in layer.split("|")}
    package = ROOT / "gateway"
    rooms = {path.stem for path in package.glob("*.py")} | {
        path.parent.name for path in package.glob("*/__init__.py")
    }

    assert contract["exhaustive"] is True
    assert layers == rooms - {"__init__"}


def test_modules_are_of_a_size_that_can_be_read() -> None:
    long = []
    for path in tracked():
        name = path.relative_to(ROOT)
        if path.suffix == ".py" and name.parts[0] in {"gateway", "addons"}:
            count = len(_text(path).splitlines())
            long += [f"{name}: {count}"] * (count > MAX_LINES)

    assert long == []


def test_nothing_of_the_working_tree_is_tracked() -> None:
    names = {str(path.relative_to(ROOT)) for path in tracked()}

    assert not any(name.startswith((".venv/", ".demo/")) or "__pycache__" in name for name in names)
    assert not any(name.endswith((".key", ".db", ".sqlite")) for name in names)
