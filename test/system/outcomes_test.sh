#!/bin/bash
# How runs end: exit status, status and verdict in the result file, the last line.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
deck=$decks/tiny.in

# 0: valid, with the checks of a run, on one rank and on three with shares that differ.
ends 0 OK 0 "$deck" run.verify=true
grep -q 'check gradients_against_reference passed' values || fail "no check against the reference"
ends 0 OK 3 "$deck" run.verify=true batch.micro_batch_size=2 batch.global_batch_size=7
for check in loss_against_reference gradients_against_reference update_against_reference initial_loss replicas_identical messages_as_planned parameter_count memory_as_planned; do
  grep -qx "check $check passed" values || fail "no check $check"
done
grep -qx 'steps 4' values || fail "$(grep steps values)"
ends 0 OK 2 "$deck" precision.compute=bf16 model.dropout=0.1
ends 0 OK 0 "$deck" run.device=ref precision.compute=fp64

# fp16: a loss scale that is too large costs steps, not the run, in the verification neither.
ends 0 OK 0 "$deck" precision.compute=fp16 run.verify=true
grep -qx 'skipped_steps 0' values || fail "$(grep skipped values)"
grep -qx 'scale 3 65536' values || fail "$(grep scale values)"
ends 0 OK 2 "$deck" precision.compute=fp16 run.verify=true precision.initial_loss_scale=1e12 run.steps=40
scales=$(awk '/^scale/ { if ($2 > 0 && $3 != last && $3 != last / 2) bad = 1; last = $3 } END { print bad + 0, (last < 1e9) }' values)
[ "$scales" = "0 1" ] || fail "scales: $(grep scale values)"
grep -Eqx 'skipped_steps (1[0-9]|2[0-9])' values || fail "$(grep skipped values)"
grep -q 'skipped: gradient not finite; loss scale 1e+12, next 5e+11' out || fail "no line about a skipped step"
grep -q '^Loss scale .* of 40 steps skipped' out || fail "no line about the loss scale"
ends 0 OK 0 "$deck" precision.compute=fp16 run.verify=true precision.loss_scale=4096

# 3: out of memory, predicted.
ends 3 OOM 0 "$deck" memory.device_memory_gib=1e-5
grep -q 'reason .*device_memory_gib' values || fail "$(grep reason values)"
ends 3 OOM 2 "$deck" memory.device_memory_gib=1e-5
ends 3 OOM 2 "$deck" model.preset=gpt-5.8b batch.micro_batch_size=64

# 4: a check fails. The loss that a fresh model must have holds for small weights; these are not.
ends 4 INVALID 0 "$deck" model.init_std=3
grep -q 'check initial_loss failed' values || fail "another check failed"
ends 4 INVALID 2 "$deck" model.init_std=3

# 5: NaN or infinity.
ends 5 FAILED 0 "$deck" optimizer.lr=1e30
ends 5 FAILED 2 "$deck" optimizer.lr=1e30
ends 5 FAILED 2 "$deck" precision.compute=fp16 optimizer.lr=1e30
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
ends 7 FAILED 0 "$deck" run.steps=30 data.source=tokens data.path="$decks/tokens.bin"
grep -q 'reason .*tokens.bin' values || fail "$(grep reason values)"
grep -Eqx 'steps (12|13)' values || fail "$(grep '^steps' values)"
ends 7 FAILED 2 "$deck" run.steps=30 data.source=tokens data.path="$decks/tokens.bin"
ends 0 OK 2 "$deck" run.steps=30 data.source=tokens data.path="$decks/tokens.bin" model.vocab_size=256

# 8: time limit. Steps of some milliseconds, far more of them than time allows.
endless=(run.steps=2000000000 model.hidden_size=64 model.seq_length=64 batch.global_batch_size=16)
ends 8 TIMEOUT 0 "$deck" "${endless[@]}" run.time_limit_s=1.5
ends 8 TIMEOUT 2 "$deck" "${endless[@]}" run.time_limit_s=1.5

# 8: a signal, to all ranks or to one of them.
signalled() {  # signalled SIGNAL RANKS RECIPIENTS
  case="signal $1 to $3 of $2 ranks"
  rm -rf "$work"
  mkdir -p "$work"
  local launch
  read -r -a launch <<<"$GPTBENCH_LAUNCH $2"
  # shellcheck disable=SC2016  # expanded by the inner shell
  (cd "$work" && exec timeout 60 "${launch[@]}" sh -c 'echo $$ >>pids; exec "$0" "$@"' \
    "$GPTBENCH" "$deck" "${endless[@]}") >out 2>err &
  local job=$!
  for _ in $(seq 300); do
    grep -q '^ *3/2000000000 ' out && break
    sleep 0.1
  done
  grep -q '^ *3/2000000000 ' out || fail "training did not begin within 30 s"
  # shellcheck disable=SC2046
  kill "-$1" $(head -n "$3" "$work/pids")
  wait "$job"
  status=$?
  [ "$status" -eq 8 ] || fail "status $status instead of 8"
  check_result "$work/output/tiny/result.h5" TIMEOUT
}
signalled USR1 1 1
signalled TERM 2 2
signalled USR1 2 1

# A second run keeps what the first one wrote.
case="two runs in one folder"
rm -rf "$work"
mkdir -p "$work"
(cd "$work" && "$GPTBENCH" "$deck") >out 2>err || fail "the first run"
(cd "$work" && "$GPTBENCH" "$deck" memory.device_memory_gib=1e-5) >out 2>err
[ $? -eq 3 ] || fail "the second run"
check_result "$work/output/tiny/result.1.h5" OK
check_result "$work/output/tiny/result.h5" OOM
[ "$(find "$work" -type f | wc -l)" -eq 2 ] || fail "other files: $(find "$work" -type f)"

# Two runs of one deck and layout: the same losses, bit for bit.
for ranks in 1 2; do
  for repetition in 1 2; do
    ends 0 OK "$ranks" "$deck" model.dropout=0.1 batch.global_batch_size=5
    grep '^loss' values >"losses.$repetition"
  done
  cmp -s losses.1 losses.2 || fail "losses differ: $(diff losses.1 losses.2)"
done
finish
