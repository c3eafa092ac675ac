#!/bin/bash
# gptbench --sweep as users run it: outcomes of rows, resuming, limits, the launcher's argument
# vector, decks for array jobs.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
top=$PWD

# sweep_deck NAME: the tiny model with the group &sweep from standard input. On uniform tokens the first
# loss has a bound that is tight in a tiny vocabulary.
sweep_deck() {
  { cat "$decks/tiny.in" && echo "&data source = 'uniform' /" && echo '&sweep' && cat && echo '/'; } >"$decks/$1.in"
}

# sweeps STATUS ARGUMENTS...: gptbench --sweep in $work, which keeps what earlier ones left.
sweeps() {
  local expected=$1
  shift
  case="--sweep $*"
  status=0
  (cd "$work" && exec timeout "${GPTBENCH_COMMAND_S:-180}" "$GPTBENCH" --sweep "$@") >out 2>err || status=$?
  [ "$status" -eq "$expected" ] || fail "status $status instead of $expected"
}

# A launcher that needs no MPI: it notes its arguments and starts the program by itself.
cat >"$decks/solo launcher" <<END
#!/bin/bash
printf '<%s>' "\$@" >>"$top/started"
echo >>"$top/started"
echo "\$\$" >"$top/pid"
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
         '1e-3 -    -    1    -'
  name = '{run.name}-{row}'
END
rm -f started
sweeps 0 "$decks/all.in"
grep -qx 'Sweep tiny: 6 rows in output/tiny, 1 left out (--list says why)' out || fail "$(head -2 out)"
grep -q '^Sweep tiny: 6 rows, 2 OK, 1 OOM, 1 INVALID, 1 FAILED, 1 TIMEOUT; ' out || fail "summary: $(tail -8 out)"
[ "$(grep '^  [A-Z]' out | xargs)" = 'OOM tiny-2 INVALID tiny-3 FAILED tiny-4 TIMEOUT tiny-5' ] || fail "summary: $(tail -8 out)"
tail -3 out | cmp -s - <(printf '%s\n' 'Make the report and the table of these rows with' \
  '  gptpost report -o output/tiny/report.html output/tiny/*/result.h5' \
  '  gptpost table --style native --format md output/tiny/*/result.h5') || fail "$(tail -3 out)"
number=0
for word in OK OOM INVALID FAILED TIMEOUT OK; do
  number=$((number + 1))
  check_result "$work/output/tiny/tiny-$number/result.h5" $word
done
time='([0-9]+ min )?[0-9.]+ (s|ms)'
grep -Eqx "\[1/6\] tiny-1  OK  $time, [0-9,]+ tokens/s; about $time left" out || fail "progress: $(grep tiny-1 out)"
grep -Eqx "\[2/6\] tiny-2  OOM  $time; about $time left" out || fail "progress: $(grep tiny-2 out)"
grep -Eqx "\[6/6\] tiny-6  OK  $time, [0-9,]+ tokens/s" out || fail "progress: $(grep tiny-6 out)"
[ "$(grep -Fc '<a b; echo no><-->' started)" -eq 6 ] || fail "argument vector: $(cat started)"

# The list as JSON says of each row what the record of its result does, of keys that a row leaves alone what the deck
# without a sweep does, and of the row that is left out why that deck with its values is refused.
sweeps 0 "$decks/all.in" --list --format json
{ cat "$decks/tiny.in" && echo "&data source = 'uniform' /"; } >"$decks/plain.in"
"$GPTBENCH" --check "$decks/plain.in" >plain
sed 's/^  steps = 4$/  steps = 1/' "$decks/plain.in" >"$decks/short.in"
"$GPTBENCH" --check "$decks/short.in" 2>refused >/dev/null && fail "the deck of the row that is left out is accepted"
GPTPOST="$GPTPOST" python3 - out "$work" plain refused "$decks/all.in" <<'END' || fail "the list is not what the rows' results say"
import json, os, re, subprocess, sys
listed = json.load(open(sys.argv[1]))
plain = dict(re.findall(r"^  (\w+) = (.*?)(?: +!.*)?$", open(sys.argv[3]).read(), re.M))
refused = re.fullmatch(r"gptbench: .*?/short\.in:\d+:\d+: (.+)\n", open(sys.argv[4]).read())[1]
(where,) = (f"{sys.argv[5]}:{number}:{line.index(chr(39)) + 1}" for number, line in enumerate(open(sys.argv[5]), 1)
            if line.split() == ["'1e-3", "-", "-", "1", "-'"])
