#!/bin/sh
# calibrate_accuracy_test.sh DRIVER BUILD: prints 20 rows and their errors, of tiny models; what the
# errors are means nothing.
set -eu
driver=$1
build=$2
sh "$driver" "$build" --quick --seconds 1 >output 2>&1 || { cat output; exit 1; }
rows=$(grep -Ec ' [12] +[0-9.e+-]+ +0.0% +[0-9.e+-]+ +[+-][0-9.]+% +[0-9.]+% +[0-9.]+%$' output || true)
if [ "$rows" != 20 ] ||
  ! grep -Eq '^20 decks: mean error [0-9.]+ %, largest [0-9.]+ %; explained: at least [0-9.]+ %; covered: at least [0-9.]+ %; passes differ by 0.0 %$' output; then
  echo "FAILED: $rows rows"
  cat output
  exit 1
fi
# Decks of one's own: blank lines are none, and the last line has no end.
printf 'model.preset=gpt2-124m\n\nmodel.preset=mpt-125m' >own
sh "$driver" "$build" --quick --seconds 1 --decks own >output 2>&1 || { cat output; exit 1; }
grep -q '^4 decks: ' output || { echo "FAILED: two decks on 1 and 2 ranks"; cat output; exit 1; }
status=0
sh "$driver" "$build" --fast >output 2>&1 || status=$?
[ "$status" = 2 ] || { echo "FAILED: an unknown option: status $status"; exit 1; }
