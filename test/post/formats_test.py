"""formats_test.py GPTPOST REFERENCE REPEATS RESULT.h5 ...: `show --format json` holds every attribute and dataset of
the file, every column of figures in CSV and JSON tables loads as numbers, and each cell of every row has the record's.
`accept --format json` has median and spread of every figure over REPEATS/*/result.h5, whose figures are changed here."""
import csv
import io
import json
import math
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import h5py
import numpy

gptpost, reference, repeats, *results = sys.argv[1:]
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
    count = 0
    for name, value in group.attrs.items():
        compare(f"{where}/@{name}", printed.get(name), value)
        count += 1
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
        else:
            count += 1
            compared.append(path)
            compare_group(member, printed.get(name, {}), path)
    if where and len(printed) != count:
        failures.append(f"{where}: {len(printed)} members printed, {count} in the file")


for result in results:
    compared = []
    with h5py.File(result, "r") as file:
        compare_group(file, loads(output_of("show", "--format", "json", result)))
        projected = len(file["projection"].attrs) > 0
    groups = ["/config/model", "/provenance", "/summary", "/steps", "/timing", "/memory", "/comm", "/projection", "/verify"]
    for group in groups if projected else [*groups, "/sensors"]:
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

# Every column of tables that programs read, against the records: figures of a record have its digits, those that
# are computed from it are rounded at most eight times, each by half a unit in the last place. Whole numbers and
# texts are the same; None: the record does not have it.
def rows_of(record, convention="", peak=None):
    """By style, the rows of the record's table; its FLOPs restated by `convention`, its peak in TFLOP/s by `peak`."""
    s, config, steps, timing = (record[group] for group in ("summary", "config", "steps", "timing"))
    model, parallel, batch, run = (config[group] for group in ("model", "parallel", "batch", "run"))
    saves = config.get("checkpoint", {})
    projected = record["projection"] != {}
    ranks, nodes, time_s = s["world_size"], s["nodes"], s["sec_per_it"]
    dp, tp, pp, cp = (parallel[name + "_parallel"] for name in ("data", "tensor", "pipeline", "context"))
    mbs, gbs, length, stage = batch["micro_batch_size"], batch["global_batch_size"], model["seq_length"], parallel["zero_stage"]
    preset = model["preset"].upper()
    offloads = parallel["offload"] != "none"
    passes = gbs // (dp * mbs)
    notes = record["date_utc"][5:10] + "; " + record["reason"]
    label = f"{'projected: ' if projected else ''}{run['name']}, {ranks} ranks"
    peak = s["peak_tflops"] if peak is None else peak

    def tflops(name, hardware=False):
        """Of all ranks. Recomputation is in the FLOPs of megatron; of others it is counted, or a factor."""
        flops = s["flops_per_step_" + (convention or name)]
        if (convention or name) == "megatron":
            flops /= 1 if hardware else s["hardware_factor"]
        elif hardware:
            counted = s.get(f"flops_per_step_{convention or name}_recomputed")
            flops = flops * s["hardware_factor"] if counted is None else flops + counted
        return flops / time_s / 1e12

    def utilisation(total_tflops):
        return 100 * total_tflops / ranks / peak if peak > 0 else None

    own = tflops(s["flops_convention"])
    star = "*" if convention == "mpt_star" else ""
    mib = 1 / 2**20
    peak_bytes = record["memory"]["peak_bytes"]
    source = {"Source": "projected"} if projected else {}
    ending = {"Status": record["status"]}
    # What a projection does not tell: the native table leaves these columns out.
    known = {
        "native": {},
        "checkpoint": dict.fromkeys(("Size (GB)", "Write (s)", "GB/s", "GB/s/node", "Wait (ms)", "Stall (ms/step)",
                                     "Overhead (%)", "Resume (s)")),
    }
    if not projected:
        known["native"] = {
            "Energy (J/token)": s["energy_j_per_token"], "Tokens/J": 1 / s["energy_j_per_token"],
            "GFLOPS/W": 1e3 * own / ranks / s["power_w"],
            "Held-out loss (nat)": s["held_out_loss"], "To target (s)": s["time_to_target_s"],
        }
        waits_s = sum(steps["checkpoint_s"])
        known["checkpoint"] = {
            "Size (GB)": s["checkpoint_bytes"] / 1e9, "Write (s)": s["checkpoint_write_s"],
            "GB/s": s["checkpoint_bytes"] / s["checkpoint_write_s"] / 1e9,
            "GB/s/node": s["checkpoint_bytes"] / s["checkpoint_write_s"] / nodes / 1e9,
            "Wait (ms)": 1e3 * waits_s / s["checkpoints"], "Stall (ms/step)": 1e3 * waits_s / len(steps["checkpoint_s"]),
            "Overhead (%)": 100 * waits_s / (waits_s + sum(steps["time_s"])), "Resume (s)": s["resume_s"],
        }
    by_style = {
        "native": {
            "Run": run["name"], "Model": preset, "Sequence": length, "Batch": gbs,
            "Precision": config["precision"]["compute"], "Recomputation": config["memory"]["activation_checkpointing"],
            "Layout": f"dp{dp} z{stage}", "Ranks": ranks, "Nodes": nodes, "Device": s["device_name"],
            "FLOPs": convention or s["flops_convention"], "Date": record["date_utc"][:10], "Verdict": record["verdict"],
            "Peak (TFLOP/s)": peak or None, "Time (s)": time_s,
            "Spread (%)": None if projected else 100 * (s["sec_per_it_max"] - s["sec_per_it_min"]) / time_s,
            "Tokens/s": s["tokens_per_s"], "TFLOP/s per device": own / ranks, "TFLOP/s total": own,
            "MFU (%)": utilisation(own), "Memory (MiB)": s["device_memory_used_bytes"] * mib,
            **known["native"],
        },
        "fugaku": {
            "Nodes": nodes, "Size": preset[5:], "DP": dp, "TP": tp, "PP": pp, "MBS": mbs, "GBS": gbs, "Notes": notes,
            "seq_length": length, "activation_checkpointing": "False",
            "Mem (MiB)": s["device_memory_used_bytes"] * mib, "Sec/it": time_s, "TFLOPs": tflops("megatron", hardware=True) / ranks,
            "Est. Aggr. PetaFLOPs": tflops("megatron", hardware=True) / 1024, "Clock (GHz)": s["clock_ghz"],
        },
        "mpt": {
            "Model": model["preset"], "SeqLen (T)": length, "# GPUs": ranks, "GPU": s["device_name"],
            f"MFU{star} (%)": utilisation(tflops("mpt")), f"HFU{star} (%)": utilisation(tflops("mpt", hardware=True)),
            "Model TFLOP": tflops("mpt") / ranks / 100,
            "MicroBatchSize": mbs, "GradAccum": passes, "GlobalBatchSize": gbs, "Throughput (S/s)": s["samples_per_s"],
            "Throughput (T/s)": s["tokens_per_s"], "Throughput (T/s/GPU)": s["tokens_per_s"] / ranks,
            "GlobalBatchSize (T)": gbs * length, "Precision": config["precision"]["compute"], "MP Mode": "DEFAULT",
            "Sharding Strategy": ("NO_SHARD", "ZeRO-1", "SHARD_GRAD_OP", "FULL_SHARD")[stage],
            "Activation Checkpointing": "False", "Activation CPUOffload": "False", "NumParams": s["num_params"],
        },
        "zero": {
            "Model": preset, "num_layers": model["num_layers"], "hidden_size": model["hidden_size"],
            "num_heads": model["num_attention_heads"], "# gpus": ranks, "data parallel": dp, "model parallel": tp,
            "ZeRO Stage": stage, "CPU Offload": "Yes" if offloads else "No", "Max Global BSZ": gbs, "Notes": notes,
            "time/it (ms)": 1e3 * time_s, "Throughput (samples/sec)": s["samples_per_s"],
            **{f"GPU{rank} Memory Usage (MiB)": peak_bytes[rank] * mib if rank < len(peak_bytes) else None
               for rank in range(min(ranks, 8))},
            "GPU Memory (MiB)": s["device_memory_bytes"] * mib,
        },
        "megatron": {
            "model": preset, "nodes": nodes, "gpus_per_node": s["ranks_per_node"], "mp": tp, "pp": pp,
            "zero_stage": stage, "offload": "cpu" if offloads else "none", "micro_batch_size": mbs,
            "grad_accum": passes, "memory_total_gb": s["device_memory_bytes"] / 1e9, "notes": "",
            "samples_per_s": s["samples_per_s"], "tflops_per_gpu": tflops("megatron", hardware=True) / ranks,
            "memory_used_gb": s["device_memory_used_bytes"] / 1e9, "power_w": s.get("power_w"),
            "power_limit_w": s.get("power_limit_w"),
            "utilisation_pct": 100 * s["utilisation"] if "utilisation" in s else None,
        },
        "scaling": {
            "Series": "", "Model": preset, "Sequence": length, "Precision": config["precision"]["compute"],
            "Recomputation": config["memory"]["activation_checkpointing"], "ZeRO": stage,
            "Device": s["device_name"], "Ranks": ranks, "Nodes": nodes, "DP": dp, "TP": tp, "PP": pp, "CP": cp, "MBS": mbs,
            "GBS": gbs, "Speed-up": 1, "Efficiency (%)": 100, "Notes": notes,
            # A projection is one step of one rank.
            "Comm (%)": 100 * timing["communication_s"][0][0] / timing["step_s"][0][0] if "step_s" in timing else None,
            "Sec/it": time_s, "Tokens/s": s["tokens_per_s"], "Tokens/s/rank": s["tokens_per_s"] / ranks,
            "TFLOPs/rank": own / ranks, "PetaFLOPs": own / 1e3,
        },
        "checkpoint": {
            "Run": label, "Ranks": ranks, "Nodes": nodes, "Async": json.dumps(saves["async"]) if saves else "-",
            "Every (steps)": saves.get("every_steps") or None, "Every (s)": saves.get("every_s") or None, "Notes": notes,
            **known["checkpoint"],
        },
    }
    rows = {style: [{**source, **row, **ending}] for style, row in by_style.items()}
    rows["comm"] = [{"Run": label, **message} for message in messages_of(record)]
    return rows