rows = listed["rows"]
assert listed["name"] == "tiny" and listed["directory"] == "output/tiny" and len(rows) == 7
assert [row["number"] for row in rows] == list(range(1, 8))
assert listed["left_out"] == sum(row["left_out"] is not None for row in rows) == 1
for row in rows:
    if row["left_out"] is not None:
        assert row["left_out"] == f"{where}: {refused}", (row, where, refused)
        assert row["values"] == {**dict.fromkeys(row["values"], "-"), "lr": 1e-3, "steps": 1}, row
        continue
    file = os.path.join(sys.argv[2], listed["directory"], row["name"], "result.h5")
    record = json.loads(subprocess.run([os.environ["GPTPOST"], "show", "--format", "json", file],
                                       check=True, capture_output=True, text=True).stdout)
    config, summary = record["config"], record["summary"]
    assert config["run"]["name"] == row["name"], row
    assert (summary["world_size"], summary["nodes"]) == (row["ranks"], row["nodes"]), row
    for column, value in row["values"].items():
        groups = [column.split(".")[0]] if "." in column else list(config)
        of_record = [config[group][column.split(".")[-1]] for group in groups if column.split(".")[-1] in config[group]]
        value = float(plain[column.split(".")[-1]]) if value == "-" else value
        assert of_record == [value], (row, column, of_record, value)
END

# Again: every row is there. A row whose deck has changed runs again, and so does an outcome asked for.
sweeps 0 "$decks/all.in"
[ "$(wc -l <started)" -eq 6 ] || fail "rows ran again: $(cat started)"
grep -qx 'Sweep tiny: 6 rows in output/tiny, 1 left out (--list says why), 6 finished before' out || fail "$(cat out)"
sweeps 0 "$decks/all.in" sweep.rerun=oom
[ "$(wc -l <started)" -eq 7 ] || fail "rerun: $(cat started)"
rm -f "$work/output/tiny/tiny-6/result.h5"
echo damaged >"$work/output/tiny/tiny-1/result.h5"
sweeps 0 "$decks/all.in"
[ "$(wc -l <started)" -eq 9 ] || fail "missing and damaged results: $(cat started)"
grep -Eqx "\[6/6\] tiny-6  OK  $time, [0-9,]+ tokens/s" out || fail "rows that were there take no time: $(grep tiny-6 out)"
check_result "$work/output/tiny/tiny-1/result.h5" OK
sweeps 0 "$decks/all.in" sweep.rows="'1e-3 - - - -'" model.dropout=0.1
[ "$(wc -l <started)" -eq 10 ] || fail "a deck that changed: $(cat started)"
# A row that has come to its end, resumed: its job leaves no result, and the earlier one stands.
sweeps 0 "$decks/all.in" sweep.rows="'1e-3 - 3 - -'" run.resume=auto checkpoint.directory="$work/ck" run.name=ended
check_result "$work/output/ended/ended-1/result.h5" INVALID
sweeps 0 "$decks/all.in" sweep.rows="'1e-3 - 3 - -'" run.resume=auto checkpoint.directory="$work/ck" run.name=ended \
  sweep.rerun=invalid
grep -q 'nothing is left to train' "$work/output/ended/ended-1/output.txt" || fail "does not resume: $(cat "$work/output/ended/ended-1/output.txt")"
check_result "$work/output/ended/ended-1/result.h5" INVALID
grep -Eq "^\[1/1\] ended-1  INVALID  $time" out || fail "$(cat out)"
# A name that fills a line has it to itself.
long=$(printf 'x%.0s' {1..60})
sweeps 0 "$decks/all.in" sweep.rows="'1e-3 - - - -'" "run.name=$long"
grep -A 1 -Fx "[1/1] $long-1" out | grep -Eqx "    OK  $time, [0-9,]+ tokens/s" || fail "progress: $(cat out)"

