#!/bin/bash
# small_run.sh COMMAND...: gptbench under a tool that watches it (valgrind, or nothing where the program
# itself was built with a sanitizer): training, checkpoints, a resumed run, the watchdog, a result. Ends with
# the first status that is not 0. Needs GPTBENCH, GPTPOST and GPTBENCH_LAUNCH, as the tests have them.
set -eu
work=$(mktemp -d "$PWD/small_run.XXXXXX")
trap 'rm -rf "$work"' EXIT
cat >"$work/tiny.in" <<'END'
&run name = 'tiny' steps = 4 warmup_steps = 1 resume = 'auto' /
&model num_layers = 2 hidden_size = 16 num_attention_heads = 2 seq_length = 8 vocab_size = 32 /
&batch global_batch_size = 4 /
&output peak_tflops = 1.0 /
END

# small_run NAME RANKS KEY=VALUE...
small_run() {
  local name=$1 ranks=$2 launch=()
  shift 2
  if [ "$ranks" -gt 0 ]; then read -r -a launch <<<"$GPTBENCH_LAUNCH $ranks"; fi
  echo "== $name, $ranks ranks"
  "${launch[@]}" "${command[@]}" "$GPTBENCH" "$work/tiny.in" output.directory="$work/$name" \
    checkpoint.directory="$work/$name.checkpoints" checkpoint.every_steps=2 run.device=host "$@"
}
command=("$@")
small_run alone 0
small_run alone 0 run.steps=6 # resumed
small_run bf16 0 precision.compute=bf16 model.dropout=0.1 parallel.offload=optimizer
small_run data 2 parallel.zero_stage=3
small_run stages 2 parallel.pipeline_parallel=2 checkpoint.async=F
"${command[@]}" "$GPTPOST" show "$work/alone/result.h5" >/dev/null
