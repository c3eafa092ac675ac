#!/bin/bash
# How runs end: exit status, status and verdict in the result file, the last line.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
deck=$decks/tiny.in

# 0: valid, with the checks of a run, on one rank and on three with shares that differ.
ends 0 OK 0 "$deck" run.verify=true
grep -qx 'check gradients_against_reference passed' values || fail "no check against the reference"
# The result holds the deck as it was read, what became of it, the command and the environment.
"$GPTPOST" show --format json "$work/output/tiny/result.h5" >shown
for text in '"deck_raw": "! A model small enough that a step takes microseconds.\u000a&run' \
  "\"deck_name\": \"$deck\"" 'num_layers = 1\u000a' "$deck run.verify=true" 'OMP_NUM_THREADS=1'; do
  grep -Fq -- "$text" shown || fail "no '$text' in the result"
done
ends 0 OK 3 "$deck" run.verify=true batch.micro_batch_size=2 batch.global_batch_size=7
for check in loss_against_reference gradients_against_reference update_against_reference initial_loss replicas_identical messages_as_planned parameter_count memory_as_planned; do
  grep -qx "check $check passed" values || fail "no check $check"
done
! grep -q '^check transfers' values || fail "a check of transfers that nobody makes"
# Runs of 50 steps and more must learn; a learning rate that is much too high makes them INVALID.
ends 0 OK 0 "$deck" run.steps=60 batch.micro_batch_size=8 optimizer.lr=0.1
grep -qx 'check learns passed' values || fail "no check that the run learns"
ends 4 INVALID 0 "$deck" run.steps=60 batch.micro_batch_size=8 optimizer.lr=10
grep -qx 'check learns failed' values || fail "$(grep learns values)"
# What is offloaded is counted, too, and so is the time that its copies take.
ends 0 OK 2 "$deck"
"$GPTPOST" show "$work/output"/*/result.h5 | grep -q 'region_offload' && fail "nothing is offloaded, and has a time"
ends 0 OK 2 "$deck" parallel.offload=optimizer,activations parallel.offload_target=file
"$GPTPOST" show "$work/output"/*/result.h5 | grep -q 'region_offload' || fail "copies have no time"
awk '/^(programs|regions)/ { if ($2 <= 0 || $2 > 1) bad = 1 } END { exit bad }' values || fail "$(grep -E '^(programs|regions)' values)"
ends 0 OK 2 "$deck" parallel.offload=optimizer,activations parallel.offload_update=host
grep -qx 'check transfers_as_planned passed' values || fail "no check of transfers"
ends 0 OK 3 "$deck" batch.micro_batch_size=2 batch.global_batch_size=7
grep -qx 'steps 4' values || fail "$(grep steps values)"
# Times: the slowest rank's of each step; programs and regions divide a step. 7 sequences of 8 tokens.
grep -qx 'tokens_per_step 56' values || fail "$(grep tokens_per_step values)"
grep -qx 'slowest 4' values || fail "step times are not those of the slowest rank"
awk '/^(programs|regions)/ { if ($2 <= 0 || $2 > 1) bad = 1 } END { exit bad }' values || fail "$(grep -E '^(programs|regions)' values)"
! grep -q unbounded values || fail "$(grep '^comm' values)"
# Messages are those of the timed steps, whatever the warm-up.
grep '^comm' values >messages
ends 0 OK 3 "$deck" batch.micro_batch_size=2 batch.global_batch_size=7 run.warmup_steps=3 run.steps=6
grep '^comm' values | cmp -s messages || fail "$(grep '^comm' values)"
# Gradients of 3952 parameters in fp32, in three timed steps.
grep -q '^comm data all_reduce [0-9]* 47424 ' messages || fail "$(cat messages)"
ends 0 OK 2 "$deck" precision.compute=bf16 model.dropout=0.1
ends 0 OK 0 "$deck" run.device=ref precision.compute=fp64

