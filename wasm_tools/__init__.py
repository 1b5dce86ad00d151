"""WASM components as tools."""
