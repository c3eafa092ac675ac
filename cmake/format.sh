#!/bin/sh
# format.sh [--check]: formats the C++ sources in place, or tells which are not formatted. Versions of
# clang-format differ in details: 14 is the one that counts.
set -eu
cd "$(dirname "$0")/.."

formatter=
for candidate in clang-format-14 clang-format; do
  if command -v "$candidate" >/dev/null 2>&1 && "$candidate" --version | grep -q 'version 14\.'; then
    formatter=$candidate
    break
  fi
done
if [ -z "$formatter" ]; then
  echo "format: clang-format 14 was not found (apt-get install clang-format-14)" >&2
  exit 77
fi

folders=
for folder in src test cuda; do
  if [ -d "$folder" ]; then folders="$folders $folder"; fi
done
action=-i
if [ "${1:-}" = --check ]; then action="--dry-run -Werror"; fi
# shellcheck disable=SC2086  # lists of words
find $folders '(' -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' ')' -type f -print0 |
  xargs -0 -r "$formatter" $action
