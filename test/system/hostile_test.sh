#!/bin/bash
# hostile_test.sh WRITER: result files on which HDF5 crashes, where a run reads one: in run.algorithms, and as
# planned.h5 of a run before it in the same directory. WRITER is write_made_record.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
deck=$decks/tiny.in
crashing=$PWD/crashing.h5
if ! "$1" --crashing "$crashing"; then
  echo "skipped: this HDF5 crashes on none of the damaged files"
  exit 77
fi

refused 7 "run.algorithms = '$crashing' cannot be read .*HDF5 crashed.*; name a result file" 2 "$deck" \
  run.algorithms="$crashing"

# The journal of an earlier run that cannot be read stays, under another name.
out=$PWD/out_of_runs
rm -rf "$out"
mkdir "$out"
cp "$crashing" "$out/planned.h5"
run 2 "$deck" output.directory="$out"
[ "$status" -eq 0 ] || fail "status $status"
cmp -s "$crashing" "$out/planned.1.h5" || fail "planned.h5 is lost: $(ls "$out")"
check_result "$out/result.h5" OK
! grep -qi 'fork' err || fail "MPI complains of a child process"
finish
