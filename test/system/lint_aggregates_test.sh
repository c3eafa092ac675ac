#!/bin/sh
# lint_aggregates.py must find more than five values without names, and accept lists and tables.
set -eu
lint=$GPTBENCH_SOURCE_DIR/test/system/lint_aggregates.py
failures=0

# try EXPECTED TEXT: a tree with one file.
try() {
  rm -rf tree
  mkdir -p tree/src tree/cuda
  printf '%b\n' "$2" >tree/src/a.cpp
  found=clean
  python3 "$lint" tree >output || found=refused
  if [ "$found" != "$1" ]; then
    echo "FAILED: $2: $found, expected $1"
    failures=$((failures + 1))
  fi
}

try refused 'Args args{y, x, nullptr, R, K, N};'
try refused 'call(queue, {y, x(1, 2), R, K, N, {1, 2}});'
try refused 'return {a.y, nullptr, a.x, a.R, a.C, true};'
try refused 'const std::vector<Row> rows = {{a, b, c, d, e, 1}, {a, b, c, d, e, 2}};'
try clean 'Args args{y, x, nullptr, R, {K, N}};'
try clean '// {a, b, c, d, e, f}\nconst char* text = "{a, b, c, d, e, f}";'
try clean 'const std::vector<int> sizes = {a, b, c, d, e, f};'
try clean 'for (const int size : {a, b, c, d, e, f}) use(size);'
try clean 'const int sizes[] = {a, b, c, d, e, f};\nenum class Kind { a, b, c, d, e, f };'
try clean '// Name, type, ...\nconst std::vector<Row> rows = {\n  {a, b, c, d, e, 1},\n  {a, b, c, d, e, 2}};'
try clean 'void f(int a, int b, int c, int d, int e, int f) { g(a, b, c, d, e, f); }'

if [ "$failures" -gt 0 ]; then exit 1; fi
echo "lint_aggregates.py: all cases as expected"
