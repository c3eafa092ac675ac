#!/bin/bash
# Checkpoints as a user meets them: a run that is killed, stopped or runs into a full disk continues
# from its newest checkpoint, and its steps are those of a run that was never interrupted.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
deck=$decks/tiny.in
saved=$PWD/saved  # checkpoints and results; run() empties $work
begin() { rm -rf "$saved"; }
keys=(run.resume=auto checkpoint.directory="$saved/ck" output.directory="$saved/out" batch.global_batch_size=8)
often=("${keys[@]}" checkpoint.every_steps=2)
ten=("${often[@]}" run.steps=10)

# losses: step, loss, norm, scale and skip flag of each step, of the run that came last.
losses() { awk -F, 'NR > 1 { line[$1] = $1 " " $2 " " $3 " " $6 " " $7; last = $1 } END { for (i = 1; i <= last; ++i) print line[i] }' "$saved/out/steps.csv"; }

# expect_losses FILE: bit for bit.
expect_losses() {
  losses >continued
  cmp -s "$1" continued || fail "other steps than without interruption: $(diff "$1" continued | head -4)"
}

# A run that is killed in any phase of its second checkpoint, and goes on.
unbroken() { # unbroken RANKS ARGUMENTS...
  local ranks=$1
  shift
  begin
  run "$ranks" "$deck" "${ten[@]}" "$@"
  [ "$status" -eq 0 ] || fail "status $status"
  losses >unbroken
  [ "$(wc -l <unbroken)" -eq 10 ] || fail "no ten steps"
}
killed() { # killed PHASE STEP RANKS ARGUMENTS...: the run after it continues after STEP
  local phase=$1 step=$2 ranks=$3
  shift 3
  begin
  GPTBENCH_FAILPOINT=checkpoint_$phase run "$ranks" "$deck" "${ten[@]}" "$@"
  [ "$status" -ne 0 ] || fail "was not killed at $phase"
  run "$ranks" "$deck" "${ten[@]}" "$@"
  case="killed at $phase: $case"
  [ "$status" -eq 0 ] || fail "status $status after a kill"
  if [ "$step" -gt 0 ]; then
    grep -q "^Resumed from .*/step-0000000$step.h5 after step $step," out || fail "does not continue after step $step"
  fi
  expect_losses unbroken
  [ "$(find "$saved/ck" -type f | wc -l)" -eq 4 ] || fail "left $(ls "$saved/ck")"
  check_result "$saved/out/result.h5" OK
  grep -qx "steps $((10 - step))" values || fail "$(grep '^steps' values)"
  # Steps wait for checkpoints, and no longer than this test may take.
  awk '/^checkpoint_wait_s / { waits = $2 > 0 && $2 < 900 } END { exit !waits }' values || fail "$(grep wait values)"
}
shards=(parallel.zero_stage=1 model.dropout=0.1)
unbroken 2 "${shards[@]}"
for phase in created:2 half:2 written:2 published:2; do killed "$phase" 2 2 "${shards[@]}"; done
for phase in complete:2 pruned:2; do killed "$phase" 4 2 "${shards[@]}"; done
killed created 0 2 "${shards[@]}" # nothing was saved: from the beginning
grep -q 'Checkpoint passed over: .*/step-00000002.h5.partial-.* is incomplete' out || fail "the leftover is not named"
scale=(precision.compute=fp16 precision.initial_loss_scale=1e7 precision.loss_scale_window=3)
unbroken 1 "${scale[@]}"
killed complete:2 4 1 "${scale[@]}"

