"""The command `egress`: one file a noun, and no logic that the rest of the gateway does not have.

Exit status: 0 done; 1 the answer is no; 2 usage, or a configuration or bundle that is not valid; 3 the environment is
not right (key, store, port). `exec` returns the status of its command, and 125 to 127 for failures of its own, as
env(1).
"""

from gateway.cli.main import cli, main

__all__ = ["cli", "main"]
