"""formats_test.py GPTPOST REFERENCE RESULT.h5 ...: `show --format json` holds every attribute and dataset of the
file, and every column of figures in CSV and JSON tables loads as numbers."""
import csv
import io
import json
import math
import subprocess
import sys

import h5py
import numpy

gptpost, reference, *results = sys.argv[1:]
failures = []


def output_of(*arguments):
    text = subprocess.run([gptpost, *arguments], check=True, stdout=subprocess.PIPE).stdout
    return text.decode("utf-8")


def no_constant(name):
    raise ValueError(f"{name} is no JSON")


def loads(text):
    return json.loads(text, parse_constant=no_constant)


def plain(value):
    """A value of h5py as JSON has it."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, numpy.ndarray):
        return [plain(element) for element in value]
    if isinstance(value, numpy.void):
        return {name: plain(value[name]) for name in value.dtype.names}
    if isinstance(value, numpy.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def same(a, b):
    """Bytes that are no UTF-8 are U+FFFD in JSON."""
    if isinstance(b, str) and isinstance(a, str):
        return a == "".join("\ufffd" if 0xDC80 <= ord(c) <= 0xDCFF else c for c in b)
    if isinstance(b, list) and isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(b, dict) and isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in b)
    return a == b


def compare(where, printed, value):
    if not same(printed, plain(value)):
        failures.append(f"{where}: {printed!r}, in the file {plain(value)!r}")


# What describes a dataset, and the table that repeats /config with its documentation.
described_by = {"units", "description", "region", "reduction", "class", "axis", "op"}


def compare_group(group, printed, where=""):
    for name, value in group.attrs.items():
        compare(f"{where}/@{name}", printed.get(name), value)
    count = len(group.attrs)
    for name, member in group.items():
        path = f"{where}/{name}"
        if isinstance(member, h5py.Dataset):
            if path == "/config/keys":
                continue
            unknown = set(member.attrs) - described_by
            if unknown:
                failures.append(f"{path}: attributes {unknown} are not in JSON")
            compare(path, printed.get(name), member[()])
            count += 1
        elif path != "/projection":
            count += 1
            compared.append(path)
            compare_group(member, printed.get(name, {}), path)
    if where and len(printed) != count:
        failures.append(f"{where}: {len(printed)} members printed, {count} in the file")


for result in results:
    compared = []
    with h5py.File(result, "r") as file:
        compare_group(file, loads(output_of("show", "--format", "json", result)))
    for group in ("/config/model", "/provenance", "/summary", "/steps", "/timing", "/sensors", "/memory", "/comm", "/verify"):
        if group not in compared:
            failures.append(f"{result}: {group} was not compared")
several = loads(output_of("show", "--format", "json", *results))
if [record["file"] for record in several] != results:
    failures.append("several files are not an array of records")

texts = {
    "Source", "Run", "Model", "model", "Size", "Precision", "Recomputation", "Layout", "Device", "FLOPs", "Date",
    "GPU", "Class", "Rules", "MP Mode", "Sharding Strategy", "Activation Checkpointing", "Activation CPUOffload", "CPU Offload",
    "offload", "activation_checkpointing", "Series", "Notes", "notes", "Verdict", "Status", "Axis", "Operation", "Type", "Redop", "Async",
}
published = [f"--published={reference}/{name}.csv" for name in ("mpt_training", "zero_8xa100_40gb", "fugaku_124m")]


def check_cells(style, heading, cells):
    if heading in texts:
        return 0
    for cell in cells:
        if cell in ("", None):
            continue
        try:
            float(cell)
        except ValueError:
            failures.append(f"{style}: {heading} holds {cell!r}")
    return 1


for style in ("native", "fugaku", "mpt", "zero", "megatron", "scaling", "comm", "checkpoint"):
    # Published rows have neither messages nor checkpoints.
    for arguments in (results, [*published, "--peak", "both", *results])[:1 if style in ("comm", "checkpoint") else 2]:
        tables = loads(output_of("table", "--style", style, "--format", "json", *arguments))
        text = output_of("table", "--style", style, "--format", "csv", *arguments)
        # All tables are one in CSV: each line has a cell for each heading.
        lines = list(csv.reader(io.StringIO(text)))
        if any(len(line) != len(lines[0]) for line in lines) or len(set(lines[0])) != len(lines[0]):
            failures.append(f"{style}: CSV is not one table")
        rows = list(csv.DictReader(io.StringIO(text)))
        if len(rows) != sum(len(table["rows"]) for table in tables):
            failures.append(f"{style}: {len(rows)} rows in CSV")
        for table in tables:
            figures = 0
            part, rows = rows[: len(table["rows"])], rows[len(table["rows"]) :]
            for heading in table["rows"][0]:
                figures += check_cells(style, heading, [row[heading] for row in part])
                check_cells(style, heading, [row[heading] for row in table["rows"]])
                for row in table["rows"]:
                    if heading not in texts and isinstance(row[heading], str):
                        failures.append(f"{style}: {heading} is text in JSON")
            if figures < 5:
                failures.append(f"{style}: {figures} columns of figures")

# Figures of tables that programs read, against the records: those of a record have its digits, those that are
# computed from it are rounded at most eight times, each by half a unit in the last place.
def figures_of(record):
    s = record["summary"]
    ranks, time_s = s["world_size"], s["sec_per_it"]
    total = {name: s["flops_per_step_" + name] / time_s / 1e12 for name in ("causal", "mpt", "megatron")}
    own = total[s["flops_convention"]]
    mib = 1 / 2**20
    message = record["calibration"]["messages"][0]
    return {
        "native": {
            "Time (s)": time_s, "Spread (%)": 100 * (s["sec_per_it_max"] - s["sec_per_it_min"]) / time_s,
            "Tokens/s": s["tokens_per_s"], "TFLOP/s per device": own / ranks, "TFLOP/s total": own,
            "MFU (%)": 100 * own / ranks / s["peak_tflops"], "Memory (MiB)": s["device_memory_used_bytes"] * mib,
            "Tokens/J": 1 / s["energy_j_per_token"], "GFLOPS/W": 1e3 * own / ranks / s["power_w"],
            "Held-out loss": s["held_out_loss"], "To target (s)": s["time_to_target_s"],
        },
        "fugaku": {
            "Mem (MiB)": s["device_memory_used_bytes"] * mib, "Sec/it": time_s, "TFLOPs": total["megatron"] / ranks,
            "Est. Aggr. PetaFLOPs": total["megatron"] / 1024, "Clock (GHz)": s["clock_ghz"],
        },
        "mpt": {
            "MFU (%)": 100 * total["mpt"] / ranks / s["peak_tflops"], "Model TFLOP": total["mpt"] / ranks / 100,
            "Throughput (T/s)": s["tokens_per_s"], "Throughput (T/s/GPU)": s["tokens_per_s"] / ranks,
        },
        "zero": {
            "time/it (ms)": 1e3 * time_s, "Throughput (samples/sec)": s["samples_per_s"],
            "GPU0 Memory Usage (MiB)": record["memory"]["peak_bytes"][0] * mib,
            "GPU Memory (MiB)": s["device_memory_bytes"] * mib,
        },
        "megatron": {
            "samples_per_s": s["samples_per_s"], "tflops_per_gpu": total["megatron"] / ranks,
            "memory_used_gb": s["device_memory_used_bytes"] / 1e9, "power_w": s["power_w"],
            "utilisation_pct": 100 * s["utilisation"],
        },
        "scaling": {
            "Sec/it": time_s, "Tokens/s": s["tokens_per_s"], "Tokens/s/rank": s["tokens_per_s"] / ranks,
            "TFLOPs/rank": own / ranks, "PetaFLOPs": own / 1e3,
        },
        "comm": {
            "Time (us)": 1e6 * message["time_s"], "Algbw (GB/s)": message["bytes"] / message["time_s"] / 1e9,
        },
        "checkpoint": {"Size (GB)": s["checkpoint_bytes"] / 1e9, "Write (s)": s["checkpoint_write_s"]},
    }


# Styles of published tables keep the published digits, rounded or cut.
publications = ("fugaku", "mpt", "zero", "megatron")
rounding = 8 * 2.0**-53
for style, figures in figures_of(several[0]).items():
    row = loads(output_of("table", "--style", style, "--format", "json", results[0]))[0]["rows"][0]
    text = next(csv.DictReader(io.StringIO(output_of("table", "--style", style, "--format", "csv", results[0]))))
    for heading, figure in figures.items():
        tolerance = rounding * abs(figure)
        if style in publications:
            tolerance = 10.0 ** -len(text[heading].partition(".")[2])
        for printed in (row[heading], float(text[heading])):
            if printed is None or abs(printed - figure) > tolerance:
                failures.append(f"{style}: {heading} is {printed}, by the record {figure}")

for failure in failures:
    print(failure)
sys.exit(1 if failures else 0)
