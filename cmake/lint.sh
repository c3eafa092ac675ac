#!/bin/sh
# lint.sh BUILD: formatting, include rules, values without names, shell scripts and clang-tidy (.clang-tidy) over src/.
set -eu
cd "$(dirname "$0")/.."
build=$1

sh cmake/format.sh --check
sh test/system/lint_includes.sh .
python3 test/system/lint_aggregates.py .
sh test/system/lint_shell.sh .

tidy=
for candidate in clang-tidy-14 clang-tidy; do
  if command -v "$candidate" >/dev/null 2>&1; then
    tidy=$candidate
    break
  fi
done
if [ -z "$tidy" ]; then
  echo "lint: clang-tidy was not found (apt-get install clang-tidy)" >&2
  exit 1
fi
find src -name '*.cpp' -type f -print0 |
  xargs -0 -r -n 1 -P "$(nproc)" "$tidy" -p "$build" --quiet --warnings-as-errors='*'
echo "lint: clean"
