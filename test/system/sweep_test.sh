#!/bin/bash
# gptbench --sweep as users run it: outcomes of rows, resuming, limits, the launcher's argument
# vector, decks for array jobs.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
top=$PWD

# sweep_deck NAME: the tiny model with the group &sweep from standard input.
sweep_deck() {
  { cat "$decks/tiny.in" && echo '&sweep' && cat && echo '/'; } >"$decks/$1.in"
}

# sweeps STATUS ARGUMENTS...: gptbench --sweep in $work, which keeps what earlier ones left.
sweeps() {
  local expected=$1
  shift
  case="--sweep $*"
  status=0
  (cd "$work" && exec timeout 120 "$GPTBENCH" --sweep "$@") >out 2>err || status=$?
  [ "$status" -eq "$expected" ] || fail "status $status instead of $expected"
}

# A launcher that needs no MPI: it notes its arguments and starts the program by itself.
cat >"$decks/solo launcher" <<END
#!/bin/bash
printf '<%s>' "\$@" >>"$top/started"
echo >>"$top/started"
while [ "\$1" != -- ]; do shift; done
shift
exec "\$@"
END
chmod +x "$decks/solo launcher"
solo="\"\"$decks/solo launcher\"\" {ranks} {name} \"\"a b; echo no\"\" --"

# Rows of every outcome; the sweep goes on behind each.
sweep_deck all <<END
  launcher = "$solo"
  columns = 'optimizer.lr', 'device_memory_gib', 'init_std', 'run.steps', 'time_limit_s'
  rows = '1e-3 -    -    -    -'
         '1e-3 1e-5 -    -    -'
         '1e-3 -    3    -    -'
         '1e30 -    -    -    -'
         '1e-3 -    -    2000000000 1.0'
         '1e-4 -    -    -    -'
  name = '{run.name}-{row}'
END
rm -f started
sweeps 0 "$decks/all.in"
grep -q '6 rows, 2 OK, 1 OOM, 1 INVALID, 1 FAILED, 1 TIMEOUT' out || fail "summary: $(tail -8 out)"
number=0
for word in OK OOM INVALID FAILED TIMEOUT OK; do
  number=$((number + 1))
  check_result "$work/output/tiny/tiny-$number/result.h5" $word
done
grep -q '^\[1/6\] tiny-1  OK' out || fail "no line of progress"
grep -q 'left$' out || fail "no time left"
[ "$(grep -Fc '<a b; echo no><-->' started)" -eq 6 ] || fail "argument vector: $(cat started)"

# Again: every row is there. A row whose deck has changed runs again, and so does an outcome asked for.
sweeps 0 "$decks/all.in"
[ "$(wc -l <started)" -eq 6 ] || fail "rows ran again: $(cat started)"
grep -q '6 finished before' out || fail "$(cat out)"
sweeps 0 "$decks/all.in" sweep.rerun=oom
[ "$(wc -l <started)" -eq 7 ] || fail "rerun: $(cat started)"
rm -f "$work/output/tiny/tiny-6/result.h5"
echo damaged >"$work/output/tiny/tiny-1/result.h5"
sweeps 0 "$decks/all.in"
[ "$(wc -l <started)" -eq 9 ] || fail "missing and damaged results: $(cat started)"
check_result "$work/output/tiny/tiny-1/result.h5" OK
sweeps 0 "$decks/all.in" sweep.rows="'1e-3 - - - -'" model.dropout=0.1
[ "$(wc -l <started)" -eq 10 ] || fail "a deck that changed: $(cat started)"

# What a job that leaves no result becomes: stand-ins for the launcher end as jobs can.
stand_in() {
  local word=$1 pattern=$2
  shift 2
  rm -rf "$work"
  mkdir -p "$work"
  printf '#!/bin/sh\n%s\n' "$*" >"$decks/stand-in"
  chmod +x "$decks/stand-in"
  sweep_deck ends <<END
    launcher = '"$decks/stand-in"', vary(1) = 'seed = 1, 2', time_limit_s = 1, grace_s = 1
END
  sweeps 0 "$decks/ends.in"
  check_result "$work/output/tiny/tiny-2/result.h5" "$word"
  grep -Eq "reason .*$pattern" values || fail "$(grep reason values)"
}
stand_in FAILED 'status 9 and left no result; this is why' 'echo first; echo this is why >&2; echo ----; exit 9'
stand_in OOM 'status 3' 'exit 3'
stand_in OOM 'oom.kill' 'echo slurmstepd: error: Detected 1 oom_kill event in StepId=1.0; exit 137'
stand_in FAILED 'status 137' 'kill -KILL $$'
stand_in FAILED 'status 6' 'echo gptbench: rank 1: a peer is gone; echo launcher text; exit 6'
grep -q 'reason .*; rank 1: a peer is gone' values || fail "$(grep reason values)"
stand_in FAILED 'status 0' 'exit 0'
# One that ends on SIGTERM, one that does not, one that leaves a process behind: none lives on.
stand_in TIMEOUT 'time_limit_s' "echo \$\$ >'$top/pid'; exec sleep 100"
stand_in TIMEOUT 'time_limit_s' "trap '' TERM; echo \$\$ >'$top/pid'; sleep 100; sleep 100"
if kill -0 "$(cat pid)" 2>/dev/null; then fail "a job outlives its limit"; fi
stand_in FAILED 'status 0' "(setsid sleep 100 & echo \$! >'$top/pid'); exit 0"
if kill -0 "$(cat pid)" 2>/dev/null; then fail "a process outlives its job"; fi

