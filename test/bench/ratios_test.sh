#!/bin/sh
# ratios_test.sh DRIVER BUILD: prints a ratio for each way of using two ranks, and refuses what it does
# not understand. That the figures mean something needs a machine at rest: no test asserts them.
set -eu
driver=$1
build=$2
failures=0

fail() {
  echo "FAILED: $*"
  cat output
  failures=$((failures + 1))
}

sh "$driver" "$build" --quick --steps 1 >output 2>&1 || fail "status $?"
for name in dp tp pp; do
  grep -Eq "^$name=2 .*[0-9]% of it" output || fail "no ratio of $name"
done
sh "$driver" "$build" --quick --steps 1 --only tp >output 2>&1 || fail "--only: status $?"
if grep -q "^[dp]p=2" output; then fail "--only tp runs others, too"; fi

status=0
sh "$driver" "$build" --fast >output 2>&1 || status=$?
[ "$status" = 2 ] || fail "an unknown option: status $status"
exit $((failures > 0))
