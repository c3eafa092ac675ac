"""result_test.py RESULT.json WALL_S DIRECTORY PLAN.json EXPLAINED.json: relations that hold between the figures of
any run's result (`gptpost show --format json`), worked out anew, those of its plan (`gptbench --plan --format json`)
and those of its account (`gptpost explain --format json`); prints those that do not, and fails."""

import calendar
import json
import math
import os
import statistics
import sys
import time

with open(sys.argv[1]) as file:
    result = json.load(file)
wall_s, directory = float(sys.argv[2]), sys.argv[3]
with open(sys.argv[4]) as file:
    plan = json.load(file)
with open(sys.argv[5]) as file:
    account = json.load(file)
summary, steps, timing, memory = (result[key] for key in ("summary", "steps", "timing", "memory"))
config, comm, provenance = result["config"], result["comm"], result["provenance"]
ranks, wrong = summary["world_size"], []


def check(holds, what, *values):
    if not holds:
        wrong.append(f"{what}: {values}")


def same(a, b, what):
    check(math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-300), what, a, b)


# Steps
warm_up, count = steps["warmup_steps"], len(steps["loss"])
skipped = steps.get("skipped") or [0] * count
timed = [i for i in range(warm_up, count) if not skipped[i]]
for key in ("grad_norm", "time_s", "tokens"):
    check(len(steps[key]) == count, f"steps/{key} of each step", len(steps[key]), count)
times = [steps["time_s"][i] for i in timed]
check(summary["timed_steps"] == len(timed), "timed_steps", summary["timed_steps"], timed)
check(summary["skipped_steps"] == sum(map(bool, skipped)), "skipped_steps", summary["skipped_steps"], skipped)
same(summary["sec_per_it"], statistics.median(times), "sec_per_it")
same(summary["sec_per_it_min"], min(times), "sec_per_it_min")
same(summary["sec_per_it_max"], max(times), "sec_per_it_max")
tokens = config["batch"]["global_batch_size"] * config["model"]["seq_length"]
check(set(steps["tokens"]) == {tokens} == {summary["tokens_per_step"]}, "tokens of a step", steps["tokens"], tokens)
same(summary["tokens_per_s"], tokens / summary["sec_per_it"], "tokens_per_s")
same(summary["samples_per_s"], config["batch"]["global_batch_size"] / summary["sec_per_it"], "samples_per_s")
same(summary["final_loss"], steps["loss"][-1], "final_loss")
check(all(0 < t < wall_s for t in steps["time_s"]), "times of steps within the run's", wall_s)

# FLOPs
convention = summary["flops_convention"]
flops = summary[f"flops_per_step_{convention}"]
rate = "hardware" if convention == "megatron" else "model"  # that convention counts recomputation
same(summary[f"{rate}_tflops_per_device"], flops / summary["sec_per_it"] / ranks / 1e12, f"{rate}_tflops_per_device")
same(summary["fom_tflops"], summary["flops_per_step_causal"] / summary["sec_per_it"] / 1e12, "fom_tflops")
check(summary["hardware_tflops_per_device"] >= summary["model_tflops_per_device"], "hardware FLOPs")
if summary["mfu"] > 0:
    same(summary["mfu"], summary["model_tflops_per_device"] / summary["peak_tflops"], "mfu")
    same(summary["hfu"], summary["hardware_tflops_per_device"] / summary["peak_tflops"], "hfu")
else:
    check(summary["hfu"] == 0 and summary["peak_note"], "MFU is left out with a reason", summary["peak_note"])
if config["memory"]["activation_checkpointing"] == "none":
    same(summary["hfu"], summary["mfu"], "hfu without recomputation")
parameters = summary["num_params"]
check(6 * parameters * tokens * 0.4 < flops < 6 * parameters * tokens * 2.5, "FLOPs of a step against 6 N", flops)