# What a job that leaves no result becomes: stand-ins for the launcher end as jobs can, by themselves or
# at a limit of `limit` seconds.
limit=100
stand_in() {
  local word=$1 pattern=$2
  shift 2
  rm -rf "$work"
  mkdir -p "$work"
  printf '#!/bin/sh\n%s\n' "$*" >"$decks/stand-in"
  chmod +x "$decks/stand-in"
  sweep_deck ends <<END
    launcher = '"$decks/stand-in"', vary(1) = 'seed = 1, 2', time_limit_s = $limit, grace_s = 0.2
END
  sweeps 0 "$decks/ends.in"
  check_result "$work/output/tiny/tiny-seed_2/result.h5" "$word"
  grep -Eq "reason .*$pattern" values || fail "$(grep reason values)"
}
stand_in FAILED 'status 9 and left no result; this is why' 'echo first; echo this is why >&2; echo ----; exit 9'
stand_in FAILED 'left no result; There are not enough slots to start 4$' \
  'echo -----; printf "There are not enough slots\\nto start 4\\n\\nUse fewer ranks\\nto launch.\\n"; echo -----; exit 1'
stand_in OOM 'status 3' 'exit 3'
stand_in OOM 'oom.kill' 'echo slurmstepd: error: Detected 1 oom_kill event in StepId=1.0; exit 137'
# In a long line, which is read in parts of 64 KiB, the second of which begins within the word.
stand_in OOM 'status 137' 'head -c 65520 /dev/zero | tr "\0" x; echo slurmstepd: oom_kill; exit 137'
stand_in FAILED 'status 137' 'kill -KILL $$'
stand_in FAILED 'status 6' 'echo gptbench: rank 1: a peer is gone; echo launcher text; exit 6'
grep -q 'reason .*; rank 1: a peer is gone' values || fail "$(grep reason values)"
stand_in OOM 'status 6.*Out-Of-Memory' 'echo slurmstepd: Out-Of-Memory; exit 6'
stand_in FAILED 'status 0' 'exit 0'
sweeps 0 "$decks/ends.in" run.class=demo
check_result "$work/output/tiny/tiny-seed_2/result.h5" FAILED
"$GPTPOST" show "$work/output/tiny/tiny-seed_2/result.h5" >page
grep -q '^  rules  *not met: class demo, as_is: the run did not end' page || fail "the page is $(head -12 page)"
# A node that two rows blame is left out of those that follow.
sweep_deck ends <<END
  launcher = '"$decks/stand-in" {exclude}', vary(1) = 'seed = 1, 2, 3'
END
cat >"$decks/stand-in" <<'END'
#!/bin/sh
[ "$1" = --exclude=beta ] && shift && exec "$@"
echo 'gptbench: rank 0 on alpha: rank 1 on beta has been dead for more than 600 s'
exit 6
END
rm -rf "$work"
mkdir -p "$work"
sweeps 0 "$decks/ends.in"
check_result "$work/output/tiny/tiny-seed_2/result.h5" FAILED
check_result "$work/output/tiny/tiny-seed_3/result.h5" OK
grep -q 'beta failed in tiny-seed_1 and in tiny-seed_2: rows that follow leave it out' out || fail "does not say that beta is left out"
sweep_deck ends <<END
  launcher = '"$decks/stand-in"', vary(1) = 'seed = 1, 2'
END
# {output} is the file of what the job prints, for a launcher that writes there by its name.
sweep_deck named <<END
  launcher = '"$decks/stand-in" {output}', vary(1) = 'run.seed = 1'
END
# shellcheck disable=SC2016  # expanded by the stand-in
printf '#!/bin/sh\necho by name >>"$1"\necho printed\nexit 1\n' >"$decks/stand-in"
sweeps 0 "$decks/named.in"
[ "$(xargs <"$work/output/tiny/tiny/output.txt")" = 'by name printed' ] || fail "$(cat "$work/output/tiny/tiny/output.txt")"
# The result of an earlier job is none of a job that leaves none.
printf '#!/bin/sh\nexit 3\n' >"$decks/stand-in"
sweeps 0 "$decks/ends.in" sweep.rerun=failed
check_result "$work/output/tiny/tiny-seed_2/result.h5" OOM
check_result "$work/output/tiny/tiny-seed_2/result.1.h5" FAILED
# Rows that end with a result that is INVALID, as one whose replicas differ, blame a node, too.
cat >"$decks/stand-in" <<'END'
#!/bin/sh
[ "$1" = --exclude=beta ] && shift && exec "$@"
echo 'gptbench: rank 0 on alpha: rank 1 on beta has been dead for more than 600 s'
exec "$@"
END
sweep_deck ends <<END
  launcher = '"$decks/stand-in" {exclude}', name = '{run.name}-{row}'
  columns = 'seed', 'init_std'
  rows = '1 3'
         '2 3'