def caption_of(style, rows, convention="", peaks=()):
    """Of the table of these rows, which share their FLOPs convention; peaks: as texts, of runs with an MFU."""
    first = rows[0]
    restated = f", FLOPs by convention {convention}" if convention else ""
    against = f"; peak{'s' * (len(set(peaks)) > 1)} {', '.join(sorted(set(peaks)))}" if peaks else ""
    if style == "native":
        settings = ["Model", "Sequence", "Batch", "Precision", "Recomputation", "Layout", "Ranks", "Nodes", "Device", "FLOPs", "Date"]
        # What tells runs apart is in the caption where there are several.
        shared = [heading for heading in settings if len({row[heading] for row in rows}) == 1
                  and (len(rows) > 1 or heading not in ("Layout", "Ranks"))]
        return "Runs: " + ", ".join(f"{heading} {first[heading]}" for heading in shared) + against
    if style == "fugaku":
        return (f"Sequence length {first['seq_length']}, activation checkpointing {first['activation_checkpointing']}{restated}. "
                "As published: TFLOPs per rank, PetaFLOPs = TFLOPs x ranks / 1024")
    if style == "mpt":
        return (f"Training throughput{restated}. As published: Model TFLOP per device in units of 1e14 FLOP/s, "
                f"Throughput (S/s) of 1 and more cut to whole sequences{against}")
    if style == "zero":
        return ("Batch by ZeRO stage. As published, Max Global BSZ is the batch of the run: "
                "the largest only where a search found it")
    if style == "megatron":
        return (f"Models over nodes * devices per node{restated}. A cell is the fastest valid run; mp: tensor parallel, "
                "tflops/gpu: per device, recomputation counted")
    if style == "scaling":
        return (f"{first.get('Source', '')}{': ' * ('Source' in first)}{first['Model']}, sequence {first['Sequence']}, "
                f"{first['Precision']}, data parallel, ZeRO {first['ZeRO']}, no recomputation, micro-batch {first['MBS']}, "
                f"{first['Device']}{restated}; speed-up over the run on {first['Ranks']} ranks")
    return "Messages of " + first["Run"] if style == "comm" else "Checkpoints"


