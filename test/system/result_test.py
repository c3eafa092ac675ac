"""result_test.py RESULT.json WALL_S DIRECTORY PLAN.json APART.json EXPLAINED.json TRACE.json PROFILED.json PROFILE INPUT:
relations that hold between the figures of any run's result (`gptpost show --format json`), worked out anew, those of its
plan (`gptbench --plan --format json`, and with --ranks-per-node 1), those of its account (`gptpost explain --format json`,
and with --profile PROFILE, of an H100, whose data sheet is in the folder INPUT) and the operations of a step in its trace;
prints those that do not, and fails."""

import calendar
import collections
import json
import math
import os
import re
import statistics
import sys
import time

with open(sys.argv[1]) as file:
    result = json.load(file)
wall_s, directory = float(sys.argv[2]), sys.argv[3]
with open(sys.argv[4]) as file:
    plan = json.load(file)
with open(sys.argv[5]) as file:
    apart = json.load(file)
with open(sys.argv[6]) as file:
    account = json.load(file)
with open(sys.argv[7]) as file:
    events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
with open(sys.argv[8]) as file:
    profiled = json.load(file)
summary, steps, timing, memory = (result[key] for key in ("summary", "steps", "timing", "memory"))
config, comm, provenance = result["config"], result["comm"], result["provenance"]
ranks, wrong = summary["world_size"], []


def check(holds, what, *values):
    if not holds:
        wrong.append(f"{what}: {values}")


def near(a, b, what):
    """The same but for sums and differences in another order."""
    check(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12), what, a, b)


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
    issued = sum(event["pid"] == 0 and event["name"] == f"issue {key[:-1]}" for event in events)
    check(plan[key]["count"] == issued, f"plan: number of {key}", plan[key], issued)
# Collectives are counted as rings: of S bytes each of n ranks sends S (n - 1) / n, twice in an all-reduce.
sent = collections.Counter()
for name in [k[: -len("_bytes")] for k in comm if k.endswith("_bytes")]:
    axis, op = name.split("_", 1)
    share = {"send": ranks, "receive": 0, "all_reduce": 2 * (ranks - 1)}.get(op, ranks - 1) / ranks
    sent[axis] += share * sum(comm[f"{name}_bytes"]) / counted
changed = {key for key in plan.keys() | apart.keys() if plan.get(key) != apart.get(key)}
check(changed <= {"traffic"}, "plan: ranks per node change more than traffic", changed)
for where, of_plan, within in (("one node", plan, 1), ("a node per rank", apart, 0)):
    traffic = {row["axis"]: row for row in of_plan.get("traffic", [])}
    axes = {axis for axis, total in sent.items() if total > 0}
    check(traffic.keys() == axes, f"plan: axes of traffic, {where}", traffic, axes)
    for axis, row in traffic.items():
        same(row["within_bytes"], within * sent[axis], f"plan: bytes of {axis} within nodes, {where}")
        same(row["between_bytes"], (1 - within) * sent[axis], f"plan: bytes of {axis} between nodes, {where}")