END
rm -rf "$work"
mkdir -p "$work"
sweeps 0 "$decks/ends.in"
check_result "$work/output/tiny/tiny-2/result.h5" INVALID
grep -q 'beta failed in tiny-1 and in tiny-2: rows that follow leave it out' out || fail "does not say that beta is left out"
sweep_deck ends <<END
  launcher = '"$decks/stand-in"', vary(1) = 'seed = 1, 2'
END
# One that ends on SIGUSR1, one that ignores all but SIGKILL, one that leaves a process behind: none lives on.
limit=1
stand_in TIMEOUT 'time_limit_s' "echo \$\$ >'$top/pid'; exec sleep 100"
stand_in TIMEOUT 'time_limit_s' "trap '' USR1 TERM; echo \$\$ >'$top/pid'; sleep 100; sleep 100"
if kill -0 "$(cat pid)" 2>/dev/null; then fail "a job outlives its limit"; fi
limit=100
stand_in FAILED 'status 0' "(setsid sleep 100 & echo \$! >'$top/pid'); exit 0"
if kill -0 "$(cat pid)" 2>/dev/null; then fail "a process outlives its job"; fi
# What a launcher leaves behind may end by itself: it has two seconds.
rm -f ended
stand_in FAILED 'status 0' "(setsid sh -c 'sleep 0.2; echo >>\"$top/ended\"' &); exit 0"
[ "$(wc -l <ended)" = 2 ] || fail "a process that was ending was killed: $(wc -l <ended)"

# At the limit a job is asked to write its result before it is told to end.
rm -f signals
limit=2
stand_in TIMEOUT 'time_limit_s' "for s in USR1 TERM; do trap \"echo \$s >>'$top/signals'\" \$s; done; while :; do sleep 0.1; done"
[ "$(head -2 signals | xargs)" = 'USR1 TERM' ] || fail "signals: $(xargs <signals)"

# Steps done are not lost at the limit: not behind mpirun, which gives ranks one second after SIGTERM while
# they still measure what GEMMs reach, nor behind a script that the signal ends.
printf '#!/bin/sh\n%s "$@"\nexit $?\n' "$GPTBENCH_LAUNCH" >"$decks/script"
chmod +x "$decks/script"
sweep_deck limited <<END
  launcher = '"$decks/script" {ranks}', vary(1) = 'run.seed = 1', ranks = 2
END
# On a loaded machine ranks may take seconds to start.
for seconds in 3 12 48; do
  rm -rf "$work"
  mkdir -p "$work"
  sweeps 0 "$decks/limited.in" run.steps=2000000000 output.peak_tflops=0 sweep.time_limit_s=$seconds
  check_result "$work/output/tiny/tiny/result.h5" TIMEOUT
  if ! grep -qx 'steps 0' values; then break; fi
done
grep -Eqx 'steps [1-9][0-9]*' values || fail "$(grep '^steps' values)"
grep -qx "  time_limit_s = $seconds.0" "$work/output/tiny/tiny/deck.in" || fail "the run does not know its limit"

# A signal to the sweep ends the job in hand, which keeps no result; the same command goes on.
rm -rf "$work"
mkdir -p "$work"
sweep_deck stopped <<END
  launcher = "$solo", vary(1) = 'run.steps = 4, 2000000000, 5', time_limit_s = 20
END
case="a sweep that is stopped"
(cd "$work" && exec "$GPTBENCH" --sweep "$decks/stopped.in") >out 2>err &
sweep=$!
await '^ *3/2000000000 ' "$work/output/tiny/tiny-steps_2000000000/output.txt" "$sweep"
kill -TERM "$sweep"
await_end "$sweep"
[ "$status" -eq 8 ] || fail "status $status instead of 8"
grep -q 'tiny-steps_2000000000  interrupted' out || fail "no word of the interrupted row"
grep -q '1 OK, 2 not run' out || fail "summary"
check_result "$work/output/tiny/tiny-steps_4/result.h5" OK
if [ -e "$work/output/tiny/tiny-steps_2000000000/result.h5" ]; then fail "the interrupted row has a result"; fi
rm -f started
sweeps 0 "$decks/stopped.in" sweep.time_limit_s=2
[ "$(wc -l <started)" -eq 2 ] || fail "goes on: $(cat started)"
check_result "$work/output/tiny/tiny-steps_2000000000/result.h5" TIMEOUT
check_result "$work/output/tiny/tiny-steps_5/result.h5" OK

