"""What integration tests share: a fake provider, its PKI, byte-exact clients, a scriptable use case."""
