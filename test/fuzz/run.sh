#!/bin/sh
# run.sh BUILD SECONDS: libFuzzer on every target for so long. What it finds is kept in BUILD/fuzz.
set -eu
fuzzer=$(cd "$1" && pwd)/test/fuzz/parser_fuzzer
mkdir -p "$1/fuzz"
cd "$1/fuzz"
failed=
for target in $("$fuzzer"); do
  mkdir -p "$target"
  (cd "$target" && GPTBENCH_FUZZ=$target "$fuzzer" -max_total_time="$2" -max_len=16384 \
    -malloc_limit_mb=256 -print_final_stats=1 corpus) >"$target.log" 2>&1 || failed="$failed $target"
  echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$target.log") inputs"
done
[ -z "$failed" ] || { echo "FAILED:$failed; inputs in $1/fuzz/TARGET" && exit 1; }