# A row that has its result keeps it, where the sweep is stopped before its launcher ends.
rm -rf "$work"
mkdir -p "$work"
printf '#!/bin/sh\n%s "$@"\nsleep 100\n' "$GPTBENCH_LAUNCH" >"$decks/slow"
chmod +x "$decks/slow"
sweep_deck slow <<END
  launcher = '"$decks/slow" {ranks}', vary(1) = 'run.seed = 1, 2'
END
case="a sweep that is stopped behind the end of a run"
(cd "$work" && exec "$GPTBENCH" --sweep "$decks/slow.in") >out 2>err &
sweep=$!
await '^GPTBENCH status=OK ' "$work/output/tiny/tiny-seed_1/output.txt" "$sweep"
kill -TERM "$sweep"
await_end "$sweep"
[ "$status" -eq 8 ] || fail "status $status instead of 8"
check_result "$work/output/tiny/tiny-seed_1/result.h5" OK

# A row that SIGTERM ends, which Slurm sends to the steps of a job before its end, is no outcome: the sweep stops, and
# the next one runs the row again, even where a driver that was killed left the result in its place.
rm -rf "$work" started
mkdir -p "$work"
cat >"$decks/told" <<END
#!/bin/bash
echo "\$1" >>"$top/started"
output=output/tiny/\$1/output.txt
shift
"\$@" &
pid=\$!
until grep -q '^ *3/2000000000 ' "\$output" || ! kill -0 "\$pid"; do sleep 0.05; done 2>/dev/null
kill -TERM "\$pid" 2>/dev/null
wait "\$pid"
END
chmod +x "$decks/told"
sweep_deck told <<END
  launcher = '"$decks/told" {name}', vary(1) = 'run.steps = 4, 2000000000, 5'
END
row=$work/output/tiny/tiny-steps_2000000000
sweeps 8 "$decks/told.in"
grep -qx '\[2/3\] tiny-steps_2000000000  interrupted' out || fail "no word of the interrupted row"
grep -qx '    stopped by signal 15 after the step in hand' out || fail "no word of the signal"
grep -q '1 OK, 2 not run' out || fail "summary: $(tail -5 out)"
grep -qx 'Stopped behind a row that was cut off; the same command goes on from here.' out || fail "$(tail -1 out)"
[ ! -e "$row/result.h5" ] || fail "the interrupted row has a result"
check_result "$row/interrupted.h5" TIMEOUT
mv "$row/interrupted.h5" "$row/result.h5"
sweeps 8 "$decks/told.in"
grep -q ' 3 rows in output/tiny, 1 finished before$' out || fail "$(head -1 out)"
[ "$(xargs <started)" = 'tiny-steps_4 tiny-steps_2000000000 tiny-steps_2000000000' ] || fail "rows that ran: $(xargs <started)"

# A driver that is killed leaves its job running. The next one waits for it, says which process it is, takes
# its result and goes on behind it.
rm -rf "$work" started
mkdir -p "$work"
sweep_deck killed <<END
  launcher = "$solo $GPTBENCH_LAUNCH {ranks} {program} {deck}", vary(1) = 'run.steps = 2000000000, 4', ranks = 2
