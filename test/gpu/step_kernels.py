"""Time and memory traffic of each kernel of one training step, from a profile of several steps.

    step_kernels.py PROFILE.csv [--first NAME]

PROFILE.csv: ncu --csv --print-units base --metrics gpu__time_duration.sum,dram__bytes.sum (nanoseconds,
bytes). A step is what lies between the last two launches of the kernel whose name holds NAME (token
embedding, launched once per micro-batch: profile with one micro-batch per step). Prints one line per kernel,
the longest first: launches, microseconds, share of the step, GB/s.
"""

import argparse
import collections
import csv
import re

TIME, BYTES = "gpu__time_duration.sum", "dram__bytes.sum"


def launches_of(lines):
    """[(kernel, ns, bytes)] in launch order."""
    header = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if header is None:
        raise SystemExit("step_kernels.py: no table in the profile; its last line: "
                         + (lines[-1].strip() if lines else "(empty)"))
    table = [line for line in lines[header:] if line.startswith('"')]
    launches = collections.OrderedDict()
    for row in csv.DictReader(table):
        kernel, values = launches.setdefault(row["ID"], (row["Kernel Name"], {}))
        try:
            values[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
        except ValueError:  # "n/a": a counter that this GPU does not have
            pass
    return [(kernel, values.get(TIME, 0.0), values.get(BYTES, 0.0))
            for kernel, values in launches.values()]


def short(kernel):
    """Name without return type, namespaces and arguments, with the first template arguments."""
    name = kernel.replace("(anonymous namespace)", "").replace("<unnamed>", "")
    name = re.sub(r"\([\w: ]+\)(?=-?\d)", "", name)  # "(int)8"
    name = re.sub(r"^void |\(.*$", "", name)
    name = re.sub(r"\b\w*::", "", name).replace("::", "")
    return name[:60]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("profile")
    parser.add_argument("--first", default="EmbeddingRows")
    args = parser.parse_args()
    with open(args.profile) as file:
        launches = launches_of(file.readlines())
    starts = [i for i, (kernel, _, _) in enumerate(launches) if args.first in kernel]
    if len(starts) < 2:
        raise SystemExit(f"step_kernels.py: {len(starts)} launches of {args.first} among {len(launches)}; "
                         "two are needed")
    kernels = collections.defaultdict(lambda: [0, 0.0, 0.0])
    for kernel, ns, moved in launches[starts[-2]:starts[-1]]:
        sums = kernels[short(kernel)]
        sums[0] += 1
        sums[1] += ns
        sums[2] += moved
    total = sum(ns for _, ns, _ in kernels.values())
    print(f"{'kernel':60} {'calls':>6} {'us':>10} {'share %':>8} {'GB/s':>8}")
    for name, (count, ns, moved) in sorted(kernels.items(), key=lambda item: -item[1][1]):
        print(f"{name:60} {count:6} {ns / 1e3:10.1f} {100 * ns / total:8.1f} {moved / ns if ns else 0:8.0f}")
    print(f"{'sum':60} {sum(n for n, _, _ in kernels.values()):6} {total / 1e3:10.1f}")


if __name__ == "__main__":
    main()
