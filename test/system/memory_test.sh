#!/bin/bash
# Memory: what --plan states is what a run allocates, byte for byte, and what the operating system
# counts is that within 5% and the constant that is set aside for program, MPI and libraries.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
runtime_bytes=$((160 * 1024 * 1024)) # runtime_bytes_per_rank of src/memory/budget.h
grep -q 'runtime_bytes_per_rank = 160 \* MiB' "$GPTBENCH_SOURCE_DIR/src/memory/budget.h" || {
  echo "src/memory/budget.h has another constant"
  exit 1
}

# The embedding of GPT-2 124M and two of its layers: 0.9 GB a rank.
cat >"$decks/tiny.in" <<'END'
&run
  name = 'tiny'
  steps = 2
  warmup_steps = 1
  verify = .false.
/
&model
  preset = 'gpt2-124m'
  num_layers = 2
  seq_length = 128
/
&output
  peak_tflops = 1.0
/
END
deck=$decks/tiny.in

compare() { # compare RANKS OVERRIDES...; offloaded data are a class of their own, where there are any
  local ranks=$1 class host=()
  shift
  run 0 --plan "$deck" --ranks "$ranks" "$@"
  [ "$status" -eq 0 ] || fail "status $status"
  cp out plan
  ends 0 OK "$ranks" "$deck" "$@"
  case " $* " in *parallel.offload=*) host=(host) ;; esac
  for class in parameters gradients optimizer_state activations communication workspace "${host[@]}"; do
    planned=$(awk -v c="$class" '$1 == c && $3 == "bytes" { gsub(",", "", $2); print $2 }' plan)
    [ -n "$planned" ] || fail "no $class in the plan"
    expected="${class}_bytes"
    for _ in $(seq "$ranks"); do expected="$expected $planned"; done
    grep -qx "$expected" values || fail "planned $expected, allocated $(grep "^${class}_bytes" values)"
  done
  planned=$(sed -n 's/^memory per rank: \([0-9]*\) bytes$/\1/p' plan)
  grep -Eqx "arena_bytes( $planned){$ranks}" values || fail "planned $planned, $(grep '^arena' values)"
  [ "$planned" -gt 500000000 ] || return 0
  read -r -a peaks <<<"$(sed -n 's/^peak_bytes //p' values)"
  for peak in "${peaks[@]}"; do
    echo "$ranks ranks $*: arena $planned, high-water mark $peak: $(((peak - planned) / 1048576)) MiB more"
    [ $((peak * 100)) -ge $((planned * 95)) ] || fail "high-water mark $peak is below the plan, $planned"
    [ $((peak * 100)) -le $((planned * 105 + runtime_bytes * 100)) ] || fail "high-water mark $peak, planned $planned"
  done
}

compare 1
compare 2
compare 1 precision.compute=bf16
# Pieces of the optimizer's state pass through two windows, each as large as the largest piece: with
# layers larger than the embedding, so that both are filled.
compare 1 parallel.offload=optimizer model.preset= model.hidden_size=1024 model.num_attention_heads=16 \
  model.num_layers=3 model.vocab_size=1000
# Small ones, in many shapes.
small=(model.preset= model.vocab_size=100 model.vocab_multiple=1 model.hidden_size=32 model.num_attention_heads=4)
compare 1 "${small[@]}" model.seq_length=2000 batch.micro_batch_size=3
compare 3 "${small[@]}" model.dropout=0.1 batch.micro_batch_size=2 batch.global_batch_size=7
compare 1 "${small[@]}" run.device=ref precision.compute=fp64

# What a step leaves in memory: at most 256 bytes (src/training.h). The high-water mark of 20,000
# steps is above that of 2,000 by no more than that and 8 MiB of what libraries keep.
tiny=("${small[@]}" model.seq_length=8 batch.global_batch_size=1)
peak_of() { # peak_of STEPS: leaves peak
  ends 0 OK 0 "$deck" "${tiny[@]}" "run.steps=$1"
  peak=$(awk '/^peak_bytes/ { print $2 }' values)
}
peak_of 2000
few=$peak
peak_of 20000
many=$peak
case="20,000 steps beside 2,000"
echo "$case: $(((many - few) / 1024)) KiB more"
[ $((many - few)) -le $((18000 * 256 + 8388608)) ] || fail "high-water mark $many after $few"
finish
