#!/bin/bash
# --search, decks that it writes, run.layout = 'auto', and projections as result files beside
# measured ones.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
deck=$decks/tiny.in
searched=(../decks/tiny.in --machine a100-80 --ranks 4 model.num_layers=4 batch.global_batch_size=8)

# Text in 80 columns, and the same as JSON.
run 0 --search "${searched[@]}" --top 3 --write-decks "$decks/best"
[ "$status" -eq 0 ] || fail "status $status"
[ "$(awk 'length > 80' out | wc -l)" -eq 1 ] || fail "wider than 80 columns"  # the last line
tail -1 out | grep -Eq '^GPTBENCH search layouts=[0-9]+ fit=[0-9]+ sec_per_it=[0-9.e+-]+ mfu=[0-9.]+ memory_bytes=[0-9]+ machine=a100-80 software=gptbench$' || fail "last line"
cp out text
run 0 --search "${searched[@]}" --top 3 --format json
cp out found.json
python3 - text out <<'PY' || fail "JSON is not the text"
import json, re, sys
text, found = open(sys.argv[1]).read(), json.load(open(sys.argv[2]))
line = dict(word.split("=") for word in text.splitlines()[-1].split()[2:])
assert found["layouts"] == int(line["layouts"]) and found["fit"] == int(line["fit"])
assert found["layouts"] == found["fit"] + sum(each["count"] for each in found["left_out"])
assert "%.6g" % found["best"][0]["sec_per_it"] == line["sec_per_it"]
assert len(found["best"]) == 3 and found["projected"] is True
assert found["remarks"] and "band" in found["remarks"][0]  # software gptbench: no row was measured with it
assert all(remark in " ".join(text.split()) for remark in found["remarks"])
for each in found["left_out"]:
    assert each["reason"].split(",")[0] in text
rows = [l.split() for l in text.splitlines() if re.match(r" [123] ", l)]
assert [row[1] for row in rows] == ["%.4g" % each["sec_per_it"] for each in found["best"]]
PY
best=$(sed -n 's/.* sec_per_it=\([^ ]*\) .*/\1/p' text)

# A peak that is too low is marked wherever the utilisation of it stands.
run 0 --search "${searched[@]}" output.peak_tflops=1e-6 --top 1 --write-decks "$decks/low"
tail -1 out | grep -q ' warning=mfu_above_100_percent$' || fail "no warning of a search"
tr -d '!\n' <"$decks/low/tiny-layout1.in" | tr -s ' ' | grep -q 'WARNING: MFU above 100 %' || fail "no warning in a deck"
run 0 --project "$decks/low/tiny-layout1.in" --machine a100-80 --software gptbench --ranks 4
tail -1 out | grep -q ' warning=mfu_above_100_percent$' || fail "no warning of a projection"

# The decks: --plan takes them, and they are projected to the figures of the search.
for k in 1 2 3; do
  run 0 --plan "$decks/best/tiny-layout$k.in" --ranks 4
  [ "$status" -eq 0 ] || fail "status $status"
  run 0 --project "$decks/best/tiny-layout$k.in" --machine a100-80 --software gptbench --ranks 4 --write-result again
  "$GPTPOST" show "$work/again/result.h5" --format json >"layout$k.json"
done
case="JSON of a search and the records of its layouts"
python3 - found.json layout[123].json >differ <<'PY' || fail "$(cat differ)"
import json, math, sys
found, *records = (json.load(open(name)) for name in sys.argv[1:])
wrong = []
for layout, record in zip(found["best"], records):
    summary, band, config = record["summary"], record["projection"], record["config"]
    expected = {
        "sec_per_it": summary["sec_per_it"], "low": band["sec_per_it_low"], "high": band["sec_per_it_high"],
        "tokens_per_s": summary["tokens_per_s"], "mfu": summary["mfu"], "memory_bytes": summary["device_memory_used_bytes"],
        "micro_batch_size": config["batch"]["micro_batch_size"],
        "activation_checkpointing": config["memory"]["activation_checkpointing"],
    }
    expected |= {key: config["parallel"].get(key) for key in layout.keys() - expected.keys()}
    for key, value in layout.items():
        equal = math.isclose(value, expected[key], rel_tol=1e-9) if isinstance(value, float) else value == expected[key]
        if not equal:
            wrong.append(f"{key}: {value}, by the record {expected[key]}")
    whole = {"machine": band["machine"], "software": band["software"], "ranks": summary["world_size"],
             "global_batch_size": config["batch"]["global_batch_size"]}
    wrong += [f"{key}: {found[key]}, by the record {value}" for key, value in whole.items() if found[key] != value]
