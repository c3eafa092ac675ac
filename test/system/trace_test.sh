#!/bin/bash
# output.trace_step: trace.json holds what each rank computed, sent and waited for in one step.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
cat >"$decks/trace.in" <<'END'
&run name = 'trace' steps = 2 warmup_steps = 1 verify = .false. /
&model num_layers = 2 hidden_size = 16 num_attention_heads = 2 seq_length = 8 vocab_size = 50 /
&parallel zero_stage = 3 /
&output peak_tflops = 1.0 trace_step = 2 /
END
# shellcheck disable=SC2086  # words
$GPTBENCH_LAUNCH 2 "$GPTBENCH" "$decks/trace.in" output.directory=traced >log 2>&1 || {
  cat log
  exit 1
}
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
grep -q 'Trace of step 2: traced/trace.json' log || fail "the report does not name the file"
for pid in 0 1; do
  for name in linear_forward 'issue shard all_gather' 'shard all_gather' 'wait for shard all_gather' adamw; do
    grep -q "\"ph\":\"X\",\"name\":\"$name\",.*\"pid\":$pid," traced/trace.json || fail "no $name of rank $pid"
  done
done
for name in host tensor data send_forward; do
  grep -q "\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,.*\"name\":\"$name\"" traced/trace.json || fail "no lane '$name' of rank 1"
done
python=
for candidate in python3 /usr/bin/python3; do
  "$candidate" -c 'import json' 2>/dev/null && python=$candidate
done
if [ -n "$python" ]; then
  "$python" - <<'END' || fail "not a trace"
import json
events = json.load(open("traced/trace.json"))["traceEvents"]
spans = [e for e in events if e["ph"] == "X"]
assert all(e["ts"] >= 0 and e["dur"] >= 0 for e in spans)
messages = [e for e in spans if e["tid"] > 0]
assert messages and all(e["ts"] <= e["args"]["pending_us"] <= e["ts"] + e["dur"] + 1e-2 for e in messages)
# Time 0 is the start of the step: the first operation begins before the others have taken as long.
assert min(e["ts"] for e in spans) < max(e["ts"] + e["dur"] for e in spans) - min(e["ts"] for e in spans)
# Operations of the host end where they are no longer pending; each of the three times is rounded to 1e-3.
names = {e["name"] for e in messages}
host = [e for e in spans if e["tid"] == 0 and e["cat"] not in ("issue", "wait")]
assert host and all(abs(e["args"]["pending_us"] - e["ts"] - e["dur"]) < 2e-3 for e in host)
assert all(e["args"]["bytes"] > 0 for e in messages) and not any(e["args"]["bytes"] for e in host)
waits = [e for e in spans if e["cat"] == "wait"]
assert waits and all(e["name"][len("wait for "):] in names for e in waits)
END
fi
[ $failures = 0 ] || exit 1
[ -n "$python" ] || { echo "skipped: no python3 to read trace.json as JSON"; exit 77; }
