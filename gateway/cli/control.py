"""The control port of the running gateway, as a command asks it."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

import click
import orjson

from gateway.config import Config
from gateway.control import control_token
from gateway.errors import ReviewError, SetupError, words_of

_TIMEOUT_S: Final = 30
AS = click.option(
    "--as",
    "token_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar="EGRESS_REVIEWER",
    help="A reviewer's token file; else the token of the control port.",
)


def with_reviewer[**P, R](command: Callable[P, R]) -> Callable[P, R]:
    """Give a command the option `--as`, as the parameter `token_file`."""
    return AS(command)


class ControlPort:
    """The control port of this configuration's gateway, with one token."""

    def __init__(self, config: Config, token_file: Path | None = None) -> None:
        self._config = config
        self._token = (
            _token_in(token_file) if token_file is not None else control_token(config.state.dir, create=False)
        )
        listen = config.listen.control
        host = f"[{listen.host}]" if ":" in listen.host else listen.host
        self._base = f"http://{host}:{listen.port}"

    def get(self, *path: str, **query: Any) -> Any:
        """A document; SetupError where no gateway answers, ReviewError where it refuses."""
        given = {name: value for name, value in query.items() if value is not None}
        return orjson.loads(self.read(*path, **given))

    def read(self, *path: str, **query: Any) -> bytes:
        """The bytes of an answer."""
        return self._ask(_place(path) + (f"?{urlencode(query)}" if query else ""), None)

    def post(self, *path: str, **body: Any) -> Any:
        """The answer to an act."""
        return orjson.loads(self._ask(_place(path), orjson.dumps(body)))

    def _ask(self, place: str, body: bytes | None) -> bytes:
        headers = {"authorization": f"Bearer {self._token}", "content-type": "application/json"}
        request = urllib.request.Request(self._base + place, body, headers)  # noqa: S310 - our own port, http
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=_TIMEOUT_S) as answer:
                data: bytes = answer.read()
                return data
        except urllib.error.HTTPError as error:
            raise _refused(error) from None
        except OSError as error:
            raise SetupError(
                "setup.control_port",
                f"no gateway answers at {self._base} ({words_of(error)})",
                hint="run: egress up",
            ) from None


def _token_in(path: Path) -> str:
    """A reviewer's token; UsageError where the file holds none."""
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--as: {path} holds no token ({words_of(error)})") from None
    if not token or not token.isprintable() or " " in token:
        raise click.UsageError(f"--as: {path} holds no token: one word in one line is needed")
    return token


def _place(path: tuple[str, ...]) -> str:
    return "/v1/" + "/".join(quote(part, safe="") for part in path)


def _refused(error: urllib.error.HTTPError) -> Exception:
    try:
        said = orjson.loads(error.read())["error"]
        return ReviewError(str(said["code"]), str(said["message"]))
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return SetupError("setup.control_port", f"something else answers at the control port ({error.code})")
