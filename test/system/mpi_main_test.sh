#!/bin/sh
# mpi_main_test.sh PROBE: a failure on any of three ranks is named and makes the program fail; rank 0
# alone prints the progress.
set -eu
probe=$1
failures=0

fail() {
  echo "FAILED: $*"
  cat output
  failures=$((failures + 1))
}

for rank in -1 0 1 2; do
  status=0
  # shellcheck disable=SC2086  # a command with its options
  PROBE_FAIL=$rank $GPTBENCH_LAUNCH 3 "$probe" >output 2>&1 || status=$?
  if [ "$(grep -c 'RUN.*Probe.FailsOnOneRank' output)" != 1 ]; then fail "progress is not printed once (failing rank $rank)"; fi
  if ! grep -q 'OK.*Probe.PassesEverywhere' output; then fail "the second test did not pass (failing rank $rank)"; fi
  if [ "$rank" = -1 ]; then
    if [ "$status" != 0 ]; then fail "status $status without a failure"; fi
    continue
  fi
  if [ "$status" = 0 ]; then fail "rank $rank failed, the program did not"; fi
  if ! grep -q '1 FAILED TEST' output; then fail "not one failed test (failing rank $rank)"; fi
  if [ "$rank" != 0 ]; then
    if ! grep -q "^rank $rank: Probe.FailsOnOneRank: .*mpi_main_probe.cpp:" output; then fail "rank $rank is not named"; fi
    if ! grep -q "failed on ranks $rank" output; then fail "rank 0 does not tell which rank failed"; fi
  fi
done
exit $((failures > 0))
