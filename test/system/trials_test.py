"""trials_test.py GPTPOST RESULT ...: runs of one model on one number of ranks, in several layouts, whose peak is a
measured ceiling. In tables and pictures MFU follows from the time alone. Beside DIR/result.h5, DIR.txt holds what the
run printed."""
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

gptpost, *results = sys.argv[1:]
failures = []


def check(condition, message):
    if not condition:
        failures.append(message)


def output_of(*arguments):
    return subprocess.run([gptpost, *arguments], check=True, stdout=subprocess.PIPE).stdout.decode("utf-8")


def bars(kind):
    """Lengths of the bars of a picture, in the order of the runs."""
    output_of("plot", "--kind", kind, "-o", "plots", *results)
    lines = [line.split("\t") for line in Path("plots", kind + ".dat").read_text().splitlines() if not line.startswith("#")]
    return [float(line[1]) for line in lines[1:] if line[0] != "range over steps"]


# What each run says of itself: MFU, or why there is none; above 100 % never without a warning.
printed = []  # MFU and time of the runs that print one
for result in results:
    text = Path(result).parent.with_suffix(".txt").read_text()
    mfu = re.search(r" mfu=(\S+)", text.splitlines()[-1]).group(1)
    if mfu == "none":
        check(re.search(r"^MFU +none: .*", text, re.M) and "the measured GEMM ceiling" in " ".join(text.split()),
              f"{result}: no MFU, and no reason")
    else:
        printed.append((float(mfu), float(re.search(r" sec_per_it=(\S+)", text.splitlines()[-1]).group(1))))
    check((mfu != "none" and float(mfu) > 1.0) == ("warning=mfu_above_100_percent" in text), f"{result}: {mfu} and its warning")

# Each has a peak of its own, which may vary by max_ceiling_spread (record/flops.h) and has four digits behind the point;
# beyond that MFU is as steady as the time.
mfus, seconds = [mfu for mfu, _ in printed] or [1.0], [time for _, time in printed] or [1.0]
allowed = 1.03 * max(seconds) / min(seconds)
check(max(mfus) - 5e-5 <= allowed * (min(mfus) + 5e-5), f"printed MFU is not as steady as the time: {printed}")

times = [json.loads(output_of("show", "--format", "json", result))["summary"]["sec_per_it"] for result in results]
table = json.loads(output_of("table", "--format", "json", *results))[0]
columns = {name: [row[name] for row in table["rows"]] for name in ("MFU (%)", "Tokens/s", "TFLOP/s total")}
mfu, rates = bars("utilisation"), bars("throughput")
check(None not in columns["MFU (%)"] and len(mfu) == len(rates) == len(results), f"a run has no MFU: {columns}, {mfu}")
if failures:
    print("\n".join(failures))
    sys.exit(1)
check((max(columns["MFU (%)"]) > 100.0) == any("MFU above 100 %" in note for note in table["notes"]), f"warning: {table['notes']}")

# One peak serves all: MFU times time is one number, to the nine digits of the picture's data.
work = [a * b for a, b in zip(mfu, times)]
check(max(work) / min(work) - 1.0 < 1e-7, f"MFU is not as steady as the time: {mfu}, {times}")
# So does acceptance, a row for each run; it decides nothing by what is above 100 %.
rows = [f"&row_{i} runs = '{Path(result).parent.name}', figure = 'mfu', reference = 1e-9, verdict = 'any' /" for i, result in enumerate(results)]
Path("mfu.in").write_text("\n".join(rows))
accepted = subprocess.run([gptpost, "accept", "--format", "json", "mfu.in", *results], stdout=subprocess.PIPE).stdout
for row, percent in zip(json.loads(accepted)["rows"], mfu):
    if percent > 100.0:
        check(row["verdict"] == "NOT DECIDED" and "MFU above 100 %" in row["reason"], f"accepted: {row}")
    else:
        check(abs(100.0 * row["measured"] / percent - 1.0) < 1e-7, f"accepted with {row['measured']}, drawn with {percent} %")
# As tabled, to the nearest tenth.
tabled = columns["MFU (%)"]
check((max(tabled) - 0.05) / (min(tabled) + 0.05) <= max(times) / min(times), f"spread of {tabled} above that of {times}")

# The faster of two runs is so by every figure.
for a, b in itertools.permutations(range(len(results)), 2):
    if times[a] < times[b] * (1.0 - 1e-7):
        check(mfu[a] > mfu[b] and rates[a] > rates[b], f"pictures order {results[a]} and {results[b]} otherwise than time")
        for name, cells in columns.items():
            check(cells[a] >= cells[b], f"{name} orders {results[a]} and {results[b]} otherwise than time")

print("\n".join(failures))
sys.exit(1 if failures else 0)