print("\n".join(wrong))
sys.exit(1 if wrong or len(records) != 3 else 0)
PY
grep -q '^! Layout 1 of 3 that gptbench --search chose' "$decks/best/tiny-layout1.in" || fail "no header"
run 0 --project "$decks/best/tiny-layout1.in" --machine a100-80 --software gptbench --ranks 4 --write-result projected
tail -1 out | grep -Fq "sec_per_it=$best " || fail "not the $best s of the search"
cp -r "$work/projected" .

# Decks of an earlier search that kept more layouts do not stay beside the new ones; others do.
cp "$deck" "$decks/best/tiny-layout4.in"
run 0 --search "${searched[@]}" --top 1 --write-decks "$decks/best"
grep -q '^1 decks in .*/best; removed 2 of an earlier search$' out || fail "$(head -1 out)"
[ "$(cd "$decks/best" && ls)" = $'tiny-layout1.in\ntiny-layout4.in' ] || fail "$(ls "$decks/best")"

# layout = 'auto' with the same profile chooses the same, and needs one.
refused 2 "machine 'local': there is no input/machines/local.in; gptbench --calibrate measures" 0 --project "$deck" --machine local --ranks 2
run 0 --project "${searched[@]}" --software gptbench run.layout=auto
tail -1 out | grep -Fq "sec_per_it=$best " || fail "not the $best s of the search"
refused 2 "run.layout = 'auto' needs a profile of this machine, and there is no input/machines/local.in" 1 "$deck" run.layout=auto
refused 2 "'auto' chooses micro_batch_size" 1 "$deck" run.layout=auto run.find_largest=micro_batch
refused 2 "none of .* layouts of 2 ranks fits" 2 "$deck" run.layout=auto run.machine=a100-80 memory.device_memory_gib=0.001
ends 0 OK 2 "$deck" run.layout=auto run.machine=a100-80 batch.global_batch_size=4
grep -q '^Layout  *tensor .* x data ' out || fail "does not say its layout"
case="record of layout = 'auto'"
"$GPTPOST" show "$work/output/tiny/result.h5" --format json >shown
python3 - shown <<'PY' || fail "the record does not state the layout"
import json, sys
record = json.load(open(sys.argv[1]))
record = record[0] if isinstance(record, list) else record
assert record["config"]["run"]["layout"] == "auto"
assert "layout=tensor " in record["provenance"]["chosen_algorithms"]
p = record["config"]["parallel"]
assert p["data_parallel"] * p["tensor_parallel"] * p["pipeline_parallel"] * p["context_parallel"] == 2
PY

# The device of a projection is that of the profile.
"$GPTPOST" show projected/result.h5 --format json | grep -Eq '"device_memory_bytes": *8[0-9]{10}[,.]' || fail "not the memory of the device"

case="band of a projection"
"$GPTPOST" show projected/result.h5 --format json >shown
python3 - shown <<'PY' || fail "rates are not those of the times"
import json, sys
record = json.load(open(sys.argv[1]))
summary, band = record["summary"], record["projection"]
low, step, high = band["sec_per_it_low"], summary["sec_per_it"], band["sec_per_it_high"]
assert low < step < high
for rate in ("tokens_per_s", "mfu"):
    assert abs(band[rate + "_low"] * high - summary[rate] * step) < 1e-9 * summary[rate] * step, rate
    assert abs(band[rate + "_high"] * low - summary[rate] * step) < 1e-9 * summary[rate] * step, rate
PY

# Projected and measured side by side.
case="tables of projections"
for style in native mpt scaling fugaku zero; do
  "$GPTPOST" table --style $style --format csv projected/result.h5 "$work/output/tiny/result.h5" >table.csv 2>err || fail "$style"
  grep -q projected table.csv || fail "$style does not say what is projected"
done
"$GPTPOST" table --style native --format csv projected/result.h5 >table.csv
grep -q PROJECTED table.csv || fail "no verdict PROJECTED"
grep -q '"name":"projected rank 0 ' projected/trace.json || fail "the trace does not say that it is projected"
python3 -c 'import json; json.load(open("projected/trace.json"))' || fail "not a trace"

case="JSON of a projection and its record"
run 0 --project "$deck" --machine h100 --software gptbench --ranks 16 parallel.offload=optimizer parallel.zero_stage=2 \
  batch.global_batch_size=16 --tokens 1e9 --format json --write-result twice