def notes_of(style, rows, reason):
    """Of the utilisations of a table's runs, which have no MFU for this reason."""
    notes = [f"no MFU: {reason}"] if reason and style in ("native", "mpt") else []
    for utilisation in ("MFU", "HFU"):
        if not notes and any((row.get(f"{utilisation}{star} (%)") or 0) > 100 for row in rows for star in ("", "*")):
            notes.append(f"WARNING: {utilisation} above 100 %, the convention counts work that is not done, or the peak is too low")
    return notes


def messages_of(record):
    """Those of a calibration, then the means of the run's; all groups here are of all ranks."""
    s = record["summary"]
    rows = []

    def add(axis, op, ranks, nodes, size, time_s, **others):
        bus = {"all_reduce": 2 * (1 - 1 / ranks), "all_gather": 1 - 1 / ranks, "reduce_scatter": 1 - 1 / ranks}
        rows.append({
            "Axis": axis, "Operation": op, "Ranks": ranks, "Nodes": nodes, "Size (B)": size, "Root": -1,
            "Count": others.get("count"), "Type": others.get("type", "-"), "Redop": others.get("redop", "-"),
            "#wrong": others.get("wrong"), "Time (us)": 1e6 * time_s, "Algbw (GB/s)": size / time_s / 1e9,
            "Busbw (GB/s)": bus.get(op, 1) * size / time_s / 1e9,
        })

    for message in record.get("calibration", {"messages": []})["messages"]:
        add(nodes=message["ranks"] // message["per_node"], size=message["bytes"],
            **{name: value for name, value in message.items() if name not in ("per_node", "bytes")})
    for name in record["comm"]:
        if name.endswith("_count"):
            kind = name[: -len("count")]
            size, calls, time_s = (sum(record["comm"][kind + part]) for part in ("bytes", "count", "time_s"))
            axis, op = kind[:-1].split("_", 1)
            add(axis, op, s["world_size"], s["nodes"], int(size / calls), time_s / calls)
    return rows


