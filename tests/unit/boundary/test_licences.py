"""Licences are nobody's, though only one project was indexed with one; what stands below their heads is still its own.

The texts are as projects ship them (attrs, asgiref, grimp, requests, hypothesis, Debian), not as SPDX writes them.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gateway.boundary import FingerprintIndex
from gateway.boundary.licences import Licensed, licences, packed
from gateway.boundary.shingles import word_runs
from gateway.boundary.words import read, same_length

KEY = b"k" * 32
FOLDER = Path(__file__).resolve().parents[2] / "vectors/boundary/licences"
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.txt")}
NOTICE = re.compile(r"(?i)copyright \(c\) .*")

HEADS = {
    "apache": """Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.""",
    "gpl": """This program is free software: you can redistribute it and/or modify
it under the terms of the GNU General Public License as published by
the Free Software Foundation, either version 3 of the License, or
(at your option) any later version.

This program is distributed in the hope that it will be useful,
but WITHOUT ANY WARRANTY; without even the implied warranty of
MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the
GNU General Public License for more details.

You should have received a copy of the GNU General Public License
along with this program.  If not, see <https://www.gnu.org/licenses/>.""",
    "lgpl": """This library is free software; you can redistribute it and/or
modify it under the terms of the GNU Lesser General Public
License as published by the Free Software Foundation; either
version 2.1 of the License, or (at your option) any later version.

This library is distributed in the hope that it will be useful,
but WITHOUT ANY WARRANTY; without even the implied warranty of
MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the GNU
Lesser General Public License for more details.""",
    "mpl": """This Source Code Form is subject to the terms of the Mozilla Public
License, v. 2.0. If a copy of the MPL was not distributed with this
file, You can obtain one at https://mozilla.org/MPL/2.0/.""",
    "bsd": """Use of this source code is governed by a BSD-style
license that can be found in the LICENSE file.""",
    "mit": """This source code is licensed under the MIT license found in the
LICENSE file in the root directory of this source tree.""",
}
CODE = """
def settle(batch, fee_schedule):
    for position in batch.open_positions():
        position.charge(fee_schedule.rate_for(position.counterparty))
    return batch.close(reason="cut-over")
"""
CARRIERS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "hashes": lambda t: textwrap.indent(t, "# ", lambda _: True),
    "stars": lambda t: "/*\n" + textwrap.indent(t, " * ", lambda _: True) + "\n */",
    "numbered": lambda t: "\n".join(f"{n:6}\u2192{line}" for n, line in enumerate(t.split("\n"), 1)),
    "JSON": lambda t: json.dumps({"content": t}),
    "wrapped": lambda t: textwrap.fill(t, 60),
}


def indexed(text: str) -> FingerprintIndex:
    index = FingerprintIndex(KEY)
    index.add("a", text, source="aa")
    return index


@pytest.mark.parametrize("name", ["mit", "bsd-2-clause", "bsd-3-clause", "apache-2.0", "mpl-2.0", "gpl-3.0"])
def test_a_licence_with_another_notice_is_nobodys(name: str) -> None:
    index = indexed(TEXTS[name])
    mine = NOTICE.sub("Copyright (c) 2031 Somebody Else", TEXTS[name])
    lines = mine.split("\n")
    parts = ["\n".join(lines[at : at + 40]) for at in range(0, len(lines), 20)]
    assert index.look_up_all([carry(text) for text in (mine, *parts) for carry in CARRIERS.values()]) == [
        ()
    ] * (len(CARRIERS) * (1 + len(parts)))


@pytest.mark.parametrize("seen", [False, True])
@pytest.mark.parametrize("name", HEADS)
def test_the_head_of_a_file_is_nobodys_and_what_follows_is_its_own(name: str, seen: bool) -> None:
    for carry in [carry for as_, carry in CARRIERS.items() if as_ != "JSON"]:  # no file has its head in JSON
        index = FingerprintIndex(KEY)
        index.add("a", carry(HEADS[name]) + CODE, source="" if seen else "aa")
        for other in CARRIERS.values():
            assert index.look_up(other(HEADS[name]) + "\n\nprint('nothing of it')\n") == ()
        text = carry(HEADS[name]) + CODE
        (match,) = index.look_up(text)
        assert match.project == "a"
        assert "rate_for(position.counterparty)" in "".join(text[start:end] for start, end in match.spans)


def test_a_set_has_what_it_was_made_of_and_hardly_anything_else() -> None:
    chance = np.random.default_rng(1)
    hashes = chance.integers(0, 1 << 64, 200_000, np.uint64)
    known = Licensed.of(np.unique((hashes[:100_000] >> np.uint64(32)).astype(np.uint32)))
    assert known.has(hashes[:100_000]).all()
    assert known.has(hashes[100_000:]).mean() < 0.0005
    assert known.has(np.zeros(0, np.uint64)).tolist() == []


def test_what_is_packed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "licences.bin"
    file.write_bytes(packed([CODE]))
    monkeypatch.setattr("gateway.boundary.licences.FILE", file)
    licences.cache_clear()
    try:
        assert licences()[0].has(word_runs(read(same_length(CODE)))).all()
        assert indexed(CODE).look_up(CODE) == ()
    finally:
        licences.cache_clear()
