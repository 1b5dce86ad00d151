"""The stores over SQL: SQLite for one process, PostgreSQL for many.

`Database` runs transactions, `tables.py` names the tables, `migrations/` makes them, and one file per
port implements it for both dialects with SQLAlchemy Core. `open_stores` hands them out together.
"""
