# Sourced by the tests that run gptbench on emulated GPUs: a small deck, and what it must end with and say.
# shellcheck shell=bash

deck=$GPTBENCH_SOURCE_DIR/input/124m_short.in
# The emulated GPU has no data sheet; with a peak no run measures a ceiling instead.
small=(model.num_layers=2 model.hidden_size=64 model.num_attention_heads=4 model.seq_length=24
  model.vocab_size=250 model.vocab_multiple=8 batch.micro_batch_size=2 run.warmup_steps=1 run.attention=native
  output.peak_tflops=1)
steps=4 sequences=4 # of a run, and of a step
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# run NAME RANKS STATUS KEYS...: into NAME.log and NAME/result.h5.
run() {
  local name=$1 ranks=$2 expected=$3 status=0
  shift 3
  # shellcheck disable=SC2086  # a command
  timeout --kill-after=10 "${GPTBENCH_COMMAND_S:-180}" $GPTBENCH_LAUNCH "$ranks" "$GPTBENCH_EMULATED" "$deck" "${small[@]}" "run.steps=$steps" "batch.global_batch_size=$sequences" "run.name=$name" "output.directory=$name" "$@" \
    >"$name.log" 2>&1 || status=$?
  if [ "$status" -ne "$expected" ]; then
    fail "$name: status $status, not $expected"
    tail -n 30 "$name.log"
  fi
}
says() { grep -aqF -- "$2" "$1.log" || fail "$1 does not say '$2': $(grep -a '^gptbench:' "$1.log")"; }