# The account of a step: means over ranks and over that half of the timed steps that is nearest to their median
nearest = sorted(timed, key=lambda i: abs(steps["time_s"][i] - statistics.median(times)))
usual = nearest[: (len(timed) + 1) // 2]


def mean_of(series):
    return statistics.mean(statistics.mean(series[i][rank] for i in usual) for rank in range(ranks))


def lower_median(values):
    return sorted(values)[(len(values) - 1) // 2]


communication_s = mean_of(timing["communication_s"]) if "communication_s" in timing else 0
regions = {k[len("region_"):-len("_s")]: mean_of(v) for k, v in timing.items() if k.startswith("region_")}
explained = {part["name"]: part["time_s"] for part in account["regions"]}
check(explained.keys() == {name for name, time_s in regions.items() if time_s > 0} != set(), "explain: regions", explained)
for name, time_s in explained.items():
    same(time_s, regions[name], f"explain: {name}")
    shares = [each["time_s"] for each in account["operations"] if each["region"] == name]
    check(math.isclose(sum(shares), time_s, rel_tol=1e-9) or not any(shares), f"explain: operations of {name}", shares, time_s)
# Without a profile all limits are by FLOPs, at the ceiling of the run.
rate = 1e12 * (summary["gemm_ceiling_tflops"] or summary["peak_tflops"])
for key in ("flops_per_s", "fp8_flops_per_s"):
    same(account["ceilings"][key], rate, f"explain: {key}")
for key in ("bytes_per_s", "host_bytes_per_s", "copy_bytes_per_s", "launch_s"):
    check(account["ceilings"][key] == 0, f"explain: {key}", account["ceilings"])
for part in account["regions"] + account["operations"]:
    what = f"explain: {part['name']}"
    same(part["limit_s"], part["flops"] / rate if rate > 0 else 0, f"{what}, limit_s")
    check(part["limit_by"] == ("FLOPs" if part["limit_s"] > 0 else ""), f"{what}, limit_by", part)
    check(part["launch_s"] == part["shape_s"] == 0, f"{what} without a profile", part)
    rest_s = part["time_s"] - part["limit_s"]
    check(math.isclose(part["rest_s"], rest_s, abs_tol=1e-9 * part["time_s"]), f"{what}, rest_s", part, rest_s)
check(account["traced"], "explain: traced")
# Calls, by the plan of the first rank of each stage; names have sizes behind them.
counted_ranks = range(parallel["pipeline_parallel"])
calls = collections.Counter()
for part in account["operations"]:
    calls[part["name"].split()[0]] += part["calls"]
for name, of_plan in calls.items():
    in_trace = f"issue {name}" if name in ("load", "store") else name
    seen = sum(event["name"] == in_trace and event["pid"] in counted_ranks for event in events) / len(counted_ranks)
    check(of_plan == seen, f"explain: calls of {name}", of_plan, seen)
for part in account["regions"]:
    for key in ("calls", "flops", "bytes"):
        total = sum(each[key] for each in account["operations"] if each["region"] == part["name"])
        same(part[key], total, f"explain: {key} of {part['name']}")
# Attention multiplies 12 L C times per token and key that the token sees, a third of it in a forward pass; a causal mask
# hides half of the keys, padding those of its lengths, which are 5 to T where a sequence is short.
model, T = config["model"], config["model"]["seq_length"]
is_bert = model["family"] == "bert"
seen_keys = T - config["data"]["short_seq_prob"] * (T - (5 + T) / 2) if is_bert else T / 2
repeats = config["memory"]["activation_checkpointing"] == "full"
attention = 12 * model["num_layers"] * model["hidden_size"] * tokens * seen_keys * (4 / 3 if repeats else 1)
flops_of_regions = {part["name"]: ranks * part["flops"] for part in account["regions"]}
same(flops_of_regions["attention"], attention, "explain: FLOPs of attention")
if not is_bert:  # whose small heads the convention does not count
    # What is recomputed counts all of attention's matrix.
    masked = attention / 4 if repeats else 0
    done = summary["flops_per_step_causal"] + summary["flops_per_step_exact_recomputed"] - masked
    same(sum(flops_of_regions.values()), done, "explain: FLOPs of a step")
computing = [
    [sum(timing[f"region_{name}_s"][i][rank] for name in regions) for i in range(count)] for rank in range(ranks)
]
of_ranks = [statistics.mean(own[i] for i in usual) for own in computing]
imbalance_s = min(communication_s, max(of_ranks) - statistics.mean(of_ranks))
near(account["imbalance_s"], imbalance_s, "explain: imbalance_s")
exposed = collections.Counter()
for name in [k[: -len("_exposed_s")] for k in comm if k.endswith("_exposed_s")]:
    exposed[name.split("_")[0]] += sum(comm[f"{name}_exposed_s"])
waits_s = sum(exposed.values())
bubble_s = communication_s * exposed["pipeline"] / waits_s if waits_s > 0 else 0
bubble_s = min(bubble_s, communication_s - imbalance_s)
near(account["bubble_s"], bubble_s, "explain: bubble_s")
# A rank is slow beside those with equal work: more than 1.1 times their median, in 2/3 of its steps or in the fastest
# tenth of them.
groups = [[rank] for rank in range(ranks)] if parallel["pipeline_parallel"] > 1 else [list(range(ranks))]
check(account["names_ranks"] == any(len(group) > 1 for group in groups), "explain: names_ranks", account["names_ranks"], groups)
slow_ranks = []
for group in groups:
    own = {rank: [computing[rank][i] for i in timed] for rank in group}
    middle = [lower_median(of_step) for of_step in zip(*own.values())]
    fastest = {rank: statistics.mean(sorted(times)[: max(1, math.ceil(len(times) / 10))]) for rank, times in own.items()}
    usual_fastest = lower_median(fastest.values())
    for rank in group:
        slow_steps = sum(time_s > 1.1 * median_s for time_s, median_s in zip(own[rank], middle))
        if slow_steps >= 2 / 3 * len(timed) or fastest[rank] > 1.1 * usual_fastest:
            slow_ranks.append({
                "rank": rank, "host": provenance["hostnames"][rank], "computing_s": statistics.median(own[rank]),
                "median_s": statistics.median(middle), "slow_steps": slow_steps, "steps": len(timed),
                "fastest_ratio": fastest[rank] / usual_fastest,
            })
told = account["slow_ranks"]
check([slow.keys() for slow in told] == [slow.keys() for slow in slow_ranks], "explain: slow_ranks", told, slow_ranks)
for each, slow in zip(told, slow_ranks):
    for key, value in slow.items():
        if isinstance(value, float):
            near(each[key], value, f"explain: {key} of a slow rank")
        else:
            check(each[key] == value, f"explain: {key} of a slow rank", each[key], value)


def check_covered(of_account):
    known_s = [part["limit_s"] + part["launch_s"] + part["shape_s"] for part in of_account["regions"]]
    covered_s = communication_s + sum(min(part["time_s"], s) for part, s in zip(of_account["regions"], known_s))
    same(of_account["covered"], covered_s / of_account["step_s"], "explain: covered")


check_covered(account)
same(account["step_s"], mean_of(timing["step_s"]), "explain: step_s")
same(account["communication_s"], communication_s, "explain: communication_s")
unexplained = abs(account["step_s"] - communication_s - sum(regions.values()))
near(account["unexplained_s"], unexplained, "explain: unexplained_s")
same(account["explained"], 1 - account["unexplained_s"] / account["step_s"], "explain: explained")
kinds = {(k[: k.index("_")], k[k.index("_") + 1 : -len("_bytes")]) for k in comm if k.endswith("_bytes")}
check({(m["axis"], m["op"]) for m in account["messages"]} == kinds, "explain: messages", account["messages"], kinds)
for message in account["messages"]:
    for key in ("bytes", "time_s", "exposed_s"):
        of_file = statistics.mean(comm[f"{message['axis']}_{message['op']}_{key}"]) / counted
        same(message[key], of_file, f"explain: {message['axis']} {message['op']} {key}")
    factor = {"send": 1, "receive": 1, "all_reduce": 2 * (ranks - 1) / ranks}.get(message["op"], (ranks - 1) / ranks)
    bus_bytes_per_s = factor * message["bytes"] / message["time_s"] if message["time_s"] > 0 else 0
    same(message["bus_bytes_per_s"], bus_bytes_per_s, f"explain: bus rate of {message['op']}")
    check(message["limit_s"] == 0, "explain: limit of a message without a profile", message)

# The account at the rates of a profile. Times are those of the account without one.
def namelists(path):
    """Numbers by group and key."""
    with open(path) as file:
        groups = re.findall(r"^&(\w+)$(.*?)^/$", file.read(), re.MULTILINE | re.DOTALL)
    numbers = re.compile(r"^ *(\w+) = ([\d.]+)", re.MULTILINE)
    return {group: {key: float(value) for key, value in numbers.findall(body)} for group, body in groups}


profile, folder = sys.argv[9:11]
machine, software = namelists(profile)["machine"], namelists(f"{folder}/software/gptbench.in")["software"]
sheet = namelists(f"{folder}/devices.in")["h100_80gb"]
compute, launch_s = config["precision"]["compute"], 1e-6 * machine["launch_us"]
flops_per_s = 1e12 * sheet[compute + "_tflops"] * machine["gemm_efficiency"]
bytes_per_s = 1e9 * sheet["bandwidth_gb_per_s"] * machine["memory_efficiency"]
rates = {
    "source": f"profile {profile}", "flops_per_s": flops_per_s, "fp8_flops_per_s": 0, "bytes_per_s": bytes_per_s,
    "host_bytes_per_s": 1e9 * machine["host_gb_per_s"], "copy_bytes_per_s": 1e9 * sheet["host_link_gb_per_s"] / 2,
    "launch_s": launch_s,
}
check(profiled["ceilings"].keys() == rates.keys(), "profile: ceilings", profiled["ceilings"], rates)
for key, value in rates.items():
    if isinstance(value, str):
        check(profiled["ceilings"][key] == value, f"profile: {key}", profiled["ceilings"], value)
    else:
        same(profiled["ceilings"][key], value, f"profile: {key}")


def works(of_account):
    return sorted([part[key] for key in ("region", "name", "calls", "flops", "bytes")] for part in of_account["operations"])


check(works(profiled) == works(account), "profile: operations", works(profiled), works(account))
for part in profiled["operations"]:
    what, copied = f"profile: {part['name']}", part["name"] in ("load", "store")
    by_flops = 0 if copied else part["flops"] / flops_per_s
    by_bytes = part["bytes"] / (rates["copy_bytes_per_s"] if copied else bytes_per_s)
    same(part["limit_s"], max(by_flops, by_bytes), f"{what}, limit_s")
    limit_by = "" if part["limit_s"] == 0 else "FLOPs" if by_flops > by_bytes else "bytes"
    check(part["limit_by"] == limit_by, f"{what}, limit_by", part, by_flops, by_bytes)
    same(part["launch_s"], 0 if copied else part["calls"] * launch_s, f"{what}, launch_s")
    # Only GEMMs and attention have shapes: what makes them slower; a profile's attention does not wait for its bytes.
    least_s = by_flops if part["name"].startswith("attention") else part["limit_s"]
    shaped_s, rounding_s = part["limit_s"] + part["shape_s"], 1e-9 * (part["limit_s"] + part["launch_s"])
    holds = shaped_s >= least_s - rounding_s if part["flops"] > 0 else abs(part["shape_s"]) <= rounding_s
    check(holds, f"{what}, shape_s", part, least_s)
# 16-bit GEMMs of this size all wait for their bytes.
bounds = {part["limit_by"] for part in profiled["operations"] if part["name"].startswith("linear_")}
check(bounds == ({"bytes"} if compute == "fp16" else {"bytes", "FLOPs"}), "profile: limits of GEMMs", bounds)
times_s = [[(part["name"], part["time_s"]) for part in of_account["regions"]] for of_account in (profiled, account)]
check(times_s[0] == times_s[1], "profile: times of regions", *times_s)
for part in profiled["regions"]:
    what, own = f"profile: {part['name']}", [each for each in profiled["operations"] if each["region"] == part["name"]]
    for key in ("calls", "flops", "bytes", "limit_s", "launch_s", "shape_s"):
        total = sum(each[key] for each in own)
        check(math.isclose(part[key], total, rel_tol=1e-9, abs_tol=1e-15), f"{what}, {key}", part, total)
    by_flops_s = sum(each["limit_s"] for each in own if each["limit_by"] == "FLOPs")
    limit_by = "" if part["limit_s"] == 0 else "FLOPs" if by_flops_s > part["limit_s"] / 2 else "bytes"
    check(part["limit_by"] == limit_by, f"{what}, limit_by", part, by_flops_s)
for part in profiled["regions"] + profiled["operations"]:
    rest_s = part["time_s"] - part["limit_s"] - part["launch_s"] - part["shape_s"]
    check(math.isclose(part["rest_s"], rest_s, abs_tol=1e-9 * part["time_s"]), f"profile: rest_s of {part['name']}", part, rest_s)
check_covered(profiled)
# Messages between the two ranks of a node: both send half in each of the ways, as rings, trees and sends do.
link_s = 1e-6 * machine["within_us"]
link_bytes_per_s = 1e9 * machine["within_gb_per_s"] * software["within_efficiency"]
measured = [{**message, "limit_s": 0} for message in profiled["messages"]]
check(measured == account["messages"], "profile: messages", measured, account["messages"])
for message in profiled["messages"]:
    calls = sum(comm[f"{message['axis']}_{message['op']}_count"]) / ranks / counted
    sent = {"send": 1, "receive": 1, "all_reduce": 1}.get(message["op"], 0.5) * message["bytes"]
    ways = 2 if message["op"] == "all_reduce" else 1
    limit_s = sent / link_bytes_per_s + calls * (ways * link_s + 1e-6 * software["message_us"])
    same(message["limit_s"], limit_s, f"profile: limit of {message['axis']} {message['op']}")
for key in account.keys() - {"covered", "ceilings", "regions", "operations", "messages"}:
    check(profiled[key] == account[key], f"profile: {key} changes", profiled[key], account[key])

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