"$GPTPOST" show "$work/twice/result.h5" --format json >shown
python3 - out shown "$GPTBENCH_SOURCE_DIR/input/machines/h100.in" >differ <<'PY' || fail "$(cat differ)"
import json, math, re, sys
found, record = (json.load(open(name)) for name in sys.argv[1:3])
profile = {key: float(value) for key, value in re.findall(r"^  (\w+) = ([0-9.e+]+)", open(sys.argv[3]).read(), re.M)}
summary, timing, memory, comm = (record[group] for group in ("summary", "timing", "memory", "comm"))
band, parallel, batch = record["projection"], record["config"]["parallel"], record["config"]["batch"]
ranks, nodes, step_s = summary["world_size"], summary["nodes"], summary["sec_per_it"]
# Seconds of the rank: regions, then what they wait for; parts of no length are left out.
parts = {name[len("region_"):-len("_s")]: series[0][0] for name, series in timing.items() if name.startswith("region_")}
waits_s, bubble_s, slowest_s = (timing[name][0][0] for name in ("communication_s", "bubble_s", "straggler_s"))
parts["exposed messages"] = waits_s - bubble_s - slowest_s
parts |= {"pipeline bubble": bubble_s, "slowest rank": slowest_s}
parts["overhead"] = step_s - sum(parts.values())
kinds = [name[:-len("_bytes")].split("_", 1) for name in comm if name.endswith("_bytes")]
messages = {(axis, op): {key: comm[f"{axis}_{op}_{key}"][0] for key in ("count", "bytes")} for axis, op in kinds}
# A ring over all ranks, 8 to a node, leaves each node once; a rank sends n - 1 of n parts, twice in an all-reduce.
sent = {}
for (axis, op), message in messages.items():
    times = 2 if op == "all_reduce" else 1
    sent[axis] = sent.get(axis, 0) + times * (ranks - 1) / ranks * message["bytes"]
traffic = {axis: {"within_bytes": (ranks - nodes) * each, "between_bytes": nodes * each} for axis, each in sent.items()}
hours = 1e9 / summary["tokens_per_s"] / 3600
expected = {
    "projected": record["verdict"] == "PROJECTED", "machine": band["machine"], "software": band["software"], "ranks": ranks,
    "nodes": nodes, "global_batch_size": batch["global_batch_size"], "micro_batch_size": batch["micro_batch_size"],
    "grid": {**{axis: parallel[axis + "_parallel"] for axis in ("tensor", "context", "pipeline", "data")}, "zero_stage": 2},
    "sec_per_it": step_s, "low": band["sec_per_it_low"], "high": band["sec_per_it_high"],
    "parts_s": {name: time_s for name, time_s in parts.items() if time_s > 1e-12},
    "tokens_per_s": summary["tokens_per_s"], "mfu": summary["mfu"], "hfu": summary["hfu"],
    "flops_convention": summary["flops_convention"], "peak_flops": 1e12 * summary["peak_tflops"],
    "peak_note": summary["peak_note"], "mfu_warning": "", "memory_bytes": summary["device_memory_used_bytes"],
    "reserve_bytes": profile["reserve_gib"] * 2**30, "limit_bytes": summary["device_memory_bytes"],
    "host_bytes": memory["host_bytes"][0], "host_limit_bytes": profile["host_memory_gib"] / profile["ranks_per_node"] * 2**30, "fits": True,
    "messages": messages, "traffic": traffic,
    "budget": {"tokens": 1e9, "hours": hours, "node_hours": hours * nodes, "mwh": hours * nodes * profile["node_kw"] / 1e3},
}
given = dict(found)
assert any("spread = 0.15 is assumed" in remark for remark in given.pop("remarks"))
offload = given.pop("offload")  # the device updates: the host waits
assert offload["load_bytes"] == offload["store_bytes"] > 0 and offload["host_s"] == 0, offload
given["messages"] = {(each.pop("axis"), each.pop("op")): each for each in given["messages"]}
given["traffic"] = {each.pop("axis"): each for each in given["traffic"]}

def differences(a, b, where):
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return [each for key in a for each in differences(a[key], b[key], f"{where} {key}")]
    numbers = isinstance(a, (int, float)) and isinstance(b, (int, float))
    equal = math.isclose(a, b, rel_tol=1e-9) if numbers else a == b
    return [] if equal else [f"{where}: {a}, by the record {b}"]

wrong = differences(given, expected, "projection")
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
PY

