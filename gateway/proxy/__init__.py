"""The edge."""

from gateway.proxy.lean import prepare

prepare()