END
case="a driver that is killed"
rm -f out # of the driver before, which await would read
(cd "$work" && exec "$GPTBENCH" --sweep "$decks/killed.in" run.time_limit_s=100) >out 2>err &
sweep=$!
output=$work/output/tiny/tiny-steps_2000000000/output.txt
await '^ *3/2000000000 ' "$output" "$sweep"
grep -Eqx "process $sweep on .+" "$work/output/tiny/sweep.lock" || fail "sweep.lock: $(cat "$work/output/tiny/sweep.lock")"
kill -KILL "$sweep"
wait "$sweep" 2>/dev/null
rm -f out # of the driver before, which await would read
(cd "$work" && exec "$GPTBENCH" --sweep "$decks/killed.in" run.time_limit_s=100) >out 2>err &
sweep=$!
await 'still runs here|^Launcher' out "$sweep"
pid=$(cat pid)
grep -qx "tiny-steps_2000000000: the job of an earlier sweep still runs here; waiting for it (to end it: kill $pid)" out || fail "does not wait: $(cat out)"
[ "$(grep -c 'still runs here' out)" -eq 1 ] || fail "says more than once that it waits: $(cat out)"
# A driver that is stopped while it waits leaves the job alone.
kill -TERM "$sweep"
await_end "$sweep"
[ "$status" -eq 8 ] || fail "status $status instead of 8"
grep -q ' 2 rows, 2 not run;' out || fail "summary: $(tail -3 out)"
kill -0 "$pid" || fail "the job is gone"
rm -f out # of the driver before, which await would read
(cd "$work" && exec "$GPTBENCH" --sweep "$decks/killed.in" run.time_limit_s=100) >out 2>err &
sweep=$!
await 'still runs here|^Launcher' out "$sweep"
kill -USR1 "$pid"
await_end "$sweep"
[ "$status" -eq 0 ] || fail "status $status instead of 0"
[ "$(wc -l <started)" -eq 2 ] || fail "jobs: $(cat started)"
grep -q ' 2 rows in output/tiny, 1 finished before$' out || fail "$(cat out)"
grep -q ' 2 rows, 1 OK, 1 TIMEOUT;' out || fail "$(cat out)"
# A job whose processes are not to be seen here.
rm -f out
# shellcheck disable=SC2016  # expanded by the inner shell
flock "$output" sh -c 'for _ in $(seq 600); do if grep -qs "still runs here" "$0"; then break; fi; sleep 0.05; done' "$PWD/out" &
until ! flock --nonblock "$output" true; do sleep 0.05; done
sweeps 0 "$decks/killed.in" run.time_limit_s=100
grep -qx 'tiny-steps_2000000000: the job of an earlier sweep still runs here; waiting for it (on another machine)' out || fail "does not wait: $(cat out)"
check_result "$work/output/tiny/tiny-steps_2000000000/result.h5" TIMEOUT
[ ! -e "$work/output/tiny/tiny-steps_2000000000/result.1.h5" ] || fail "the row has two results"

# Through the MPI launcher, from a path that a shell would take apart.
odd="$work/an odd; name \$(echo x)"
mkdir -p "$odd"
sweep_deck ranks <<END
  launcher = '$GPTBENCH_LAUNCH {ranks}', vary(1) = 'ranks = 1, 3'
  vary(2) = 'zero_stage = 0, 3'
END
cp "$decks/ranks.in" "$odd/it's.in"
sweeps 0 "$odd/it's.in" "output.directory=$odd/out; here"
check_result "$odd/out; here/tiny-ranks_3-zero_stage_3/result.h5" OK
grep -Eqx 'peak_bytes [0-9]+ [0-9]+ [0-9]+' values || fail "not three ranks"

# A second driver keeps out; a launcher that is not there is named; MPI processes do not sweep.
mkdir -p "$work/output/tiny"
before=$failures
(
  exec 8>"$work/output/tiny/sweep.lock"
  flock 8
  echo 'process 12 on n1' >&8
  sweeps 2 "$decks/ranks.in"
  exit "$((failures - before))"
) || fail "a second sweep ran"
grep -qx 'gptbench: output/tiny: another sweep runs here (process 12 on n1); wait for it, .*' err || fail "$(cat err)"
sweeps 2 "$decks/ranks.in" sweep.launcher='no-such-launcher -n {ranks}'
grep -q 'no program no-such-launcher' err || fail "no word of the launcher"
for variable in OMPI_COMM_WORLD_SIZE PMI_SIZE SLURM_STEP_NUM_TASKS; do
  (export $variable=2 && sweeps 2 "$decks/ranks.in" && exit "$((failures - before))") || fail "an MPI process swept"
  grep -q '^gptbench: --sweep starts its jobs itself and is no MPI process' err || fail "$(cat err)"
done

# The launcher where none is given: srun in a Slurm job that has one.
mkdir -p tools
printf '#!/bin/sh\necho "srun $*"\nexit 3\n' >tools/srun
chmod +x tools/srun
# by_srun CPUS: sets `started` to what a sweep starts in a job with so many processors per task; '': not said.
by_srun() {
  (
    PATH=$PWD/tools:$PATH
    export SLURM_JOB_ID=1 SLURM_CPUS_PER_TASK=$1
    if [ -z "$1" ]; then unset SLURM_CPUS_PER_TASK; fi
    sweeps 0 "$decks/ranks.in" "sweep.launcher=''" "sweep.vary='ranks = 3'" sweep.ranks_per_node=2 "output.directory=slurm$1"
    exit "$((failures - before))"
  ) || fail "no sweep by srun"
  started=$(cat "$work/slurm$1/tiny/output.txt")
}
(
  unset SRUN_CPUS_PER_TASK
  by_srun ''
  [ "$started" = "srun --nodes=2 --ntasks=3 --ntasks-per-node=2 $GPTBENCH slurm/tiny/deck.in" ] || fail "$started"
  by_srun 4
  [ "$started" = "srun --nodes=2 --ntasks=3 --ntasks-per-node=2 --cpus-per-task=4 $GPTBENCH slurm4/tiny/deck.in" ] || fail "$started"
  # srun reads its own variable.
  export SRUN_CPUS_PER_TASK=2
  rm -r "$work/slurm4"
  by_srun 4
  [[ $started != *cpus-per-task* ]] || fail "$started"
  exit "$((failures - before))"
) || fail "rows by srun do not get the processors of their tasks"

