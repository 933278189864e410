"""The door for somebody else's mitmproxy: `mitmdump -s addons/egress.py`."""
