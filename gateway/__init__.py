"""Model Egress Gateway: reads, rewrites and receipts what agents send to model providers."""

__version__ = "0.1.0"
