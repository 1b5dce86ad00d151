"""What a store may raise.

StoreError              also by itself: the database is damaged, or there is none; no usable master key
├── StoreUnavailable    the database does not answer or is locked; retryable
│   └── StoreFull       there is no room on its disk
├── AlreadyExists       the identifier is taken
├── OwnerMissing        what the new row belongs to, such as its job, is not there
├── SecretUnreadable    a sealed value can't be opened with this master key (`orchestrator.ports.secrets`)
└── SchemaTooNew        a newer Portside migrated the database
"""

from __future__ import annotations


class StoreError(Exception):
    """A store did not do what was asked."""


class StoreUnavailable(StoreError):
    """The database does not answer in time."""


class StoreFull(StoreUnavailable):
    """There is no room on the store's disk; what was stored before is there."""


class AlreadyExists(StoreError):
    """The identifier is taken."""


class OwnerMissing(StoreError):
    """What the row belongs to is not there."""


class SchemaTooNew(StoreError):
    """A newer Portside migrated the database."""
