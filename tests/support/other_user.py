"""What another user of the machine can reach of a gateway: run as root, it becomes `nobody` before it tries anything.

Arguments: the state folder, the ports of proxy and control, the gateway's process id, and files to try. Prints one JSON
object of what came of each attempt.
"""

from __future__ import annotations

import encodings.idna  # noqa: F401 - needed by sockets, and not to be had afterwards
import http.client
import json
import os
import signal
import socket
import sys
from pathlib import Path

NOBODY = 65534


def become_nobody() -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def outcome(attempt: object) -> str:
    try:
        done = attempt()  # type: ignore[operator]
    except OSError as error:
        return type(error).__name__
    return f"done: {done}"


def status(port: int, method: str, path: str, token: str = "") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    headers = {"content-type": "application/json", **({"authorization": f"Bearer {token}"} if token else {})}
    connection.request(method, path, b"{}" if method == "POST" else None, headers)
    return connection.getresponse().status


def connect(proxy: int, port: int) -> int:
    with socket.create_connection(("127.0.0.1", proxy), 10) as sock:
        sock.sendall(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        return int(sock.recv(64).split()[1])


def main() -> None:
    state, proxy, control, pid = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    files, held, mine = sys.argv[7:], sys.argv[5], sys.argv[6]
    become_nobody()
    said: dict[str, object] = {f"read {Path(name).name}": outcome(Path(name).read_bytes) for name in files}
    said["list"] = outcome(lambda: list(state.iterdir()))
    said["write kill"] = outcome(lambda: (state / "kill").write_bytes(b""))
    said["write vault"] = outcome(lambda: (state / "vault" / "held.db").open("r+b"))
    said["stop"] = outcome(lambda: os.kill(pid, signal.SIGTERM))
    said["without token"] = status(control, "POST", f"/v1/quarantine/{held}/release")
    said["with the agent's token"] = status(control, "POST", f"/v1/quarantine/{held}/release", mine)
    said["list held"] = status(control, "GET", "/v1/quarantine", mine)
    said["kill"] = status(control, "POST", "/v1/kill", mine)
    said["health"] = status(control, "GET", "/healthz")
    said["through the proxy"] = connect(proxy, control)
    print(json.dumps(said))


if __name__ == "__main__":
    main()
