"""Processes of one gateway talk here: messages in frames over local sockets, calls with answers, one link that heals.

message   a word, arguments as JSON, and blobs beside them; never pickle, as one end has handled hostile text
frame     a message with its lengths before it, bounded
line      one connection: calls, answers and notices in both directions, with bounds on what may wait
link      a line to a Unix socket that is made anew whenever it breaks; while it is down every call fails at once
"""

from gateway.ipc.frames import FrameError, Message, NoJsonError
from gateway.ipc.line import Handler, Line, LostError, RefusedError
from gateway.ipc.link import Link
from gateway.ipc.unix import listen, peer_uid

__all__ = [
    "FrameError",
    "Handler",
    "Line",
    "Link",
    "LostError",
    "Message",
    "NoJsonError",
    "RefusedError",
    "listen",
    "peer_uid",
]