# A rank at random is killed at a random moment, from the launch to the end of a run. After each kill the
# journal has every step that was printed, with the values of the unbroken run, and `gptpost recover` makes
# a result of it; the run that comes to the end has all of them. GPTBENCH_KILLS: how many.
long=("${keys[@]}" checkpoint.every_steps=100 run.steps=1000 "${shards[@]}")
begin
begun=$(date +%s%N)
run 2 "$deck" "${long[@]}"
lasts_ms=$((($(date +%s%N) - begun) / 1000000))
losses >unbroken
[ "$(wc -l <unbroken)" -eq 1000 ] || fail "no 1000 steps"
begin
ended=0 early=0 missed=0
# A run that was killed after its last checkpoint has nothing left to do.
at_the_end() { [ "$status" -eq 0 ] || grep -q 'nothing is left to train' err; }
# The last step that a run has printed; 0: none.
printed_step() { awk '/^ *[0-9]+\/1000 / { split($1, n, "/"); last = n[1] } END { print last + 0 }' out; }
# expect_journal STEP: the journal of a run that was killed has all steps up to STEP, and no wrong one.
expect_journal() {
  if [ ! -e "$saved/out/steps.csv" ]; then
    [ "$1" -eq 0 ] || fail "$1 steps were printed, and there is no journal"
    return
  fi
  losses >continued
  local kept
  kept=$(grep -c . continued)
  [ "$kept" -ge "$1" ] || fail "$1 steps were printed, the journal has $kept"
  head -n "$kept" unbroken | cmp -s - continued || fail "the journal has other steps: $(head -n "$kept" unbroken | diff - continued | head -4)"
}
# expect_recovery STEP: of a copy of the folder, since the next run continues the journal. A run that is
# killed behind its last step may have its result.
expect_recovery() {
  if [ ! -e "$saved/out/planned.h5" ] && [ -e "$saved/out/result.h5" ]; then return; fi
  rm -rf recovering
  cp -r "$saved/out" recovering
  "$GPTPOST" recover --status TIMEOUT recovering >recovered 2>&1 || fail "recover: $(cat recovered)"
  check_result recovering/result.h5 TIMEOUT
  local found
  found=$(sed -n 's/^reason .* after step \([0-9]*\);.*/\1/p' values)
  [ "${found:-0}" -ge "$1" ] || fail "$1 steps were printed, recovered are $found"
}

for kill in $(seq "${GPTBENCH_KILLS:-6}"); do
  case="kill $kill"
  rm -f "$work/pids" out
  : >out
  # shellcheck disable=SC2016  # expanded by the inner shell
  (cd "$work" && read -r -a launch <<<"$GPTBENCH_LAUNCH 2" &&
    exec "${limited[@]}" "${launch[@]}" sh -c 'echo $$ >>pids; exec "$0" "$@"' "$GPTBENCH" "$deck" "${long[@]}") >out 2>err &
  job=$!
  until [ "$(wc -l 2>/dev/null <"$work/pids" || echo 0)" -eq 2 ] || ! kill -0 "$job" 2>/dev/null; do sleep 0.02; done
  at_ms=$(shuf -i "0-$lasts_ms" -n 1)
  sleep "$((at_ms / 1000)).$(printf %03d $((at_ms % 1000)))"
  kill -KILL "$(shuf -n 1 "$work/pids")" 2>/dev/null || missed=$((missed + 1))
  await_end "$job"
  reached=$(printed_step)
  [ "$reached" -gt 0 ] || early=$((early + 1))
  if at_the_end; then
    expect_losses unbroken
    ended=$((ended + 1))
    begin
  else
    expect_journal "$reached"
    [ "$reached" -eq 0 ] || expect_recovery "$reached"
  fi
done
run 2 "$deck" "${long[@]}"
at_the_end || fail "status $status after $kill kills"
expect_losses unbroken
echo "$kill kills, $early of them before a step was printed, $missed after the end; $((ended + 1)) runs came to their end"

