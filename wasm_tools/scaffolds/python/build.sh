#!/bin/sh
# Builds the tool: ./build.sh [output file]. Needs componentize-py (Python package). What the tool uses beside
# Python's own library has to be pure Python: pip install --target deps NAME, and add -p . -p deps at the end.
set -eu
cd "$(dirname "$0")"
mkdir -p build
componentize-py --wit-path wit --world sandboxed-tool componentize app --output "${1:-build/@NAME@.wasm}"