# A signal to the sweep ends the job in hand, which keeps no result; the same command goes on.
rm -rf "$work"
mkdir -p "$work"
sweep_deck stopped <<END
  launcher = "$solo", vary(1) = 'run.steps = 4, 2000000000, 5', time_limit_s = 20
END
case="a sweep that is stopped"
(cd "$work" && exec timeout 60 "$GPTBENCH" --sweep "$decks/stopped.in") >out 2>err &
sweep=$!
for ((i = 0; i < 300; ++i)); do
  if grep -q step "$work/output/tiny/tiny-2000000000/output.txt" 2>/dev/null; then break; fi
  sleep 0.1
done
sleep 0.5
kill -TERM "$sweep"
status=0
wait "$sweep" || status=$?
[ "$status" -eq 8 ] || fail "status $status instead of 8"
grep -q 'tiny-2000000000  interrupted' out || fail "no word of the interrupted row"
grep -q '1 OK, 2 not run' out || fail "summary"
check_result "$work/output/tiny/tiny-4/result.h5" OK
if [ -e "$work/output/tiny/tiny-2000000000/result.h5" ]; then fail "the interrupted row has a result"; fi
rm -f started
sweeps 0 "$decks/stopped.in" sweep.time_limit_s=2
[ "$(wc -l <started)" -eq 2 ] || fail "goes on: $(cat started)"
check_result "$work/output/tiny/tiny-2000000000/result.h5" TIMEOUT
check_result "$work/output/tiny/tiny-5/result.h5" OK

# Through the MPI launcher, from a path that a shell would take apart.
odd="$work/an odd; name \$(echo x)"
mkdir -p "$odd"
sweep_deck ranks <<END
  launcher = '$GPTBENCH_LAUNCH {ranks}', vary(1) = 'ranks = 1, 3'
  vary(2) = 'zero_stage = 0, 3'
END
cp "$decks/ranks.in" "$odd/it's.in"
sweeps 0 "$odd/it's.in" "output.directory=$odd/out; here"
check_result "$odd/out; here/tiny-3-3/result.h5" OK
grep -Eqx 'peak_bytes [0-9]+ [0-9]+ [0-9]+' values || fail "not three ranks"

# A second driver keeps out; a launcher that is not there is named; MPI processes do not sweep.
mkdir -p "$work/output/tiny"
before=$failures
(
  exec 8>"$work/output/tiny/sweep.lock"
  flock 8
  sweeps 2 "$decks/ranks.in"
  exit "$((failures - before))"
) || fail "a second sweep ran"
grep -q 'another sweep runs here' err || fail "no word of the other sweep"
sweeps 2 "$decks/ranks.in" sweep.launcher='no-such-launcher -n {ranks}'
grep -q 'no program no-such-launcher' err || fail "no word of the launcher"
(export OMPI_COMM_WORLD_SIZE=2 && sweeps 2 "$decks/ranks.in" && exit "$((failures - before))") || fail "an MPI process swept"

# Listed and written: rows that cannot work are left out with the reason.
sweep_deck pruned <<END
  vary(1) = 'micro_batch_size = 1:4096:*64', vary(2) = 'tensor_parallel = 1, 3', ranks = 3, prune = 'memory'
END
cp "$decks/pruned.in" "$work"
sweeps 0 pruned.in memory.device_memory_gib=0.06 --list
grep -q '6 rows, 2 to run, 4 left out' out || fail "$(head -1 out)"
grep -q 'left out: rank 0 needs .* device_memory_gib allows' out || fail "no reason of memory"
grep -q 'left out: .*tensor_parallel = 3 does not divide' out || fail "no reason of tensor parallelism"
[ "$(awk 'length > 80' out | wc -l)" -eq 0 ] || fail "lines of more than 80 columns"
sweeps 2 "$decks/pruned.in" --list
sweeps 0 "$decks/ranks.in" --write-decks "$work/rows"
[ "$(cd "$work/rows" && echo *)" = '1x1.rows 1x3.rows submit.sh tiny-1-0.in tiny-1-3.in tiny-3-0.in tiny-3-3.in' ] ||
  fail "wrote $(cd "$work/rows" && echo *)"
[ "$(sed 1d "$work/rows/1x3.rows")" = "$work/rows/tiny-3-0.in
$work/rows/tiny-3-3.in" ] || fail "$(cat "$work/rows/1x3.rows")"
sh -n "$work/rows/submit.sh" || fail "submit.sh"
case="plan of a row"
"$GPTBENCH" --plan "$work/rows/tiny-3-3.in" >out 2>err || fail "cannot be planned"
grep -q '= 3 ranks' out || fail "the deck does not say its ranks"

finish
