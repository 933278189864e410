"""Memory servers that are run for real, between an agent loop and a gateway. `make test-memory-servers`."""
