#!/bin/bash
# cmake/run.sh, which is `make run`, with the real programs: it ends with the headline box and the path of a report,
# which is checked and opened in headless Chromium as those of made records are (test/post/report_test.py).
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
# Two stages, so that there are messages; a traced step has a timeline and operations.
cat >"$decks/real.in" <<'END'
&run name = 'made' steps = 6 warmup_steps = 2 /
&model num_layers = 2 hidden_size = 32 num_attention_heads = 2 seq_length = 16 vocab_size = 100 /
&batch micro_batch_size = 1 global_batch_size = 4 /
&parallel pipeline_parallel = 2 /
&output trace_step = 4 /
END
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
build=$(dirname "$(dirname "$GPTBENCH")")
report=output/real/report.html
sh "$GPTBENCH_SOURCE_DIR/cmake/run.sh" "$build" "$decks/real.in" 2 >out 2>&1 || fail "status $?: $(cat out)"
tail -n 12 out | grep -qw 'VALID' || fail "no verdict near the end: $(tail -n 12 out)"
tail -n 1 out | grep -q "$report" || fail "the last line does not name the report: $(tail -n 1 out)"
check() { GPTBENCH_TEST_NAME=made python3 "$GPTBENCH_SOURCE_DIR/test/post/report_test.py" "$1" "$report"; }
check static || fail "the report of a run"
for picture in 'Timeline of one step' 'Roofline of rank 0 by operation'; do
  grep -q "aria-label=\"$picture\"" "$report" || fail "no picture '$picture'"
done
[ $failures = 0 ] || exit 1
check browser
