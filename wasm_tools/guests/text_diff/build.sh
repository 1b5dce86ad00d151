#!/bin/sh
# Builds the tool into the file named on the command line. Needs componentize-py (Python package). The
# result holds a whole CPython (18 MB), so it is not kept in the repository.
set -eu
out=$(realpath -m "$1")
cd "$(dirname "$0")"
componentize-py --wit-path ../../wit --world sandboxed-tool componentize app --output "$out"
