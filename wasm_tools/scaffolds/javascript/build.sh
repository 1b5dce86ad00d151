#!/bin/sh
# Builds the tool: ./build.sh [output file]. Needs componentize-qjs, which npm ci installs into node_modules.
set -eu
cd "$(dirname "$0")"
mkdir -p build
PATH="$PWD/node_modules/.bin:$PATH" componentize-qjs --wit wit --world sandboxed-tool --js tool.js \
  --sync --opt-size --output "${1:-build/@NAME@.wasm}"
