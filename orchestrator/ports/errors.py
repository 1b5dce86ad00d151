"""What a store may raise.

StoreError
├── StoreUnavailable    the database does not answer or is locked; retryable
└── AlreadyExists       the identifier is taken
"""

from __future__ import annotations


class StoreError(Exception):
    """A store did not do what was asked."""


class StoreUnavailable(StoreError):
    """The database does not answer in time."""


class AlreadyExists(StoreError):
    """The identifier is taken."""