# fp16: a loss scale that is too large costs steps, not the run, in the verification neither.
ends 0 OK 0 "$deck" precision.compute=fp16 run.verify=true
grep -qx 'skipped_steps 0' values || fail "$(grep skipped values)"
grep -qx 'scale 3 65536' values || fail "$(grep scale values)"
ends 0 OK 2 "$deck" precision.compute=fp16 run.verify=true precision.initial_loss_scale=1e12 run.steps=60
scales=$(awk '/^scale/ { if ($2 > 0 && $3 != last && $3 != last / 2) bad = 1; last = $3 } END { print bad + 0, (last < 1e9) }' values)
[ "$scales" = "0 1" ] || fail "scales: $(grep scale values)"
grep -Eqx 'skipped_steps (1[0-9]|2[0-9])' values || fail "$(grep skipped values)"
grep -q '^Step 1 skipped: gradient not finite; loss scale 1e+12, next 5e+11$' out || fail "no line about a skipped step"
run 2 "$deck" precision.compute=fp16 precision.initial_loss_scale=1e12 run.steps=60 --verbose
grep -q '^Loss scale .* of 60 steps skipped and not timed' out || fail "no line about the loss scale"
# Steps behind the warm-up are either skipped, with a smaller scale behind them, or timed.
awk '/^skipped_steps/ { skipped = $2 } /^timed_steps/ { timed = $2 } /^flags/ { flags = $2 }
  /^scale/ { if ($2 > 0 && $3 < last) halved += 1; last = $3 }
  END { exit !(skipped == halved && flags == skipped && timed == 60 - skipped) }' values || fail "$(grep -E '^(skip|timed|flag)' values)"
ends 0 OK 0 "$deck" precision.compute=fp16 run.verify=true precision.loss_scale=4096

# 3: out of memory, predicted.
ends 3 OOM 0 "$deck" memory.device_memory_gib=1e-5
grep -q 'reason .*device_memory_gib' values || fail "$(grep reason values)"
ends 3 OOM 2 "$deck" memory.device_memory_gib=1e-5
ends 3 OOM 2 "$deck" model.preset=gpt-5.8b batch.micro_batch_size=64

# 4: a check fails. The loss that a fresh model must have holds for small weights; these are not.
ends 4 INVALID 0 "$deck" model.init_std=3 data.source=uniform
grep -qx 'check initial_loss failed' values || fail "another check failed"
ends 4 INVALID 2 "$deck" model.init_std=3 data.source=uniform

# 4: more than half of the steps behind the warm-up are skipped; none is timed, none is enough.
skips=(precision.compute=fp16 precision.initial_loss_scale=1e30 precision.loss_scale_backoff=0.9)
ends 4 INVALID 0 "$deck" "${skips[@]}"
grep -q 'check skipped_steps failed' values || fail "skipped steps passed"
grep -q 'reason .*lower precision.initial_loss_scale' values || fail "$(grep reason values)"
grep -qx 'timed_steps 0' values || fail "$(grep timed values)"
ends 4 INVALID 2 "$deck" "${skips[@]}"

# 5: NaN or infinity.
ends 5 FAILED 0 "$deck" optimizer.lr=1e30
grep -q ' nan' out || fail "no number that is none"
! grep -q -- '-nan' out || fail "a number that is none has a sign"
grep -q ' verdict=INVALID .* steps=[1-9][0-9]* .* tokens_per_s=none .* mfu=none ' out || fail "figures of a run that failed"
ends 5 FAILED 2 "$deck" optimizer.lr=1e30
ends 5 FAILED 2 "$deck" precision.compute=fp16 optimizer.lr=1e30
# The last update makes infinite weights of a step whose loss and gradient are finite: they are not saved.
for saving in checkpoint.directory= checkpoint.directory=ck; do
  ends 5 FAILED 2 "$deck" optimizer.lr=1e39 run.steps=1 run.warmup_steps=0 "$saving"
  grep -q 'reason weights are not finite after step 1; .*; first on rank 0 on .*: tensor wte of the weights' values || fail "$(grep reason values)"
  [ -z "$(find "$work" -name 'step-*')" ] || fail "saved"
done
ends 5 FAILED 2 "$deck" precision.compute=fp16 precision.initial_loss_scale=1e12 precision.min_loss_scale=2e11
grep -q 'reason .*falls below precision.min_loss_scale' values || fail "$(grep reason values)"
grep -qx 'steps 3' values || fail "$(grep '^steps' values)"
ends 5 FAILED 0 "$deck" precision.compute=fp16 precision.loss_scale=1e12
grep -q 'reason .*precision.loss_scale is fixed' values || fail "$(grep reason values)"

