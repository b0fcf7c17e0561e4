"""Look inside the token-embedding tables of real language models."""

__version__ = "0.1.0"
