#!/bin/bash
# Writing goes wrong, as on a disk that fails or is full or beyond its quota: status 7, a message
# that names the file and the reason, no half of a file, and files of earlier runs as they were.
# Writes that take a part of what they are given are continued.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
deck=$decks/tiny.in
checkpoints=(checkpoint.directory=ck checkpoint.every_steps=2)

# A journal may grow: a resumed run adds its steps.
contents() { find "$work" -type f ! -name steps.csv -exec cksum {} + | awk '{ print $1, $2 }' | sort; }

# begin ARGUMENTS...: a run without faults, whose files are the earlier ones.
begin() {
  run 0 "$deck" "$@"
  [ "$status" -eq 0 ] || fail "status $status instead of 0"
  contents >before
}
# continued FAULT RANKS ARGUMENTS...: a run with faults behind it (write_faults.cpp).
continued() {
  local fault=$1 ranks=$2 launch=()
  shift 2
  case="fault '$fault', $ranks ranks: $*"
  if [ "$ranks" -gt 0 ]; then read -r -a launch <<<"$GPTBENCH_LAUNCH $ranks"; fi
  status=0
  # In the ranks alone: under faults of the launcher's own writes, too, two runs did not end after their last line.
  (cd "$work" && exec "${limited[@]}" "${launch[@]}" env LD_PRELOAD="$WRITE_FAULTS" WRITE_FAULT="$fault" "$GPTBENCH" \
    "$deck" "$@") >out 2>err || status=$?
}
# failing PATTERN FAULT RANKS ARGUMENTS...
failing() {
  local pattern=$1
  shift
  continued "$@"
  [ "$status" -eq 7 ] || fail "status $status instead of 7"
  cat out err | grep -Eq -- "$pattern" || fail "does not say '$pattern'"
  [ -z "$(contents | comm -13 - before)" ] || fail "files of the run before have changed"
  [ -z "$(find "$work" -name '*.partial*')" ] || fail "left $(find "$work" -name '*.partial*')"
}

begin
for error in '5:Input/output error' '28:No space left on device' '122:Disk quota exceeded'; do
  failing "result.h5: cannot write: ${error#*:}; name a writable one" "${error%%:*} 1 result.h5" 0
  failing "result.h5: cannot write: ${error#*:}" "${error%%:*} 2 result.h5" 0
