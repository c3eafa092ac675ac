"""The table of a mutation run: Markdown for people, CSV for programs."""

import csv
import os

from draw import area_of

CAUGHT = ("killed", "hang")


def read_equivalents(path):
    """{key of a Site: reason} of a file of lines `file | kind | original | mutated | reason`."""
    known = {}
    if path and os.path.exists(path):
        with open(path) as file:
            for number, line in enumerate(file, 1):
                if line.strip() and not line.startswith("#"):
                    cells = [" ".join(c.split()) for c in line.split(" | ")]
                    if len(cells) != 5:
                        raise SystemExit(f"{path}:{number}: expected: file | kind | original | mutated | reason")
                    known[tuple(cells[:4])] = cells[4]
    return known


def score(mutants):
    """(caught, counted) of mutants that are neither equivalent nor without a build."""
    counted = [m for m in mutants if m.outcome not in ("equivalent", "does not compile", "")]
    return sum(m.outcome in CAUGHT for m in counted), len(counted)


def percent(caught, counted):
    return f"{caught} of {counted}" + (f" ({100 * caught / counted:.0f} %)" if counted else "")


def _cell(text, width=90):
    text = " ".join(text.split()).replace("|", "\\|").replace("`", "'")
    return text if len(text) <= width else text[:width - 3] + "..."


def _totals(title, groups):
    lines = ["", f"| {title} | caught | not caught | equivalent | score |", "|---|--:|--:|--:|--:|"]
    for name, mutants in groups.items():
        caught, counted = score(mutants)
        equivalent = sum(m.outcome == "equivalent" for m in mutants)
        share = f"{100 * caught / counted:.0f} %" if counted else ""
        lines.append(f"| {name} | {caught} | {counted - caught} | {equivalent} | {share} |")
    return lines


def markdown(mutants, notes):
    lines = ["# Mutation run", "", *[f"- {note}" for note in notes], "",
             f"Caught: **{percent(*score(mutants))}** of the mutants that are not equivalent."]
    areas, seeds = {}, {}
    for m in mutants:
        areas.setdefault(area_of(m.site.file), []).append(m)
        seeds.setdefault(m.seed, []).append(m)
    lines += _totals("seed", seeds) + _totals("area", dict(sorted(areas.items())))
    for title, chosen in (("Not caught", lambda o: o in ("survived", "not reached")),
                          ("All mutants", lambda o: True)):
        lines += ["", f"## {title}", "", "| id | place | kind | original | mutated | outcome |", "|--:|---|---|---|---|---|"]
        for m in filter(lambda m: chosen(m.outcome), mutants):
            mutated = f"`{_cell(m.site.mutated)}`" if m.site.mutated.strip() else "(nothing)"
            lines.append(f"| {m.number} | `{m.site.file}:{m.site.line}` | {m.site.kind} | `{_cell(m.site.original)}` | "
                         f"{mutated} | {m.outcome}{': ' + _cell(m.detail, 200) if m.detail else ''} |")
    return "\n".join(lines) + "\n"


def write(folder, mutants, notes):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "mutants.md"), "w") as file:
        file.write(markdown(mutants, notes))
    with open(os.path.join(folder, "mutants.csv"), "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "seed", "area", "file", "line", "kind", "original", "mutated", "outcome", "detail",
                       "seconds"])
        for m in mutants:
            rows.writerow([m.number, m.seed, area_of(m.site.file), m.site.file, m.site.line, m.site.kind,
                           m.site.original, m.site.mutated, m.outcome, m.detail, f"{m.seconds:.1f}"])
