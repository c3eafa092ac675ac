#!/bin/sh
# lint_backends.sh TREE: each group of kernels in src/device/kernels.h is a source file of the same
# name in every back end, or two, NAME_forward and NAME_backward.
set -eu
cd "$1"
status=0
groups=$(sed -n 's/^#define GPTBENCH_\([A-Z0-9]*\)_KERNELS(X).*/\1/p' src/device/kernels.h | tr '[:upper:]' '[:lower:]')
[ "$(echo "$groups" | wc -l)" -ge 13 ] || { echo "src/device/kernels.h: too few groups of kernels found"; exit 1; }
for folder in src/device/ref src/device/host cuda/kernels; do
  for group in $groups; do
    found=$(find "$folder" '(' -name '*.cpp' -o -name '*.cu' ')' |
      grep -cE "/$group\.|/${group}_(forward|backward)\." || true)
    [ "$found" -gt 0 ] || { echo "$folder has no file for the kernels of group $group"; status=1; }
  done
done
exit "$status"