# A deck that asks for its largest batch: a projection takes the largest that fits, one more does not;
# layouts of a search have batches of their own.
batch_of() { sed -n 's/^Batch  *[0-9,]* sequences per step, \([0-9]*\) per micro-batch$/\1/p' out; }
largest=("$deck" --machine a100-80 --software gptbench --ranks 2)
run 0 --project "${largest[@]}" run.find_largest=global_batch memory.device_memory_gib=2.05
batch=$(batch_of)
tail -1 out | grep -q ' fits=yes ' || fail "the largest batch does not fit"
tr -s ' \n' ' ' <out | grep -q 'the largest batch that fits in the projected memory (run.find_largest)' || fail "no remark"
for more in 0 1; do
  run 0 --project "${largest[@]}" memory.device_memory_gib=2.05 batch.micro_batch_size=$((batch + more))
  tail -1 out | grep -q " fits=$([ "$more" -eq 0 ] && echo yes || echo no) " || fail "$batch is not the largest"
done
run 0 --project "${largest[@]}" run.find_largest=global_batch memory.device_memory_gib=2.00001
tail -1 out | grep -q ' fits=no ' || fail "fits"
tr -s ' \n' ' ' <out | grep -q 'the smallest batch of run.find_largest, which does not fit' || fail "no remark"
run 0 --search "${searched[@]}" run.find_largest=micro_batch --top 1 --write-decks "$decks/largest"
grep -q "^  find_largest = 'none'" "$decks/largest/tiny-layout1.in" || fail "$(cat "$decks/largest/tiny-layout1.in")"

# SIGINT ends a search of millions of layouts with the best so far, and the status of a run that a signal
# stopped. It is sent when the program has begun (behind fork it is still the shell) and has a handler, bit 1
# of SigCgt. Decks of an earlier search, which was not cut, stay.
case="SIGINT"
mkdir "$decks/earlier"
for place in {1..11}; do
  echo "! Layout $place of 11 that gptbench --search chose for large.in" >"$decks/earlier/large-layout$place.in"
done
printf "&run name = 'large' /\n&model preset = 'gpt-175b' /\n&batch global_batch_size = 1536 /\n" >"$decks/large.in"
"$GPTBENCH" --search "$decks/large.in" --machine a100-80 --ranks 1024 --write-decks "$decks/earlier" >out 2>err &
pid=$!
until [ "$(cat "/proc/$pid/comm")" = gptbench ] &&
  [ $((16#0$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$pid/status") & 2)) -ne 0 ]; do
  kill -0 "$pid" || break
  sleep 0.05
done
kill -INT "$pid"
status=0
wait "$pid" || status=$?
[ "$status" -eq 8 ] || fail "status $status"
tr -s ' \n' ' ' <out | grep -Eq 'cut after [0-9,]+ of [0-9,]+ layouts: what follows is the best so far' || fail "no remark"
tail -1 out | grep -q '^GPTBENCH search layouts=' || fail "last line"
[ -e "$decks/earlier/large-layout11.in" ] || fail "the decks of an earlier search were removed"

# --search and others say what they require.
refused 2 '--search requires --machine M and --ranks N' 0 --search "$deck" --machine h100
refused 2 '--top requires --search' 0 --plan "$deck" --top 3
refused 2 '--write-result requires --project' 0 --search "${searched[@]}" --write-result x
refused 2 '4 ranks cannot hold replicas of tensor x pipeline x context = 3 x 1 x 1' 0 --search "${searched[@]}" parallel.tensor_parallel=3

# A key may stand alone that goes with others which the search decides; what no layout changes is refused.
{ cat "$deck"; echo '&parallel pipeline_parallel = 2 /'; } >"$decks/staged.in"
staged=("$decks/staged.in" --ranks 4 model.num_layers=4 batch.global_batch_size=8)
for key in parallel.pipeline_schedule=interleaved parallel.virtual_stages=2 parallel.sequence_parallel=true \
  memory.partition_checkpoints=true batch.micro_batch_size=8; do
  name=${key#*.}
  refused 2 "${name%=*}" 0 --plan "${staged[@]}" $key
  run 0 --search "${staged[@]}" --machine a100-80 $key
  tail -1 out | grep -Eq 'fit=[1-9]' || fail "$key: $(tail -1 out)"
  run 0 --project "${staged[@]}" --machine a100-80 --software gptbench run.layout=auto $key
  [ "$status" -eq 0 ] || fail "$key: status $status"
done
refused 2 'num_attention_heads' 0 --search "${searched[@]}" model.num_attention_heads=3

[ "$failures" -eq 0 ] || exit 1
