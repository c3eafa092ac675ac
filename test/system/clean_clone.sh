#!/bin/sh
# clean_clone.sh [FOLDER]: clones the committed tree into a temporary folder (below FOLDER) and times
# `make run` and `make test` there. Not a test of CTest's, since it runs all of them.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d "${1:-/tmp}/gptbench-clone.XXXXXX")
trap 'rm -rf "$work"' EXIT
git clone --quiet "$top" "$work/gptbench"
cd "$work/gptbench"
for target in run test; do
  begin=$(date +%s)
  make "$target"
  echo "clean clone: make $target took $(($(date +%s) - begin)) s"
done
test -z "$(git status --porcelain)" || {
  echo "clean clone: the tree is not clean after make run and make test:"
  git status --short
  exit 1
}
