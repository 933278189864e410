"""Make `gateway/boundary/licences.bin`: texts that are nobody's, as hashes.

    npm pack spdx-license-list && tar xzf spdx-license-list-*.tgz
    python tools/licences.py package/spdx-full.json

The file that is shipped was made of spdx-license-list 6.12.0 (the list of SPDX, CC0-1.0).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gateway.boundary.licences import FILE, packed

# Beside those that OSI approved.
_OTHERS = (
    "Apache-1.0 BSD-3-Clause-Clear BSD-4-Clause BSD-4-Clause-UC BSD-Source-Code BUSL-1.1 CC-BY-3.0 CC-BY-4.0"
    " CC-BY-SA-3.0 CC-BY-SA-4.0 CC0-1.0 Elastic-2.0 FTL GFDL-1.3 HPND-sell-variant ICU JSON MIT-CMU ODbL-1.0 OpenSSL"
    " PHP-3.01 Ruby SSPL-1.0 TCL Unicode-DFS-2016 WTFPL X11 ZPL-2.1 bzip2-1.0.6 curl libpng-2.0"
)
OTHERS = frozenset(_OTHERS.split())
# Heads of files that the texts of licences do not bring along.
HEADS = (
    "Use of this source code is governed by a BSD-style license that can be found in the LICENSE file.",
    "Use of this source code is governed by an MIT-style license that can be found in the LICENSE file or at"
    " https://opensource.org/licenses/MIT.",
    "All rights reserved. Licensed under the MIT License. See License.txt in the project root for license information.",
    "This source code is licensed under the MIT license found in the LICENSE file in the root directory of this source"
    " tree.",
    "This source code is licensed under the BSD-style license found in the LICENSE file in the root directory of this"
    " source tree. An additional grant of patent rights can be found in the PATENTS file in the same directory.",
    "This source code is licensed under both the Apache 2.0 license (found in the LICENSE file in the root directory)"
    " and the GPLv2 (found in the COPYING file in the root directory).",
    "This code is distributed under the terms and conditions of the MIT license. This module is released under the MIT"
    " License: http://www.opensource.org/licenses/mit-license.php",
    "Licensed to the Apache Software Foundation (ASF) under one or more contributor license agreements. See the NOTICE"
    " file distributed with this work for additional information regarding copyright ownership. The ASF licenses this"
    ' file to you under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance'
    " with the License.",
    "This file is dual licensed under the terms of the Apache License, Version 2.0, and the BSD License. See the"
    " LICENSE file in the root of this repository for complete details.",
    "is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as"
    " published by the Free Software Foundation, either version 3 of the License, or (at your option) any later"
    " version.",
    "is free software; you can redistribute it and/or modify it under the terms of the GNU Lesser General Public"
    " License as published by the Free Software Foundation; either version 2.1 of the License, or (at your option) any"
    " later version.",
    "SPDX-License-Identifier: GPL-2.0-or-later WITH Classpath-exception-2.0 SPDX-License-Identifier: Apache-2.0 OR MIT",
)


def main(path: Path) -> None:
    """Pack the licences of the list at `path`."""
    known = json.loads(path.read_text(encoding="utf-8"))
    if missing := OTHERS - known.keys():
        raise SystemExit(f"not in the list: {', '.join(sorted(missing))}")
    texts = [x["licenseText"] for name, x in sorted(known.items()) if x["osiApproved"] or name in OTHERS]
    FILE.write_bytes(packed([*texts, *HEADS]))
    sys.stdout.write(f"{len(texts)} licences, {FILE.stat().st_size} bytes\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