# Evaluations
held_out = list(zip(steps.get("held_out_step", []), steps.get("held_out_loss", [])))
every, target = config["convergence"]["evaluate_every"], config["convergence"]["target_loss"]
if every > 0:
    wanted = [s for s in range(1, count + 1) if s % every == 0 or s == count]
    check([s for s, _ in held_out] == wanted, "steps of evaluations", held_out, wanted)
    check(0 < summary["evaluation_s"] < wall_s, "evaluation_s", summary["evaluation_s"], wall_s)
    same(summary["held_out_loss"], held_out[-1][1], "held_out_loss")
    check(0 < summary["token_entropy"] < math.log(config["model"]["vocab_size"]), "token_entropy")
else:
    check(not held_out and summary["evaluation_s"] == 0, "evaluations that were not asked for", held_out)
reached = next((s for s, loss in held_out if target > 0 and loss <= target), 0)
check(summary["steps_to_target"] == reached, "steps_to_target", summary["steps_to_target"], reached)
check(summary["tokens_to_target"] == reached * tokens, "tokens_to_target", summary["tokens_to_target"], reached)
same(summary["time_to_target_s"], sum(steps["time_s"][:reached]), "time_to_target_s")

# Times of ranks
for name, series in timing.items():
    check(len(series) == count and all(len(row) == ranks for row in series), f"{name} of each step and rank")
    check(all(0 <= value <= wall_s for row in series for value in row), f"{name} within the run's time")
for i, row in enumerate(timing["step_s"]):
    same(max(row), steps["time_s"][i], f"step {i + 1} is its slowest rank's")
    for parts in ([k for k in timing if k.startswith("region_")] + ["communication_s"],
                  ["forward_s", "backward_s", "optimizer_s"]):
        for rank in range(ranks):
            spent = sum(timing[k][i][rank] for k in parts if k in timing)
            check(0 < spent <= row[rank] * (1 + 1e-9), f"parts of step {i + 1}, rank {rank}", parts, spent, row[rank])

# Messages: of the timed steps, skipped ones among them
counted = count - warm_up
for name in [k[:-len("_bytes")] for k in comm if k.endswith("_bytes")]:
    for rank in range(ranks):
        numbers = {k: comm[f"{name}_{k}"][rank] for k in ("bytes", "count", "least_s", "time_s", "exposed_s")}
        check(numbers["count"] % counted == 0 and numbers["bytes"] % counted == 0, f"{name} of each step", numbers)
        check(0 <= numbers["least_s"] <= numbers["time_s"] <= wall_s, f"{name} in flight", numbers)
        check(0 <= numbers["exposed_s"] <= sum(steps["time_s"][warm_up:]), f"{name} exposed", numbers)
check((ranks > 1) == any(k.endswith("_bytes") and sum(v) > 0 for k, v in comm.items()), "messages", comm)

# Memory: each class reaches as far as its buffers on rank 0
classes = {}
for buffer in memory["arena"]:
    classes[buffer["class"]] = max(classes.get(buffer["class"], 0), buffer["offset"] + buffer["bytes"])
    check(buffer["bytes"] > 0 and buffer["offset"] >= 0 and buffer["lifetime"], "buffer", buffer)
for name, extent in classes.items():
    check(memory[f"{name}_bytes"][0] == extent, f"{name} of rank 0", memory[f"{name}_bytes"], extent)
names = ("parameters", "gradients", "optimizer_state", "activations", "communication", "workspace", "host")
for rank in range(ranks):
    check(memory["arena_bytes"][rank] == sum(memory[f"{name}_bytes"][rank] for name in names), "arena", rank)
check(summary["peak_memory_bytes"] == max(memory["peak_bytes"]), "peak_memory_bytes", memory["peak_bytes"])
check(0 < summary["device_memory_used_bytes"] <= summary["device_memory_bytes"], "memory of the device")
check(0 < summary["node_memory_used_bytes"] <= summary["node_memory_bytes"], "memory of the node")