# Listed and written: rows that cannot work are left out with the reason.
sweep_deck pruned <<END
  vary(1) = 'micro_batch_size = 1:4096:*64', vary(2) = 'tensor_parallel = 1, 3', ranks = 3, prune = 'memory'
END
cp "$decks/pruned.in" "$work"
sweeps 0 pruned.in memory.device_memory_gib=0.06 --list
grep -q '6 rows, 2 to run, 4 left out' out || fail "$(head -1 out)"
[ "$(tail -1 out)" = '6 rows, 4 left out' ] || fail "$(tail -1 out)"
grep -q 'left out: rank 0 needs .* device_memory_gib allows' out || fail "no reason of memory"
grep -q 'left out: .*tensor_parallel = 3 does not divide' out || fail "no reason of tensor parallelism"
[ "$(awk 'length > 80' out | wc -l)" -eq 0 ] || fail "lines of more than 80 columns"
sweeps 2 "$decks/pruned.in" --list
sweeps 0 "$decks/ranks.in" --write-decks "$work/rows"
[ "$(cd "$work/rows" && echo *)" = '1x1.rows 1x3.rows submit.sh tiny-ranks_1-zero_stage_0.in tiny-ranks_1-zero_stage_3.in tiny-ranks_3-zero_stage_0.in tiny-ranks_3-zero_stage_3.in' ] ||
  fail "wrote $(cd "$work/rows" && echo *)"
[ "$(sed 1d "$work/rows/1x3.rows")" = "$work/rows/tiny-ranks_3-zero_stage_0.in
$work/rows/tiny-ranks_3-zero_stage_3.in" ] || fail "$(cat "$work/rows/1x3.rows")"
[ "$(grep '^rows ' "$work/rows/submit.sh")" = "rows 1x1 2 --nodes=1 --ntasks-per-node=1 \"\$@\" \"\$scripts/array.slurm\" $work/rows/1x1.rows
rows 1x3 2 --nodes=1 --ntasks-per-node=3 \"\$@\" \"\$scripts/array.slurm\" $work/rows/1x3.rows" ] || fail "$(cat "$work/rows/submit.sh")"
[ -x "$work/rows/submit.sh" ] || fail "submit.sh cannot be started"
# Three ranks on nodes of two: the number of tasks is given as well. Rows left out are not written.
sweeps 0 pruned.in memory.device_memory_gib=0.06 sweep.ranks_per_node=2 --write-decks uneven
[ "$(cd "$work/uneven" && echo *)" = '2x2-3.rows submit.sh tiny-micro_batch_size_1-tensor_parallel_1.in tiny-micro_batch_size_64-tensor_parallel_1.in' ] || fail "wrote $(ls "$work/uneven")"
# shellcheck disable=SC2016  # the text of the script
grep -qx 'rows 2x2-3 2 --nodes=2 --ntasks-per-node=2 --ntasks=3 "$@" "$scripts/array.slurm" uneven/2x2-3.rows' "$work/uneven/submit.sh" ||
  fail "$(cat "$work/uneven/submit.sh")"
# Where the run of a row searches its layout, what the sweep sets of it stands behind the deck.
sweeps 0 "$decks/ranks.in" run.layout=auto --write-decks "$work/auto"
grep -qx "$work/auto/tiny-ranks_1-zero_stage_3.in parallel.zero_stage=3" "$work/auto/1x1.rows" || fail "$(cat "$work/auto/1x1.rows")"
case="plan of a row"
"$GPTBENCH" --plan "$work/rows/tiny-ranks_3-zero_stage_3.in" >out 2>err || fail "cannot be planned"
grep -q '= 3 ranks' out || fail "the deck does not say its ranks"

finish