# The next run goes on with another layout; losses agree to rounding.
unbroken 1
for layout in "2 parallel.tensor_parallel=2" "4 parallel.zero_stage=3"; do
  begin
  GPTBENCH_FAILPOINT=checkpoint_complete:2 run 1 "$deck" "${ten[@]}"
  # shellcheck disable=SC2086
  run ${layout%% *} "$deck" "${ten[@]}" ${layout#* }
  [ "$status" -eq 0 ] || fail "status $status"
  losses | paste -d' ' - unbroken | awk '{ d = $2 / $7 - 1; e = $3 / $8 - 1; if (d * d > 1e-10 || e * e > 1e-8) bad = 1 } END { exit bad || NR != 10 }' ||
    fail "other steps: $(losses | paste -d' ' - unbroken)"
done

# The same deck once more: nothing is left; with more steps it goes on, and the journal with it.
run 4 "$deck" "${ten[@]}" parallel.zero_stage=3
[ "$status" -eq 0 ] || fail "status $status instead of 0, the run is complete"
grep -q 'run.steps = 10: nothing is left to train' err || fail "no message"
mv "$saved/out/result.h5" "$saved/out/aside.h5"
run 4 "$deck" "${ten[@]}" parallel.zero_stage=3
[ "$status" -eq 2 ] || fail "status $status instead of 2, there is no result"
mv "$saved/out/aside.h5" "$saved/out/result.h5"
run 1 "$deck" "${often[@]}" run.steps=14
[ "$status" -eq 0 ] || fail "status $status"
[ "$(losses | wc -l)" -eq 14 ] || fail "the journal is not continued"
[ -e "$saved/out/result.1.h5" ] || fail "the earlier result is gone"

# A run that does not continue takes no checkpoint of another one away; the same run writes its own anew.
anew=(run.resume=no checkpoint.directory="$saved/ck" output.directory="$saved/other" batch.global_batch_size=8)
files() { find "$saved/ck" -type f -exec cksum {} + | sort; }
files >before
for shorter in "run.steps=10 checkpoint.every_steps=2" "run.duration_s=1"; do
  # shellcheck disable=SC2086
  refused 2 "ck/step-00000014.h5 is a checkpoint of another run; set run.resume = 'auto' .*, or another checkpoint.directory" 2 "$deck" "${anew[@]}" $shorter
done
cp -r "$saved/ck" "$saved/source"
other=(run.resume="$saved/source" "${anew[@]:1}" run.steps=20 checkpoint.every_steps=3)
refused 2 "ck/step-00000014.h5 is a checkpoint of another run; set" 2 "$deck" "${other[@]}"
files | cmp -s - before || fail "the checkpoints have changed"
run 1 "$deck" "${anew[@]}" run.steps=14 checkpoint.every_steps=2
[ "$status" -eq 0 ] || fail "status $status"
[ "$(find "$saved/ck" -type f | wc -l)" -eq 4 ] || fail "left $(ls "$saved/ck")"
[ -z "$(files | comm -12 - before)" ] || fail "not written anew: $(files | comm -12 - before)"
files >before
run 1 "$deck" run.resume="$saved/ck/step-00000012.h5" "${anew[@]:1}" run.steps=14 checkpoint.every_steps=1
[ "$status" -eq 0 ] || fail "status $status, back to an earlier checkpoint of its own"
[ -e "$saved/ck/step-00000013.h5" ] || fail "left $(ls "$saved/ck")"

# Nor does a second run use the directory of one that lives.
: >living
"$GPTBENCH" "$deck" checkpoint.directory="$saved/live" output.directory="$saved/living" run.steps=2000000000 >living 2>&1 &
job=$!
if await '^ *1/2000000000 ' living "$job"; then
  refused 2 "checkpoint.directory = '.*live' is in use: another run has locked .*live/lock;" 2 "$deck" checkpoint.directory="$saved/live" run.resume=auto
fi
kill -TERM "$job"
await_end "$job"
[ ! -e "$saved/live/lock" ] || fail "the lock is left"

# Nothing is left, and the result is not that of a valid run: killed behind the last checkpoint, whose
# journal becomes the result, and not valid. However often it is started again.
begin
run 1 "$deck" "${often[@]}" run.steps=2
GPTBENCH_FAILPOINT=checkpoint_complete:2 run 1 "$deck" "${often[@]}" run.steps=6
for again in 1 2; do
  run 2 "$deck" "${often[@]}" run.steps=6
  case="nothing is left, $again: $case"
  [ "$status" -eq 6 ] || fail "status $status instead of 6"
  grep -q 'nothing is left to train, .* and .*out/result.h5 says FAILED: recovered from the journal' err || fail "no message"
  "$RESULT_VALUES" "$saved/out/result.h5" >values
  grep -q 'ended without a result after step 6;' values || fail "$(grep reason values)"
  [ ! -e "$saved/out/planned.h5" ] || fail "the journal is not recovered"
done
run 1 "$deck" "${often[@]}" run.steps=5
[ "$status" -eq 6 ] || fail "status $status instead of 6"
rm "$saved/out/result.h5"
mv "$saved/out/result.1.h5" "$saved/out/result.h5"
run 1 "$deck" "${often[@]}" run.steps=5
[ "$status" -eq 2 ] || fail "status $status instead of 2"
grep -q 'out/result.h5 ends after step 2; use more steps' err || fail "no message"
begin
for again in 1 2; do
  run 1 "$deck" "${keys[@]}" precision.compute=fp16 precision.initial_loss_scale=1e30
  [ "$status" -eq 4 ] || fail "status $status instead of 4"
done
grep -q 'nothing is left to train, .* says INVALID: ' err || fail "no message"

# Killed after it was resumed: what is recovered are its own steps.
begin
run 1 "$deck" "${often[@]}" run.steps=14
case="recovery of a resumed run"
GPTBENCH_FAILPOINT=checkpoint_created:2 run 1 "$deck" "${often[@]}" run.steps=20
"$GPTPOST" recover --status TIMEOUT "$saved/out" >recovered 2>err || fail "recover"
check_result "$saved/out/result.h5" TIMEOUT
grep -qx 'steps 4' values || fail "$(grep '^steps' values)"
grep -q 'after step 18;' values || fail "$(grep reason values)"

# A signal: an orderly end with a checkpoint, from which the next run goes on.
begin
rm -rf "$work" out
mkdir -p "$work"
case="signal"
(cd "$work" && exec "$GPTBENCH" "$deck" "${keys[@]}" run.steps=2000000000 --verbose) >out 2>err &
job=$!
await '^ *3/2000000000 ' out "$job"
kill -TERM "$job"
await_end "$job"
[ "$status" -eq 8 ] || fail "status $status instead of 8"
check_result "$saved/out/result.h5" TIMEOUT
steps=$(awk '/^steps/ { print $2 }' values)
[ -e "$(printf '%s/ck/step-%08d.manifest' "$saved" "$steps")" ] || fail "no checkpoint after step $steps: $(ls "$saved/ck")"
run 1 "$deck" "${keys[@]}" run.steps=$((steps + 3)) run.warmup_steps=2
[ "$status" -eq 0 ] || fail "status $status"
grep -q "after step $steps," out || fail "does not continue after step $steps"
grep -q '^Checkpoints ' out || fail "no line about the checkpoints"
# The warm-up is that of this run, and its steps are not those of the run before.
check_result "$saved/out/result.h5" OK
grep -qx 'timed_steps 1' values || fail "$(grep timed values)"

# A full disk ends the run with status 7, and leaves what is there. A limit of file size serves for
# the disk; MPI's shared memory is a file, too.
export OMPI_MCA_btl=self,tcp
cat >"$decks/limited" <<'END_OF_SCRIPT'
#!/bin/bash
trap '' XFSZ
ulimit -f 200
exec "$program" "$@"
END_OF_SCRIPT
chmod +x "$decks/limited"
export program=$GPTBENCH
large=(model.hidden_size=64 model.num_layers=2)
begin
run 2 "$deck" "${often[@]}" "${large[@]}" run.steps=4
[ "$status" -eq 0 ] || fail "status $status"
find "$saved/ck" -type f -exec cksum {} + | sort >before
GPTBENCH=$decks/limited run 2 "$deck" "${ten[@]}" "${large[@]}"
[ "$status" -eq 7 ] || fail "status $status instead of 7"
check_result "$saved/out/result.h5" FAILED
grep -q 'reason .*step-00000006.h5: cannot write: File too large' values || fail "$(grep reason values)"
find "$saved/ck" -type f -exec cksum {} + | sort | cmp -s - before || fail "the checkpoints have changed"
unset OMPI_MCA_btl

# A disk that is really full, where this user may make one.
mkdir -p "$saved/disk"
if mount -t tmpfs -o size=1m tmpfs "$saved/disk" 2>/dev/null; then
  run 1 "$deck" "${large[@]}" checkpoint.directory="$saved/disk/ck" run.steps=2
  [ "$status" -eq 7 ] || fail "status $status instead of 7"
  check_result "$work/output/tiny/result.h5" FAILED
  grep -q 'reason .*step-00000002.h5: cannot write: No space left' values || fail "$(grep reason values)"
  sed '/1\/2 /q' out | grep -q '^Warning: checkpoint.directory =' || fail "no warning before the first step"
  [ -z "$(find "$saved/disk" -type f)" ] || fail "left $(find "$saved/disk" -type f)"
  # The journal fills it, and no result can be written: the run says both, and with more room the result is
  # made of the journal.
  mount -o remount,size=240k "$saved/disk"
  run 1 "$deck" output.directory="$saved/disk/out" run.steps=5000 output.log_every=5000
  [ "$status" -eq 7 ] || fail "status $status instead of 7"
  grep -q '^Warning: .*steps.csv: steps without a line: 1, .*: No space left' out || fail "no warning"
  grep -Eq 'result.h5: cannot write: No space left on device.*; .*steps.csv: steps without a line: [0-9]{3,}' err || fail "no message"
  mount -o remount,size=4m "$saved/disk"
  "$GPTPOST" recover "$saved/disk/out" >recovered 2>err || fail "recover"
  grep -Eq 'FAILED, [0-9]{3,} steps' recovered || fail "$(cat recovered)"
  umount "$saved/disk"
else
  not_tested "a full tmpfs (this user may not mount one)"
fi

# Decks that ask for what cannot be.
refused 2 "run.resume = 'auto' looks for checkpoints in checkpoint.directory, which is not set" 0 "$deck" run.resume=auto
refused 2 'checkpoint.every_steps needs checkpoint.directory' 0 "$deck" checkpoint.every_steps=2
refused 2 'give one of the two' 0 "$deck" run.resume=a.h5 run.init_from=b.h5
refused 7 'none: no such directory' 0 "$deck" run.resume=none
refused 7 'checkpoint directory /proc/ck.*cannot create' 0 "$deck" checkpoint.directory=/proc/ck
finish
