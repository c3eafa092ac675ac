#!/bin/sh
# bench_kernels_test.sh PROGRAM: prints a table for each part in the precision asked for, explains its
# options, and refuses what it does not understand.
set -eu
program=$1
failures=0

fail() {
  echo "FAILED: $*"
  cat output
  failures=$((failures + 1))
}

"$program" --seconds 1e-6 --compute fp32 --rows 64 --markdown >output 2>&1 || fail "status $?"
for part in "matrix products" attention "kernels bound by memory"; do
  if ! grep -q "fp32: $part" output; then fail "no table \"fp32: $part\""; fi
done
if grep -q "bf16: " output; then fail "bf16 was not asked for"; fi

"$program" --help >output 2>&1 || fail "--help: status $?"
for option in --markdown --compute --seconds --best --only --rows; do
  if ! grep -q -e "$option" output; then fail "--help does not name $option"; fi
done
if grep -q "GFLOP" output; then fail "--help measures"; fi

status=0
"$program" --fast >output 2>&1 || status=$?
if [ "$status" != 2 ] || ! grep -q -e "--fast" output; then fail "an unknown option: status $status"; fi
exit $((failures > 0))