# The plan, printed without a run
check((plan["params"], plan["ranks"]) == (summary["num_params"], ranks), "plan: params, ranks", plan["params"], plan["ranks"])
check(plan["tokens_per_step"] == tokens, "plan: tokens_per_step", plan["tokens_per_step"], tokens)
parallel = config["parallel"]
wanted = {axis: parallel[f"{axis}_parallel"] for axis in ("tensor", "context", "pipeline", "data")}
wanted["zero_stage"] = parallel["zero_stage"]
check(plan["grid"] == wanted, "plan: grid", plan["grid"], wanted)
check(len(plan["model"]) == 7, "plan: model", plan["model"])
for key, value in plan["model"].items():
    check(value == config["model"][key], f"plan: model.{key}", value, config["model"][key])
for key in ("global_batch_size", "micro_batch_size"):
    check(plan[key] == config["batch"][key], f"plan: {key}", plan[key], config["batch"][key])
planned = {f"flops_per_step_{name}": value for name, value in plan["flops_per_step"].items()}
recorded = {name: value for name, value in summary.items() if name.startswith("flops_per_step_")}
check(planned == recorded, "plan: FLOPs", planned, recorded)
# Stages hold the work of one rank each; here all ranks of a stage do as much.
for key, whole in (("model_flops", "exact"), ("recompute_flops", "exact_recomputed")):
    of_stages = sum(stage[key] for stage in plan["stages"]) * ranks / len(plan["stages"])
    same(of_stages, summary[f"flops_per_step_{whole}"], f"plan: {key} of stages")
check(len(plan["stages"]) == config["parallel"]["pipeline_parallel"], "plan: stages", plan["stages"])
for stage in plan["stages"]:
    for name, bytes_of_class in stage["memory"].items():
        measured = memory.get("arena_bytes" if name == "total_bytes" else name, [0] * ranks)[stage["rank"]]  # absent: none
        check(bytes_of_class == measured, f"plan: {name} of rank {stage['rank']}", bytes_of_class, measured)
# The largest rank of the plan is that of the run: all replicas are alike here.
arena = max(of_rank - host for of_rank, host in zip(memory["arena_bytes"], memory["host_bytes"]))
check(plan["memory_bytes"] == arena, "plan: memory_bytes", plan["memory_bytes"], arena)
limit = config["memory"]["device_memory_gib"] * 2**30
check(plan["limit_bytes"] == limit, "plan: limit_bytes", plan["limit_bytes"], limit)
check(plan["fits"] == (plan["limit_bytes"] == 0 or arena <= plan["limit_bytes"]), "plan: fits", plan["limit_bytes"])
for message in plan["messages"]:  # of rank 0
    for key in ("count", "bytes"):
        seen = comm[f"{message['axis']}_{message['op']}_{key}"][0]
        check(message[key] * counted == seen, f"plan: {message['axis']} {message['op']} {key}", message[key], counted, seen)
for key, name in (("loads", "load_bytes"), ("stores", "store_bytes")):  # of rank 0
    bytes_of_run = result["offload"].get(name, [0])[0]
    check(plan[key]["bytes"] * count == bytes_of_run, f"plan: {key}", plan[key], count, bytes_of_run)
    check((plan[key]["count"] > 0) == (plan[key]["bytes"] > 0), f"plan: number of {key}", plan[key])

