#!/bin/bash
# output.trace_step: trace.json holds what each rank computed, sent and waited for in one step.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
rm -rf traced short drawn
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
# Kernels have FLOPs and bytes: of a GEMM 2 M N K, and each of its three matrices at least once in 4 bytes.
kernels = [e["args"] for e in host]
assert all(k["work"] and k["flops"] >= 0 and k["moved"] > 0 for k in kernels if "work" in k)
gemms = [k for k in kernels if k.get("work", "").startswith("linear_")]
for k in gemms:
    M, N, K = map(int, k["work"].split()[1].split("x"))
    assert k["flops"] == 2 * M * N * K and k["moved"] >= 4 * (M * N + N * K + M * K), k
# On both ranks 8 rows of two layers of (4 + 8) C C and a head of C V, C = 16 and V = 50; forward once, backward twice.
assert sum(k["flops"] for k in gemms) == 2 * 3 * 2 * 8 * (2 * 12 * 16 * 16 + 16 * 50), sum(k["flops"] for k in gemms)
waits = [e for e in spans if e["cat"] == "wait"]
assert waits and all(e["name"][len("wait for "):] in names and "work" not in e["args"] for e in waits)
END
  # A last micro-batch of fewer rows than the head's loop: of its two iterations one computes nothing. On both ranks
  # 4 x 512 rows of one layer and the head.
  # shellcheck disable=SC2086  # words
  $GPTBENCH_LAUNCH 2 "$GPTBENCH" "$decks/trace.in" output.directory=short model.num_layers=1 model.seq_length=512 \
    batch.micro_batch_size=3 batch.global_batch_size=8 parallel.zero_stage=0 >log 2>&1 || fail "short: $(cat log)"
  "$python" - <<'END' || fail "the FLOPs of a short micro-batch"
import json
kernels = [e["args"] for e in json.load(open("short/trace.json"))["traceEvents"] if "work" in e.get("args", {})]
gemms = [k for k in kernels if k["work"].startswith("linear_")]
assert all(k["flops"] > 0 for k in gemms)
assert sum(k["flops"] for k in gemms) == 2 * 3 * 2 * 4 * 512 * (12 * 16 * 16 + 16 * 50)
END
fi
# explain and the roofline take the times of operations from it.
"$GPTPOST" explain traced/result.h5 >out 2>&1 || fail "explain: status $?"
grep -q 'operations that lose most, ms per step, shares as traced' out || fail "explain: $(cat out)"
"$GPTPOST" plot --kind roofline -o drawn traced/result.h5 >out 2>&1 || fail "plot: status $?"
grep -q 'Roofline of rank 0 by operation' drawn/roofline.svg || fail "plot: $(cat out)"
[ $failures = 0 ] || exit 1
[ -n "$python" ] || { echo "skipped: no python3 to read trace.json as JSON"; exit 77; }