# Styles of published tables keep the published digits, rounded or cut.
publications = ("fugaku", "mpt", "zero", "megatron")
rounding = 8 * 2.0**-53


def unescaped(cell):
    """A cell of CSV, which shows bytes that a terminal would obey as \\x1b, as JSON has it."""
    raw = re.sub(rb"\\x([0-9a-f]{2})", lambda code: bytes.fromhex(code[1].decode()), cell.encode())
    return raw.decode("utf-8", "replace")


def compare_row(style, columns, row, text):
    if columns.keys() != row.keys() or text.keys() != row.keys():
        failures.append(f"{style}: columns {columns.keys() ^ row.keys()} {text.keys() ^ row.keys()} are not compared")
        return
    for heading, value in columns.items():
        if not isinstance(value, (int, float)):
            if row[heading] != value or unescaped(text[heading]) != (value or ""):
                failures.append(f"{style}: {heading} is {row[heading]!r}, {text[heading]!r}, by the record {value!r}")
            continue
        tolerance = rounding * abs(value) if isinstance(value, float) else 0
        if style.split()[0] in publications and isinstance(value, float):
            tolerance = 10.0 ** -len(text[heading].partition(".")[2])
        for printed in (row[heading], float(text[heading] or "nan")):
            if printed is None or not abs(printed - value) <= tolerance:
                failures.append(f"{style}: {heading} is {printed}, by the record {value}")


def compare_table(style, arguments, columns_of_rows, caption, notes):
    """The one table that these arguments make: caption, notes and each cell."""
    what = " ".join([style, *arguments])
    (table,) = loads(output_of("table", "--style", style, "--format", "json", *arguments))
    for key, value in (("caption", caption), ("notes", notes)):
        if table[key] != value:
            failures.append(f"{what}: {key} is {table[key]!r}, by the records {value!r}")
    lines = list(csv.DictReader(io.StringIO(output_of("table", "--style", style, "--format", "csv", *arguments))))
    if not len(columns_of_rows) == len(table["rows"]) == len(lines):
        failures.append(f"{what}: {len(table['rows'])} and {len(lines)} rows, by the records {len(columns_of_rows)}")
    for columns, row, line in zip(columns_of_rows, table["rows"], lines):
        compare_row(what, columns, row, line)
    return table["rows"]


def edited(path, change):
    """Changes attributes of /summary; an edited file is read without its checksum, the first 512 bytes
    (doc/result_schema.md)."""
    with h5py.File(path, "r+") as file:
        change(file["summary"].attrs)
    Path(path).write_bytes(Path(path).read_bytes()[512:])


def alone(row):
    """The cells of a row that do not depend on the other rows of its table."""
    return {heading: cell for heading, cell in row.items() if cell not in ("", None) and heading not in ("Source", "Series")}


