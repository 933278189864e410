"""The control port: health, metrics, evidence and a small console, beside the proxy and never through it.

ControlState   what it is handed: a store, projects, and callables for health, metrics and the memory guard
create_app     the ASGI application
ControlServer  its server in the gateway's own event loop
control_token  the token that everything but health asks for
"""

from gateway.control.app import create_app
from gateway.control.server import ControlServer
from gateway.control.state import ControlState
from gateway.control.token import control_token

__all__ = ["ControlServer", "ControlState", "control_token", "create_app"]