# 7: a token beyond the vocabulary in the middle of the file, met in step 13 of the run. Header of
# 256 int32 (magic 20240520, version 1, number of tokens), tokens of two bytes.
tokens() { awk -v n="$1" 'BEGIN { for (i = 0; i < n; ++i) printf "\\%03o\\000", i * 7 % 32 }'; }
{
  printf '\210\330\064\001\001\000\000\000\310\000\000\000'
  head -c 1012 /dev/zero
  printf '%b' "$(tokens 100)"
  printf '\377\000'
  printf '%b' "$(tokens 99)"
} >"$decks/tokens.bin"
bad_token() { # bad_token STEP RANKS OVERRIDES...: no figures of that step, neither printed nor written
  local step=$1 ranks=$2
  shift 2
  ends 7 FAILED "$ranks" "$deck" run.steps=30 data.source=tokens data.path="$decks/tokens.bin" "$@"
  grep -q 'reason .*tokens.bin. holds token 255 at position 100; ids must be in 0 .. 31' values || fail "$(grep reason values)"
  grep -qx "steps $((step - 1))" values || fail "$(grep '^steps' values)"
  [ "$(grep -c '^ *[0-9]*/30 ' out)" -eq $((step - 1)) ] || fail "lines of other than $((step - 1)) steps"
  ! grep -q MPI_ABORT err || fail "MPI_Abort"
}
bad_token 13 0
bad_token 7 2
bad_token 1 0 batch.global_batch_size=16
bad_token 1 3 batch.global_batch_size=16
bad_token 1 2 batch.global_batch_size=16 model.num_layers=2 parallel.pipeline_parallel=2 output.dump=weights output.trace_step=1
ends 0 OK 2 "$deck" run.steps=30 data.source=tokens data.path="$decks/tokens.bin" model.vocab_size=256

# 8: time limit. Steps of some milliseconds, far more of them than time allows.
endless=(run.steps=2000000000 model.hidden_size=64 model.seq_length=64 batch.global_batch_size=16)
ends 8 TIMEOUT 0 "$deck" "${endless[@]}" run.time_limit_s=1.5
ends 8 TIMEOUT 2 "$deck" "${endless[@]}" run.time_limit_s=1.5

# A run for a time is valid: as many steps as end after that.
for ranks in 0 2; do
  ends 0 OK "$ranks" "$deck" run.duration_s=1 run.warmup_steps=2
  awk '/^steps/ { exit !($2 > 2) }' values || fail "$(grep '^steps' values)"
  awk -F, 'NR > 3 { timed += $4 } END { exit !(timed > 0.2) }' "$work/output/tiny/steps.csv" || fail "not the time asked for"
done
ends 8 TIMEOUT 2 "$deck" run.duration_s=1000 run.time_limit_s=1

# Killed without warning: the journal has all steps, and gptpost makes a result of it.
case="kill -9"
rm -rf "$work" out
mkdir -p "$work"
(cd "$work" && exec "$GPTBENCH" "$deck" "${endless[@]}") >out 2>err &
job=$!
await '^ *5/2000000000 ' out "$job"
"$GPTPOST" recover "$work/output/tiny" >recovered 2>err && fail "recovered a run that lives"
grep -q 'steps.csv: a run still writes it; wait for its end' err || fail "no message"
kill -KILL "$job"
wait "$job" 2>/dev/null
[ ! -e "$work/output/tiny/result.h5" ] || fail "a result"
# Its plan is no result: nothing is accepted of it.
echo "&any verdict = 'any' /" >spec.in
status=0
"$GPTPOST" accept spec.in "$work/output/tiny/planned.h5" >accepted 2>err || status=$?
[ "$status" -ne 0 ] || fail "a plan is accepted: $(cat accepted)"
grep -q 'is the plan of a run without a result' err || fail "no message"
seen=$(grep -c '^ *[0-9]*/2000000000 ' out)
"$GPTPOST" recover --status TIMEOUT "$work/output/tiny" >recovered 2>err || fail "recover"
check_result "$work/output/tiny/result.h5" TIMEOUT
awk -v seen="$seen" '/^steps/ { exit !($2 >= seen && $2 <= seen + 1) }' values || fail "$seen steps seen, $(grep '^steps' values)"
grep -q 'reason recovered from the journal' values || fail "$(grep reason values)"
"$GPTPOST" recover "$work/output/tiny" >recovered 2>err || fail "recover again"
grep -q 'the run or an earlier recovery has written it' recovered || fail "not said: $(cat recovered)"
"$GPTPOST" recover "$decks" >out 2>err && fail "recovered a folder without a journal"
grep -q 'planned.h5' err || fail "no message"

