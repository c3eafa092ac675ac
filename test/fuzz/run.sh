#!/bin/sh
# run.sh BUILD SECONDS: libFuzzer on every target for so long, two at a time (FUZZ_JOBS). FUZZ_TARGETS
# names some: FUZZ_TARGETS='deck sweep'. What it finds is kept in BUILD/fuzz.
set -eu
fuzzer=$(cd "$1" && pwd)/test/fuzz/parser_fuzzer
mkdir -p "$1/fuzz"
cd "$1/fuzz"
all=$("$fuzzer")
targets=${FUZZ_TARGETS:-$all}
for target in $targets; do
  echo "$all" | grep -qx "$target" || {
    echo "no target '$target'; there are: $(echo "$all" | tr '\n' ' ')" >&2
    exit 2
  }
done
# One target in a folder and a log of its own; the file failed.TARGET says that it failed.
cat >one.sh <<'END_OF_SCRIPT'
target=$3
rm -f "failed.$target"
mkdir -p "$target"
(cd "$target" && GPTBENCH_FUZZ=$target "$1" -max_total_time="$2" -max_len=32768 -malloc_limit_mb=256 \
  -print_final_stats=1 corpus) >"$target.log" 2>&1 || : >"failed.$target"
echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$target.log") inputs"
END_OF_SCRIPT
echo "$targets" | tr ' ' '\n' | grep . | xargs -n 1 -P "${FUZZ_JOBS:-2}" sh one.sh "$fuzzer" "$2"
failed=
for target in $targets; do
  [ ! -e "failed.$target" ] || failed="$failed $target"
done
[ -z "$failed" ] || { echo "FAILED:$failed; inputs in $1/fuzz/TARGET" && exit 1; }
