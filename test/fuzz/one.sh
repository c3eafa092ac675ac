#!/bin/sh
# one.sh FUZZER TARGET SECONDS CORPUS [FOLDER]: libFuzzer on one target for so long, beginning with the
# inputs in the folder CORPUS, where there is one, and those of an earlier call in FOLDER/corpus, where new
# ones are kept. An input that fails is left in the working directory. The targets read files: a folder in
# memory holds them, where there is one, since a disk would take most of the time.
set -eu
fuzzer=$1 target=$2 seconds=$3 corpus=$4
scratch=$(mktemp -d /dev/shm/gptbench_fuzz.XXXXXX 2>/dev/null || mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
failed=$PWD/
kept=${5:+$PWD/$5/corpus}
kept=${kept:-$scratch/corpus}
mkdir -p "$kept"
[ -d "$corpus" ] || corpus=
case $target in
  result) length=-max_len=32768 ;;
  record) length='-max_len=512 -len_control=0' ;; # too slow for libFuzzer to begin with short ones
  *) length=-max_len=8192 ;;                      # no seed is longer (mutation_test.cpp)
esac
cd "$scratch"
# Where libFuzzer finds something it ends with 77 unless told otherwise, which is CTest's sign of a
# skipped test. An input may take long where other work has the processors.
# shellcheck disable=SC2086  # words
GPTBENCH_FUZZ=$target "$fuzzer" -max_total_time="$seconds" -seed="${FUZZ_SEED:-1}" $length \
  -malloc_limit_mb=256 -timeout=300 -error_exitcode=1 -artifact_prefix="$failed" -dict="$scratch/words" \
  -print_final_stats=1 -verbosity="${FUZZ_VERBOSITY:-0}" "$kept" ${corpus:+"$corpus"} 2>"$scratch/log" || {
  status=$?
  cat "$scratch/log" >&2
  exit $status
}
[ "${FUZZ_VERBOSITY:-0}" = 0 ] || cat "$scratch/log" >&2
echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$scratch/log") inputs in $seconds s, of them new" \
  "$(sed -n 's/^stat::new_units_added: *//p' "$scratch/log")"
