"""The command group, and the one place where an error becomes an exit status."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Final

import click

import gateway
from gateway.cli.account import account
from gateway.cli.boundary import boundary
from gateway.cli.ca import ca
from gateway.cli.config import config
from gateway.cli.demo import demo
from gateway.cli.doctor import doctor
from gateway.cli.evaluate import inspect, scan
from gateway.cli.examples import add_examples
from gateway.cli.glass import break_glass
from gateway.cli.held import approvals, quarantine
from gateway.cli.launch import env, exec_
from gateway.cli.lineage import lineage
from gateway.cli.memory import memory
from gateway.cli.operate import budget, kill, reload
from gateway.cli.policy import policy
from gateway.cli.project import project
from gateway.cli.receipts import receipts
from gateway.cli.store import store
from gateway.cli.up import up
from gateway.cli.vault import vault
from gateway.errors import (
    ConfigError,
    ContractError,
    EvidenceError,
    GatewayError,
    PolicyError,
    ReviewError,
    SetupError,
    VerificationError,
)

NO: Final = 1
NOT_VALID: Final = 2
NOT_RIGHT: Final = 3
INTERRUPTED: Final = 130  # 128 and SIGINT, as shells have it

_STATUS: Final[tuple[tuple[type[GatewayError], int], ...]] = (
    (VerificationError, NO),
    (ConfigError, NOT_VALID),
    (PolicyError, NOT_VALID),
    (ContractError, NOT_VALID),
    (EvidenceError, NOT_RIGHT),
    (SetupError, NOT_RIGHT),
    (ReviewError, NO),
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(gateway.__version__, prog_name="egress")
def cli() -> None:
    """Model Egress Gateway: reads, rewrites and receipts what agents send to model providers."""


for _command in (
    up,
    demo,
    exec_,
    env,
    doctor,
    ca,
    inspect,
    scan,
    receipts,
    lineage,
    store,
    vault,
    account,
    policy,
    quarantine,
    approvals,
    kill,
    break_glass,
    budget,
    reload,
    project,
    config,
    boundary,
    memory,
):
    cli.add_command(_command)
add_examples(cli)


def status_of(error: GatewayError) -> int:
    """The exit status that an error ends the command with."""
    if error.code == "query.invalid":
        return NOT_VALID
    return next((status for kind, status in _STATUS if isinstance(error, kind)), NOT_RIGHT)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit; errors go to standard error, one problem a line."""
    try:
        status = cli.main(args=arguments, prog_name="egress", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read us has gone; nothing is left to say
        sys.exit(NO)
    except GatewayError as error:
        click.echo(f"egress: {error}", err=True)
        if error.hint:
            click.echo(f"egress: {error.hint}", err=True)
        sys.exit(status_of(error))
    except Exception as error:  # noqa: BLE001 - its text may hold content: type and places only
        _tell_fault(error)
        sys.exit(NOT_RIGHT)
    sys.exit(status if isinstance(status, int) else 0)


_NOT_LET: Final = frozenset(
    {
        *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO),
        *(
            errno.ENOENT,
            errno.EEXIST,
            errno.ENOTDIR,
            errno.EISDIR,
            errno.ELOOP,
            errno.ENAMETOOLONG,
            errno.EMFILE,
        ),
    }
)


def _tell_fault(error: Exception) -> None:
    """What nobody foresaw, or what the machine does not let this user do."""
    if isinstance(error, OSError) and error.errno in _NOT_LET:
        click.echo(f"egress: a file of the gateway cannot be used: {os.strerror(error.errno)}", err=True)
        click.echo(
            "egress: run as the user that owns [state] dir, or look at the disk that it lies on", err=True
        )
        return
    click.echo(f"egress: a fault of the gateway: {type(error).__name__}", err=True)
    for frame in traceback.extract_tb(error.__traceback__):
        click.echo(f"  {frame.filename}:{frame.lineno} in {frame.name}", err=True)