def peak_text(summary):
    return f"{summary['peak_tflops']:.4g} TFLOP/s ({summary['peak_source']})"


expected = [rows_of(record) for record in several]
for style in expected[0]:
    apart = []
    for result, record, rows in zip(results, several, expected):
        caption = caption_of(style, rows[style], peaks=[peak_text(record["summary"])])
        apart += compare_table(style, [result], rows[style], caption, [])
    # Tables of all files have these rows.
    together = loads(output_of("table", "--style", style, "--format", "json", *results))
    if [alone(row) for table in together for row in table["rows"]] != [alone(row) for row in apart]:
        failures.append(f"{style}: the rows of all files are not those of each file")
    if style == "native":
        caption = caption_of(style, apart, peaks=[peak_text(record["summary"]) for record in several])
        if [table["caption"] for table in together] != [caption]:
            failures.append(f"{style}: captions {[table['caption'] for table in together]}, by the records {caption!r}")

# Restated FLOPs and peaks, of a run whose recomputation is a factor and of one in which it is counted.
devices = {
    group: {key: float(value) for key, value in re.findall(r"^ *(\w+) = ([\d.]+)", body, re.M)}
    for group, body in re.findall(r"^&(\w+)$(.*?)^/$", Path(reference, "../../input/devices.in").read_text(), re.M | re.S)
}
recomputing = str(Path(repeats, "recomputing.h5"))
shutil.copy(results[0], recomputing)
edited(recomputing, lambda summary: summary.modify("hardware_factor", 1.25))
for result in (recomputing, results[-1]):
    record = loads(output_of("show", "--format", "json", result))
    summary = record["summary"]
    names = [name[len("flops_per_step_"):] for name in summary if name.startswith("flops_per_step_")]
    conventions = [name for name in names if not name.startswith("exact_")]
    if len(conventions) < 4:
        failures.append(f"{result}: conventions {conventions}")
    fp8_peak = devices.get(summary["device_name"], {}).get("fp8_tflops", 0)
    of_peaks = {"0.05": (0.05, "--peak"), "fp8": (fp8_peak, "data sheet, fp8")}
    for convention, peak in [*((name, None) for name in conventions), (None, "0.05"), (None, "fp8"), ("megatron", "0.05")]:
        arguments = (["--convention", convention] if convention else []) + (["--peak", peak] if peak else []) + [result]
        tflops, source = of_peaks.get(peak, (summary["peak_tflops"], summary["peak_source"]))
        peaks = [f"{tflops:.4g} TFLOP/s ({source})"] if tflops > 0 else []
        restated = rows_of(record, convention, tflops)
        for style in ("native", "fugaku", "mpt", "megatron", "scaling"):
            notes = notes_of(style, restated[style], "" if peaks else summary["peak_note"] or "no peak is known")
            compare_table(style, arguments, restated[style], caption_of(style, restated[style], convention, peaks), notes)

# Published rows: each cell of the file, by the headings of its columns.
headings_of = {
    "mpt_training": "Model|SeqLen (T)|# GPUs|GPU|MFU (%)|HFU (%)|Model TFLOP|MicroBatchSize|GradAccum|GlobalBatchSize|"
    "Throughput (S/s)|Throughput (T/s)|Throughput (T/s/GPU)|GlobalBatchSize (T)|Precision|MP Mode|Sharding Strategy|"
    "Activation Checkpointing|Activation CPUOffload|NumParams",
    "fugaku_124m": "seq_length|activation_checkpointing|Nodes|Clock (GHz)|Size|DP|TP|PP|MBS|GBS|Mem (MiB)|Sec/it|TFLOPs|"
    "Est. Aggr. PetaFLOPs|Notes",
    "zero_8xa100_40gb": "Model|num_layers|hidden_size|num_heads|# gpus|data parallel|model parallel|ZeRO Stage|CPU Offload|"
    "Max Global BSZ|time/it (ms)|Throughput (samples/sec)|" + "".join(f"GPU{gpu} Memory Usage (MiB)|" for gpu in range(8)) + "Notes",
}


def published_cell(heading, cell):
    if heading in texts:
        return cell
    try:
        return float(cell)
    except ValueError:
        return None


