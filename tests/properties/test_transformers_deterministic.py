"""Minimisers and summarisers say the same of the same text: in every process, under every hash seed, as often as asked."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

TEXTS = [
    "",
    "one line",
    "\n".join(f"2027-01-{n % 28 + 1:02} INFO worker-{n} took {n * 7} ms for job {n:x}" for n in range(300)),
    json.dumps({"b": [{"x": n, "y": str(n), "z": None} for n in range(40)], "a": {"k": 1.5, "j": [True, False]}}),
    "name,age,city\n" + "\n".join(f"p{n},{n},c{n % 3}" for n in range(80)),
    "import os\n\nclass A(B, C):\n    x: int = 1\n\n    def f(self, a, *, b=2):\n        return {a, b}\n\n\nasync def g():\n    pass\n",
    "function f(a) { return a }\nclass K extends L { m() {} }\nexport const z = 1;\n" * 5,
    "same\nlines\nagain\nand\nagain\nfor\na\nwhile\nlonger\n" * 12,
    "\u00e9\u4e2d\U0001f600 " * 400,
]  # fmt: skip
EARLIER = ["same\nlines\nagain\nand\nagain\nfor\na\nwhile\nlonger\n" * 3, "else"]
PARAMETERS = {
    "match_lines": {"pattern": "worker|again", "before": "1", "after": "0"},
    "drop_fields": {"fields": "z,k"},
    "head_tail": {"head_lines": "3", "tail_lines": "2", "line_chars": "60"},
}


def everything() -> dict[str, str]:
    """A digest of what each active plug-in makes of all texts."""
    made: dict[str, str] = {}
    for point in entry_points(group="gateway.minimisers"):
        worker, parameters = point.load()(), PARAMETERS.get(point.name, {})
        worker.check(parameters)
        cuts = [[(e.start, e.end, e.replacement) for e in worker.cuts(t, EARLIER, parameters)] for t in TEXTS]
        made[f"minimiser {point.name}"] = hashlib.sha256(repr(cuts).encode()).hexdigest()
    for point in entry_points(group="gateway.summarisers"):
        worker = point.load()()
        said = [worker.summarise(text, {}) for text in TEXTS]
        made[f"summariser {point.name}"] = hashlib.sha256(repr(said).encode()).hexdigest()
    return made


@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_another_process_says_the_same(seed: str) -> None:
    script = "import json; from tests.properties.test_transformers_deterministic import everything; print(json.dumps(everything()))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(done.stdout) == everything() == everything()
    assert len(everything()) >= 11