# The account of a step: means over ranks and over that half of the timed steps that is nearest to their median
nearest = sorted(timed, key=lambda i: abs(steps["time_s"][i] - statistics.median(times)))
usual = nearest[: (len(timed) + 1) // 2]


def mean_of(series):
    return statistics.mean(statistics.mean(series[i][rank] for i in usual) for rank in range(ranks))


communication_s = mean_of(timing["communication_s"]) if "communication_s" in timing else 0
regions = {k[len("region_"):-len("_s")]: mean_of(v) for k, v in timing.items() if k.startswith("region_")}
explained = {part["name"]: part["time_s"] for part in account["regions"]}
check(explained.keys() == {name for name, time_s in regions.items() if time_s > 0} != set(), "explain: regions", explained)
for name, time_s in explained.items():
    same(time_s, regions[name], f"explain: {name}")
    shares = [each["time_s"] for each in account["operations"] if each["region"] == name]
    check(math.isclose(sum(shares), time_s, rel_tol=1e-9) or not any(shares), f"explain: operations of {name}", shares, time_s)
same(account["step_s"], mean_of(timing["step_s"]), "explain: step_s")
same(account["communication_s"], communication_s, "explain: communication_s")
unexplained = abs(account["step_s"] - communication_s - sum(regions.values()))
check(math.isclose(account["unexplained_s"], unexplained, rel_tol=1e-9, abs_tol=1e-12), "explain: unexplained_s", unexplained)
same(account["explained"], 1 - account["unexplained_s"] / account["step_s"], "explain: explained")
kinds = {(k[: k.index("_")], k[k.index("_") + 1 : -len("_bytes")]) for k in comm if k.endswith("_bytes")}
check({(m["axis"], m["op"]) for m in account["messages"]} == kinds, "explain: messages", account["messages"], kinds)
for message in account["messages"]:
    for key in ("bytes", "time_s", "exposed_s"):
        of_file = statistics.mean(comm[f"{message['axis']}_{message['op']}_{key}"]) / counted
        same(message[key], of_file, f"explain: {message['axis']} {message['op']} {key}")

# Checkpoints
if config["checkpoint"]["directory"]:
    waited, folder = steps["checkpoint_s"], os.path.join(directory, config["checkpoint"]["directory"])
    saved = [i for i in range(count) if (i + 1) % config["checkpoint"]["every_steps"] == 0]
    check(all(waited[i] > 0 for i in saved), "training waits for each checkpoint", waited, saved)
    check(all(0 <= w < wall_s for w in waited), "waiting within the run's time", waited)
    check(0 < summary["checkpoint_write_s"] < wall_s, "checkpoint_write_s", summary["checkpoint_write_s"])
    kept = sorted(name for name in os.listdir(folder) if name.endswith(".h5"))
    check(len(kept) == min(config["checkpoint"]["keep"], len(saved)), "checkpoints that are kept", kept)
    size = os.path.getsize(os.path.join(folder, kept[-1]))
    check(summary["checkpoint_bytes"] == size, "checkpoint_bytes", summary["checkpoint_bytes"], size)

# Verification and provenance
for name, entry in result["verify"].items():
    if isinstance(entry, dict):
        check(entry["passed"] == (entry["value"] <= entry["threshold"]), f"verify/{name}", entry)
passed = all(entry["passed"] for entry in result["verify"].values() if isinstance(entry, dict))
check((result["verdict"] == "VALID") == (passed and result["status"] == "OK"), "verdict", result["verdict"])
check(summary["nodes"] * summary["ranks_per_node"] == ranks == len(provenance["hostnames"]), "nodes and ranks")
product = math.prod(parallel[k] for k in ("data_parallel", "tensor_parallel", "pipeline_parallel", "context_parallel"))
check(product == ranks, "the grid covers the ranks", product, ranks)
written = calendar.timegm(time.strptime(result["date_utc"], "%Y-%m-%dT%H:%M:%SZ"))
check(abs(time.time() - written) < wall_s + 60, "date_utc", result["date_utc"])
with open(os.path.join(directory, provenance["deck_name"])) as file:
    check(provenance["deck_raw"] == file.read(), "deck_raw is the deck")
sensors = result["sensors"]
for key in ("power_w", "temperature_c", "utilisation", "clock_ghz"):
    for value in sensors.get(key, []):
        check(value is None or 0 < value < (1.0 + 1e-9 if key == "utilisation" else 1e5), f"sensors/{key}", value)

for line in wrong:
    print(line)
sys.exit(1 if wrong else 0)