for name, headings in headings_of.items():
    path = f"{reference}/{name}.csv"
    style = name.partition("_")[0]
    with open(path, encoding="utf-8") as file:
        lines = list(csv.reader(file))[1:]
    rows = [row for table in loads(output_of("table", "--style", style, "--format", "json", "--published", path)) for row in table["rows"]]
    if len(rows) != len(lines):
        failures.append(f"{path}: {len(rows)} rows of {len(lines)}")
    for line, row in zip(lines, rows):
        cells = {heading: published_cell(heading, cell) for heading, cell in zip(headings.split("|"), line)}
        trained = cells.get("Max Global BSZ", 1) is not None
        cells = {"Source": "published", **cells, "Status": "OK" if trained else "OOM"}
        # Recomputation is counted in a column of another name; the published tables of ZeRO have no memory of a device.
        printed = {heading.replace("TFLOPs*", "TFLOPs"): cell for heading, cell in row.items() if heading != "GPU Memory (MiB)"}
        if printed != cells:
            differing = {heading: (printed.get(heading), cells.get(heading)) for heading in printed.keys() | cells.keys()
                         if printed.get(heading) != cells.get(heading)}
            failures.append(f"{path}: {row['Model'] if 'Model' in row else row['Nodes']}: {differing}")
# Against both peaks: the published utilisations of runs with fp8 GEMMs are against that of fp8.
mpt = ["table", "--style", "mpt", "--format", "json", "--published", f"{reference}/mpt_training.csv"]
fp8 = ["--where", "precision.compute=fp8"]
((published_fp8,), (against_both,)) = (loads(output_of(*mpt, *fp8, *peak)) for peak in ([], ["--peak", "both"]))
if not 0 < len(published_fp8["rows"]) == len(against_both["rows"]):
    failures.append(f"mpt: {len(against_both['rows'])} rows in fp8 against both peaks")
for row, both in zip(published_fp8["rows"], against_both["rows"]):
    sheet = devices[row["GPU"]]
    for heading in ("MFU", "HFU"):
        value = row[f"{heading} (%)"]
        by_peak = {f"{heading} fp8 (%)": value, f"{heading} (%)": value * sheet["fp8_tflops"] / sheet["bf16_tflops"]}
        for column, value in by_peak.items():
            if both[column] is None or abs(both[column] - value) > 0.02:
                failures.append(f"mpt: {column} of {row['Model']} is {both[column]}, by the published row {value}")
(without_fp8,) = loads(output_of("table", "--style", "mpt", "--format", "json", "--peak", "both", results[0]))
if [row["MFU fp8 (%)"] for row in without_fp8["rows"]] != [None]:
    failures.append(f"mpt: a run in fp32 has an MFU against the peak of fp8: {without_fp8['rows']}")

# Acceptance: a row for each figure, of repeats whose figures differ by some per cent, in no order.
runs = sorted(str(path) for path in Path(repeats).glob("*/result.h5"))
for run, factor in zip(runs, (1.03, 0.98, 1.0, 1.01)):
    edited(run, lambda summary: [
        summary.modify(name, value * factor) for name, value in list(summary.items()) if isinstance(value, numpy.float64)
    ])
summaries = [record["summary"] for record in loads(output_of("show", "--format", "json", *runs))]
figures = {}  # values of the runs; FLOPs of a step cannot be required, and drifts are so by their size
for name, value in summaries[0].items():
    if type(value) in (int, float) and not name.startswith("flops_per_step_"):
        values = [summary[name] for summary in summaries]
        figures[name] = [abs(value) for value in values] if name.startswith("drift_percent") else values
# Runs whose peaks are measured ceilings share the median of these (post/common_peak.h).
peak = statistics.median(figures["gemm_ceiling_tflops"])
figures["peak_tflops"] = [peak] * len(runs)
for utilisation, rate in (("mfu", "model"), ("hfu", "hardware")):
    figures[utilisation] = [value / peak for value in figures[rate + "_tflops_per_device"]]
required = 2.5
specification = Path(repeats, "accept.in")
specification.write_text("".join(f"&{name} figure = '{name}', reference = {required}, verdict = 'any' /\n" for name in figures))


