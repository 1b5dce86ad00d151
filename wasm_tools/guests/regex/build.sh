#!/bin/sh
# Builds the tool into the file named on the command line. Needs componentize-qjs (npm). The result holds a whole
# JavaScript engine (1 MB), so it is not kept in the repository.
set -eu
out=$(realpath -m "$1")
cd "$(dirname "$0")"
componentize-qjs --wit ../../wit --world sandboxed-tool --js tool.js --sync --opt-size --output "$out"
