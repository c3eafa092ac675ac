#!/bin/sh
# checkpoint_rate_test.sh DRIVER BUILD: prints a rate of gptbench and one of fio for each number of ranks,
# and refuses what it does not understand. That the figures mean something needs a machine at rest.
set -eu
driver=$1
build=$2
failures=0

fail() {
  echo "FAILED: $*"
  cat output
  failures=$((failures + 1))
}

status=0
PATH=/nonexistent /bin/sh "$driver" "$build" --quick >output 2>&1 || status=$?
[ "$status" = 77 ] || fail "without fio: status $status"
grep -q '^skipped: fio was not found' output || fail "no reason"
status=0
sh "$driver" "$build" --fast >output 2>&1 || status=$?
[ "$status" = 2 ] || fail "an unknown option: status $status"

status=0
sh "$driver" "$build" --quick --directory "$PWD" >output 2>&1 || status=$?
if [ "$status" = 77 ] && [ "$failures" -eq 0 ]; then
  cat output
  exit 77
fi
[ "$status" = 0 ] || fail "status $status"
for ranks in 1 2; do
  # 1.6 million numbers, thrice in four bytes.
  grep -Eq "^ +$ranks +[12][0-9] +[0-9.]+ \([0-9.]+ to [0-9.]+\) +[0-9.]+ \([0-9.]+ to [0-9.]+\) +[0-9.]+ \(" output || fail "no rates of $ranks ranks"
  awk -v ranks="$ranks" '$1 == ranks { if (!($3 > 0 && $7 > 0)) exit 1 }' output || fail "a rate of 0"
done
[ -z "$(find . -name 'checkpoint_rate.*')" ] || fail "left $(find . -name 'checkpoint_rate.*')"
exit $((failures > 0))