done
failing 'result.h5: cannot write: Input/output error' 'sync 5 2 result.h5' 0
failing 'steps.csv: cannot write: Input/output error' '5 1 steps.csv' 0
failing 'planned.h5: cannot write: Input/output error' '5 1 planned.h5' 2
failing 'trace.json: cannot write: No space left' '28 1 trace.json' 0 output.trace_step=3
failing 'dump.h5: cannot write: No space left' '28 2 dump.h5' 0 output.dump=weights
failing 'result.h5: cannot write: Input/output error' 'nothing 2 result.h5' 0
# The result is written, although the journal was not: neither its lines, nor what forces them to the disk
# (the second call, after that for the heading). The run says so when it happens, and at the end.
for fault in '28 2 steps.csv|steps without a line: [0-9]*, the first is step 1: No space left on device' \
  'sync 5 2 steps.csv|lines up to step [0-9]* may be lost: Input/output error'; do
  continued "${fault%%|*}" 0 run.steps=1000000 run.time_limit_s=2 output.log_every=1000000
  [ "$status" -eq 8 ] || fail "status $status instead of 8"
  [ "$(grep -c "^Warning: .*steps.csv: ${fault#*|}" out)" -eq 2 ] || fail "not two warnings about the journal"
done

# The checkpoints of a run are used by the next, whichever of its own writes fails.
# The thread of an asynchronous one writes its arrays, not its manifest and its name ("ck$": of the folder).
for fault in '5 1 step-00000006' '122 9 step-00000006' 'sync 5 1 step-00000006' 'nothing 3 step-00000006' \
  '5 1 step-00000006.manifest' 'sync 28 1 step-00000006.manifest' 'sync 5 1 work/ck$' 'sync 5 2 work/ck$'; do
  for mode in F T; do
    case $mode$fault in T*manifest | T*ck$) continue ;; esac
    begin "${checkpoints[@]}"
    failing 'step-00000006.(h5|manifest): cannot write: (Input/output error|No space left on device|Disk quota exceeded)' "$fault" 2 "${checkpoints[@]}" \
      run.resume=auto run.steps=8 checkpoint.async=$mode
    check_result "$work/output/tiny/result.h5" FAILED
    [ -z "$(find "$work/ck" -name 'step-00000006*')" ] || fail "left $(find "$work/ck" -name 'step-00000006*')"
    continued none 1 "${checkpoints[@]}" run.resume=auto run.steps=8
    [ "$status" -eq 0 ] || fail "status $status instead of 0"
    grep -q 'step-00000004' out || fail "does not continue from step 4"
  done
done

# A run whose numbers are not finite says so, although the checkpoint in flight cannot be written either.
begin
continued 'sync 28 1 step-00000001' 2 checkpoint.directory=ck checkpoint.every_steps=1 optimizer.lr=1e30
[ "$status" -eq 5 ] || fail "status $status instead of 5"
check_result "$work/output/tiny/result.h5" FAILED
grep -Eq 'reason loss .*in step 2; .*; .*step-00000001.h5: cannot write: No space left on device' values || fail "$(grep reason values)"

# A part of what was given, a disk that refuses to be written around the page cache, calls that a signal ends
# before they have done anything (in network and FUSE file systems): the same files as without.
all=("${checkpoints[@]}" checkpoint.keep=9 output.trace_step=3 output.dump=weights)
large=(model.hidden_size=64) # arrays of pages
saved_sums() { (cd "$work" && find . -name 'step-*.h5' -exec cksum {} + | sort); }
begin "${all[@]}" "${large[@]}"
saved_sums >whole
for fault in '0 short 1 /' '2 short 1 /' '0 direct 22 1 step-' '0 interrupted 1 step-' '0 interrupted 1 tiny/'; do
  ranks=${fault%% *}
  rm -rf "$work/ck" "$work/output"
  continued "${fault#* }" "$ranks" "${all[@]}" "${large[@]}"
  [ "$status" -eq 0 ] || fail "status $status instead of 0"
  check_result "$work/output/tiny/result.h5" OK
  [ "$ranks" -eq 2 ] || saved_sums | cmp -s - whole || fail "other checkpoints"
  tail -c 3 "$work/output/tiny/trace.json" | grep -q ']}' || fail "the trace is cut"
  # What was written can be read, and the journal continued.
  continued "${fault#* }" "$ranks" "${all[@]}" "${large[@]}" run.resume=auto run.steps=6
  [ "$status" -eq 0 ] || fail "status $status instead of 0"
  grep -q '^Resumed from .*step-00000004.h5' out || fail "does not continue"
done
begin
continued 'interrupted 1 .offload' 0 parallel.offload=optimizer parallel.offload_target=file
[ "$status" -eq 0 ] || fail "status $status instead of 0"

# Where the file system hangs, the watchdog still ends the rank that writes the last operations, under a launcher
# that ends nobody.
if [[ "$GPTBENCH_LAUNCH" == *oversubscribe* ]]; then
  GPTBENCH_LAUNCH=${GPTBENCH_LAUNCH/--oversubscribe/--oversubscribe --enable-recovery} GPTBENCH_FAILPOINT=all_reduce:40/hang \
    continued 'hang 1 last_operations' 2 run.watchdog_s=2 run.steps=2000000 output.log_every=1000000
  [ "$status" -ne 124 ] || fail "status $status"
  [ "$(grep -c 'the run ends (run.watchdog_s)' err)" -eq 2 ] || fail "not ended by the watchdog"
fi

# A file system without locks (37: No locks available): nothing needs one.
begin "${checkpoints[@]}"
for ranks in 0 2; do
  continued 'lock 37 1 /' "$ranks" "${checkpoints[@]}" run.resume=auto run.steps=$((6 + ranks))
  [ "$status" -eq 0 ] || fail "status $status instead of 0"
  check_result "$work/output/tiny/result.h5" OK
done
without_locks=(env "LD_PRELOAD=$WRITE_FAULTS" 'WRITE_FAULT=lock 37 1 /')
"${without_locks[@]}" "$GPTPOST" show "$work/output/tiny/result.h5" >out 2>err || fail "the result is not shown"
printf "&sweep\n  vary = 'run.seed = 1'\n/\n" | cat "$deck" - >"$decks/sweep.in"
rm -rf swept
"${limited[@]}" "${without_locks[@]}" "$GPTBENCH" --sweep "$decks/sweep.in" output.directory="$PWD/swept" >out 2>err || fail "the sweep ends with status $?"
if command -v flock >/dev/null && "${without_locks[@]}" flock -n "$deck" true 2>/dev/null; then fail "there are locks"; fi
finish