# 8: a signal to ranks, or to the launcher.
peak=()
signalled() { # signalled SIGNAL RANKS ranks|one|launcher|group
  case="signal $1 to $3 of $2"
  rm -rf "$work"
  mkdir -p "$work"
  local launch job
  read -r -a launch <<<"$GPTBENCH_LAUNCH $2"
  rm -f out # of the case before, which await would read
  # A process group of its own, as a shell with a terminal makes it. An interrupt is not ignored in
  # it, which it is in background jobs of a script.
  set -m
  # shellcheck disable=SC2016  # expanded by the inner shell
  (cd "$work" && exec "${launch[@]}" sh -c 'echo $$ >>pids; exec "$0" "$@"' \
    "$GPTBENCH" "$deck" --verbose "${endless[@]}" "${peak[@]}") </dev/null >out 2>err &
  job=$!
  set +m
  await '^ *3/2000000000 ' out "$job" || return
  # shellcheck disable=SC2046
  case $3 in
    ranks) kill "-$1" $(cat "$work/pids") ;;
    one) kill "-$1" $(head -1 "$work/pids") ;;
    launcher) kill "-$1" "$job" ;;
    group) kill "-$1" -- "-$job" ;;
  esac
  await_end "$job"
}
timed_out() {
  check_result "$work/output/tiny/result.h5" TIMEOUT
  awk '/^steps/ { exit !($2 >= 3) }' values || fail "$(grep '^steps' values)"
}
for recipients in "USR1 1 one" "TERM 2 ranks" "INT 2 one" "HUP 1 one" "XCPU 2 one" "USR1 2 launcher"; do
  read -r -a words <<<"$recipients"
  signalled "${words[@]}"
  [ "$status" -eq 8 ] || fail "status $status instead of 8"
  timed_out
done

# Told to end in the set-up, here in 8 s of autotuning: no other phase begins, and the result has no step.
case="TERM before the first step"
rm -rf "$work" out
mkdir -p "$work"
(cd "$work" && GPTBENCH_FAILPOINT=autotuning/busy exec "$GPTBENCH" "$deck" run.verify=T) >out 2>err &
job=$!
if await '^Deck ' out "$job"; then
  kill -TERM "$job"
  await_end "$job"
  [ "$status" -eq 8 ] || fail "status $status instead of 8"
  check_result "$work/output/tiny/result.h5" TIMEOUT
  grep -qx 'steps 0' values || fail "$(grep '^steps' values)"
  grep -qx 'reason stopped by signal 15 before the first step' values || fail "$(grep reason values)"
  if grep -q '^Verifying' out; then fail "verifies after the signal"; fi
fi

# A hangup that nohup has set aside is none. Of a limit of processor time the system tells every second: what is in
# hand, here a checkpoint that takes 8 s, is finished.
case="HUP and XCPU again and again"
rm -rf "$work" out
mkdir -p "$work"
(trap '' HUP && cd "$work" && GPTBENCH_FAILPOINT=checkpoint_written/busy exec "$GPTBENCH" "$deck" "${endless[@]}" \
  checkpoint.directory=ck checkpoint.every_steps=2 checkpoint.async=F) </dev/null >out 2>err &
job=$!
if await '^ *2/2000000000 ' out "$job"; then
  for signal in HUP HUP XCPU XCPU; do
    kill "-$signal" "$job" || fail "has ended before $signal"
    sleep 1.1
  done
  await_end "$job"
  [ "$status" -eq 8 ] || fail "status $status instead of 8"
  check_result "$work/output/tiny/result.h5" TIMEOUT
  grep -q "stopped by signal $(kill -l XCPU) " values || fail "$(grep reason values)"
fi

# A second signal ends the process at once, unless it comes within a second. The checkpoint in hand never ends.
for signals in "TERM TERM 143" "USR1 TERM 143" "TERM USR1 138" "INT INT 130"; do
  read -r first second expected <<<"$signals"
  case="$first, and $second behind it"
  rm -rf "$work" out
  mkdir -p "$work"
  set -m # with a process group of its own it does not ignore SIGINT
  (cd "$work" && GPTBENCH_FAILPOINT=checkpoint_written/hang exec "$GPTBENCH" "$deck" "${endless[@]}" \
    checkpoint.directory=ck checkpoint.every_steps=2 checkpoint.async=F) </dev/null >out 2>err &
  job=$!
  set +m
  await '^ *2/2000000000 ' out "$job" || continue
  kill "-$first" "$job"
  kill "-$second" "$job"
  sleep 1.2
  kill -0 "$job" 2>/dev/null || fail "two signals at once have ended it"
  # One that comes within a second of the first's handler counts as the same: again, then.
  for _ in $(seq 20); do
    kill "-$second" "$job" 2>/dev/null || break
    sleep 1.2
  done
  await_end "$job"
  [ "$status" -eq "$expected" ] || fail "status $status instead of $expected"
