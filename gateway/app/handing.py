"""What people said under a signing key that hands over to the next one: carried over, or said to be over.

Decisions about held objects are signed anew, each that the old key really signed; from then on the new key alone
counts, so that whoever has the old one can add nothing. Rules that were lifted for a while are in force again: that is
the closed side, and the person who lifted them is there to do it once more.
"""

from __future__ import annotations

import asyncio

from gateway.app.breaking import FILE as GLASS
from gateway.app.review import PURPOSE
from gateway.config import Config
from gateway.evidence.sign import Signer, verifies
from gateway.store.held import HeldObjects


def carry_over(config: Config, old: Signer, new: Signer) -> dict[str, int | bool]:
    """`{"decisions": how many were signed anew, "lifts_ended": whether there were lifts of rules}`; may be done twice.

    EvidenceError or SetupError where the decisions cannot be read or written: then the old key must stay.
    """
    decisions, glass = asyncio.run(_decisions(config, old, new)), config.state.dir / GLASS
    lifted = glass.exists()
    glass.unlink(missing_ok=True)
    return {"decisions": decisions, "lifts_ended": lifted}


async def _decisions(config: Config, old: Signer, new: Signer) -> int:
    path = config.state.dir / "vault" / "held.db"
    if not path.exists():
        return 0

    def signed_anew(statement: bytes, signature: bytes) -> bytes | None:
        message = PURPOSE + statement
        return new.sign(message) if verifies(old.public_key, signature, message) else None

    held = HeldObjects(path)
    try:
        return await held.resign(signed_anew)
    finally:
        await held.close()