def accept(*files):
    """Exit status, and what is printed."""
    run = subprocess.run([gptpost, "accept", "--format", "json", str(specification), *files],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return run.returncode, loads(run.stdout.decode("utf-8"))


def signed(percent):
    """One decimal, or two significant digits where these are more."""
    decimals = max(1, 1 - math.floor(math.log10(abs(percent)))) if percent else 1
    return f"{'+' * (percent > 0)}{percent:.{decimals}f} %"


def is_worse_by_more(name):
    """Of times, memory, energy, errors and the like more is worse, of rates less."""
    parts = ("sec_per_it", "memory", "power", "energy", "temperature", "loss", "_to_target", "skipped", "errors", "spread", "drift")
    return name.endswith("_s") and not name.endswith("_per_s") or any(part in name for part in parts)


status, printed = accept(*runs)
rows = printed["rows"]
if [row["row"] for row in rows] != list(figures) or len(runs) != 4 or len(figures) < 30:
    failures.append(f"accept: {len(runs)} runs, rows {[row['row'] for row in rows]}, figures {list(figures)}")
verdicts = []
for row, (name, values) in zip(rows, figures.items()):
    median = statistics.median(values)
    by_runs = {"figure": name, "reference": required, "files": runs}
    # 0 stands for what is not known, but of errors.
    if median > 0 or name.startswith("errors_"):
        by_runs["measured"] = median
        by_runs["change_percent"] = 100 * (median - required) / required
        by_runs["spread_percent"] = 100 * (max(values) - min(values)) / median if median > 0 else 0
        change, spread = by_runs["change_percent"], by_runs["spread_percent"]
        by_runs["verdict"] = "FAILED" if (change if is_worse_by_more(name) else -change) > 5 else "PASSED"
        by_runs["reason"] = (f"{name} {median:.6g}, reference {required} ({signed(change)}, 5 % allowed), 4 runs, "
                             f"spread {spread:.1f} %")
    else:
        by_runs["verdict"], by_runs["reason"] = "NOT DECIDED", f"{runs[0]} has no figure {name}"
    verdicts.append(by_runs["verdict"])
    if row.keys() - {"row"} != by_runs.keys():
        failures.append(f"accept: {row}, by the records {by_runs}")
        continue
    for key, value in by_runs.items():
        if isinstance(value, (int, float)):
            # The runs' differences lose the digits that their values have in common.
            equal = math.isclose(row[key], value, rel_tol=rounding, abs_tol=0 if key == "measured" else 1e-11)
        else:
            equal = row[key] == value
        if not equal:
            failures.append(f"accept: {key} of {name} is {row[key]}, by the records {value}")

if {"PASSED", "FAILED", "NOT DECIDED"} - set(verdicts):
    failures.append(f"accept: of the verdicts only {set(verdicts)} were compared")


def compare_accepted(what, seen, status, verdicts, unreadable):
    by_spec = (status, all(verdict == "PASSED" for verdict in verdicts) and not unreadable, verdicts, unreadable)
    of_json = (seen[0], seen[1]["accepted"], [row["verdict"] for row in seen[1]["rows"]], seen[1]["unreadable"])
    if of_json != by_spec:
        failures.append(f"accept, {what}: {of_json}, by the specification {by_spec}")


compare_accepted("every figure", (status, printed), 9, verdicts, [])
rate = statistics.median(figures["tokens_per_s"])
specification.write_text(f"&speed figure = 'tokens_per_s', reference = {rate!r}, verdict = 'any' /\n")
compare_accepted("a median that is reached", accept(*runs), 0, ["PASSED"], [])
no_result, missing = str(Path(repeats, "text.h5")), str(Path(repeats, "missing.h5"))
Path(no_result).write_text("no result")
problems = [f"{no_result}: not an HDF5 file", f"{missing}: cannot open: No such file or directory"]
compare_accepted("files that cannot be read", accept(no_result, *runs, missing), 7, ["PASSED"], problems)
specification.write_text(f"&speed figure = 'tokens_per_s', reference = {2 * rate!r}, verdict = 'any' /\n")
compare_accepted("half of the rate", accept(*runs, missing), 9, ["FAILED"], problems[1:])
specification.write_text(f"&speed figure = 'tokens_per_s', reference = {rate!r}, verdict = 'any', repeats = 5 /\n")
compare_accepted("too few repeats", accept(*runs), 10, ["NOT DECIDED"], [])

for failure in failures:
    print(failure)
sys.exit(1 if failures else 0)