done

# The launcher told to end. Open MPI's mpirun sends SIGKILL a second after SIGTERM, which a loaded
# machine may need for a step; five here. A ceiling of GEMMs, where the peak is not known, takes two
# seconds, so it is measured before the first step and not once more behind the last, which is when it
# would be kept; nor are replicas compared. The status is the launcher's.
peak=(output.peak_tflops=0)
export GPTBENCH_CEILINGS=$PWD/ceilings
rm -f "$GPTBENCH_CEILINGS"
endless=(run.steps=2000000000) # of the smallest steps
export OMPI_MCA_odls_base_sigkill_timeout=5
for recipients in "TERM 2 launcher" "INT 2 group"; do
  read -r -a words <<<"$recipients"
  signalled "${words[@]}"
  [ "$status" -ne 0 ] || fail "status 0"
  timed_out
  awk '/^GEMM ceiling/ { seen = 1 } /^ *1\/2000000000 / { exit !seen }' out || fail "no ceiling before the first step"
  [ ! -e "$GPTBENCH_CEILINGS" ] || fail "a ceiling was measured after the signal"
  if grep -q '^check replicas_identical' values; then fail "replicas were compared after the signal"; fi
done
unset OMPI_MCA_odls_base_sigkill_timeout
# A run that ends by itself keeps its ceiling.
run 1 "$deck" output.peak_tflops=0
[ -s "$GPTBENCH_CEILINGS" ] || fail "no ceiling is kept"
unset GPTBENCH_CEILINGS

# 7: output that cannot be written, and a limit of file size.
if [ -c /dev/full ]; then
  for arguments in --help --version --keys "--check $deck" "--plan $deck" "$deck"; do
    case="$arguments > /dev/full"
    status=0
    # shellcheck disable=SC2086
    (mkdir -p "$work" && cd "$work" && exec "${limited[@]}" "$GPTBENCH" $arguments) >/dev/full 2>err || status=$?
    [ "$status" -eq 7 ] || fail "status $status instead of 7"
    grep -q '^gptbench: cannot write to standard output' err || fail "no message"
  done
  for arguments in --help --version --words; do
    case="gptpost $arguments > /dev/full"
    status=0
    "$GPTPOST" $arguments >/dev/full 2>err || status=$?
    [ "$status" -eq 7 ] || fail "status $status instead of 7"
    grep -q '^gptpost: cannot write' err || fail "no message"
  done
fi
case="ulimit -f"
rm -rf "$work"
mkdir -p "$work"
# MPI libraries write files of their own, in shared memory: the limit is set behind them.
read -r -a launch <<<"$GPTBENCH_LAUNCH 1"
status=0
# shellcheck disable=SC2016
(cd "$work" && OMPI_MCA_btl=self,tcp exec "${limited[@]}" "${launch[@]}" bash -c 'ulimit -f 50; exec "$0" "$@"' "$GPTBENCH" "$deck") >out 2>err || status=$?
[ "$status" -eq 7 ] || fail "status $status instead of 7"
grep -q 'planned.h5: cannot write: File too large' err || fail "no message"
[ -z "$(find "$work" -type f)" ] || fail "left $(find "$work" -type f)"

# A second run keeps what the first one wrote.
case="two runs in one folder"
rm -rf "$work"
mkdir -p "$work"
(cd "$work" && "${limited[@]}" "$GPTBENCH" "$deck") >out 2>err || fail "the first run"
(cd "$work" && "${limited[@]}" "$GPTBENCH" "$deck" memory.device_memory_gib=1e-5) >out 2>err
[ $? -eq 3 ] || fail "the second run"
grep -qx 'Earlier result  kept as output/tiny/result.1.h5' out || fail "no word of the earlier result"
check_result "$work/output/tiny/result.1.h5" OK
check_result "$work/output/tiny/result.h5" OOM
[ "$(find "$work" -type f ! -name steps.csv | wc -l)" -eq 2 ] || fail "other files: $(find "$work" -type f)"

# Two runs of one deck and layout: the same losses, bit for bit.
for ranks in 1 2; do
  for repetition in 1 2; do
    ends 0 OK "$ranks" "$deck" model.dropout=0.1 batch.global_batch_size=5
    grep '^loss' values >"losses.$repetition"
  done
  cmp -s losses.1 losses.2 || fail "losses differ: $(diff losses.1 losses.2)"
done
finish
