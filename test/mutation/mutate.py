#!/usr/bin/env python3
"""Draws mutants over src/, runs the tests that reach them, and prints which ones no test notices.

    python3 test/mutation/mutate.py --seeds 1                 60 mutants of seed 1, at most an hour
    python3 test/mutation/mutate.py --seeds 1 2 3             60 mutants each, one build
    python3 test/mutation/mutate.py --seeds 1 --list          draws only
    python3 test/mutation/mutate.py --only 12                 mutant 12 of the last run once more, every test
    python3 test/mutation/mutate.py --apply 12                mutant 12 of the last run as a patch

See README.md beside this file.
"""

import argparse
import difflib
import fcntl
import os
import pickle
import re
import shlex
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
try:
    import build
    import draw
    import hunt
    import sites as s
    import suite
    import table
except ImportError as problem:
    sys.exit(f"mutate: {problem}; libclang for Python is needed: apt-get install python3-clang-14")


def arguments():
    top = os.path.dirname(os.path.dirname(HERE))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", default=["1"], metavar="SEED")
    parser.add_argument("--count", type=int, default=60, help="mutants per seed (60)")
    parser.add_argument("--areas", default=".*", metavar="REGEX", help="folders of src/, 'program' for its own files")
    parser.add_argument("--tests", default=".*", metavar="REGEX", help="CTest names that are run")
    parser.add_argument("--exclude", default="^$", metavar="REGEX", help="CTest names or labels that are not run")
    parser.add_argument("--max-ranks", type=int, default=4, help="tests of more processors are not run (4)")
    parser.add_argument("--minutes", type=float, help="time for everything (60 per seed)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processors to use (all)")
    parser.add_argument("--work", default=os.path.join(top, "build", "mutation"), metavar="FOLDER",
                        help="copy of the tree, its build and the results (build/mutation)")
    parser.add_argument("--out", metavar="FOLDER", help="where the tables are written (the work folder)")
    parser.add_argument("--equivalent", default=os.path.join(HERE, "equivalent.txt"), metavar="FILE",
                        help="mutants that change no behaviour, with the reason")
    parser.add_argument("--cmake", type=shlex.split, default=["-DGPTBENCH_CUDA=OFF"], metavar="ARGUMENTS",
                        help="for the configuration: --cmake='-DGPTBENCH_CUDA=ON -D...' (-DGPTBENCH_CUDA=OFF)")
    parser.add_argument("--list", action="store_true", help="draw only")
    parser.add_argument("--only", type=int, metavar="ID", help="run one mutant of the last run once more")
    parser.add_argument("--apply", type=int, metavar="ID", help="print one mutant of the last run as a patch")
    options = parser.parse_args()
    options.checkout, options.work = top, os.path.abspath(options.work)
    options.out = os.path.abspath(options.out or options.work)
    options.minutes = options.minutes or 60 * len(options.seeds)
    return options


def tell(text):
    print(text, flush=True)


def source_of(options, site):
    with open(os.path.join(options.work, "source", site.file), "rb") as file:
        return file.read()


def patch(options, site):
    """The plain mutation as `git apply` takes it."""
    text = source_of(options, site)
    before, after = (t.decode().splitlines(True) for t in (text, s.apply(text, site)))
    return "".join(difflib.unified_diff(before, after, "a/" + site.file, "b/" + site.file))


def drawn_mutants(options, copy):
    compiler = draw.Compiler(copy.source, copy.tree, copy.build, options.work)
    mutants = []
    for seed in options.seeds:
        found = draw.draw(copy.source, compiler, seed, options.count, options.jobs,
                          lambda name: re.fullmatch(options.areas, draw.area_of(name)), tell)
        if len(found) < options.count:
            tell(f"seed {seed}: only {len(found)} mutants")
        mutants += [hunt.Mutant(0, seed, site) for site in found]
    for number, mutant in enumerate(mutants, 1):
        mutant.number = number
    if not mutants:
        sys.exit("mutate: nothing to mutate in these areas")
    return mutants


def chosen_tests(options, copy):
    def wanted(test):
        names = [test.name, *test.labels]
        return (re.search(options.tests, test.name) and not re.match(suite.EXCLUDED, test.name) and
                test.processors <= options.max_ranks and not any(re.search(options.exclude, n) for n in names))

    tests = {name: test for name, test in suite.list_tests(copy.build).items() if wanted(test)}
    if not tests:
        sys.exit("mutate: no test is left")
    return tests


def compile_all(options, copy, mutants, targets):
    """Builds; mutants that the compiler refuses are taken out, and said to be so."""
    while True:
        active = {m.number: m.site for m in mutants if m.outcome != "does not compile"}
        copy.mutate(active)
        bad = copy.compile(targets, options.jobs, active)
        if not bad:
            return
        for mutant in mutants:
            if mutant.number in bad:
                mutant.outcome = "does not compile"
                tell(f"does not compile: {mutant.number} {mutant.site.file}:{mutant.site.line} {mutant.site.kind}")


def state_file(options):
    return os.path.join(options.work, "state.pickle")


def load_state(options):
    try:
        with open(state_file(options), "rb") as file:
            return pickle.load(file)
    except FileNotFoundError:
        sys.exit(f"mutate: no earlier run in {options.work}")


def mutant_of(state, number):
    for mutant in state["mutants"]:
        if mutant.number == number:
            return mutant
    sys.exit(f"mutate: no mutant {number} in the last run")


def run_one(options):
    """One mutant of the last run, in the build of that run: every test that reaches it."""
    state = load_state(options)
    mutant = mutant_of(state, options.only)
    mutant.outcome, mutant.detail, mutant.seconds, mutant.ran = "", "", 0.0, 0
    hunt.plan_tests(mutant, state["tests"], state["reached"])
    for cost, test, cases in mutant.tests:
        tell(f"reached by {test.name}" + (f" ({len(cases)} cases)" if cases is not None else "") + f", {cost:.1f} s")
    tell(patch(options, mutant.site))
    hunt.Hunt([mutant], options.work, options.jobs, time.monotonic() + 60 * options.minutes, tell).run()


def run_all(options):
    begin = time.monotonic()
    copy = build.Copy(options.checkout, options.work, options.cmake)
    copy.configure()
    mutants = drawn_mutants(options, copy)
    if options.list:
        for m in mutants:
            tell(f"{m.number} {m.seed} {m.site.file}:{m.site.line} {m.site.kind}: "
                 f"{' '.join(m.site.original.split())}  ->  {' '.join(m.site.mutated.split()) or '(nothing)'}")
        return
    tests = chosen_tests(options, copy)
    tell(f"{len(mutants)} mutants, {len(tests)} tests; building in {copy.build} (log: {copy.log})")
    compile_all(options, copy, mutants, suite.programs_of(tests.values(), copy.build))
    tests = {name: test for name, test in chosen_tests(options, copy).items() if test.command}
    tell(f"built after {(time.monotonic() - begin) / 60:.1f} min")
    reached, left_out = hunt.trace(tests, options.work, options.jobs, tell)
    for name, reason in sorted(left_out.items()):
        tell(f"not used: {name}: {reason}")
    equivalent = table.read_equivalents(options.equivalent)
    for mutant in mutants:
        hunt.plan_tests(mutant, tests, reached)
        for key in (mutant.site.key(), s.line_key(source_of(options, mutant.site), mutant.site)):
            if not mutant.outcome and key in equivalent:
                mutant.outcome, mutant.detail = "equivalent", equivalent[key]
    with open(state_file(options), "wb") as file:
        pickle.dump({"mutants": mutants, "tests": tests, "reached": reached}, file)
    hunt.Hunt(mutants, options.work, options.jobs, begin + 60 * options.minutes, tell).run()
    commit = subprocess.run(["git", "-C", options.checkout, "describe", "--always", "--dirty"],
                            stdout=subprocess.PIPE, text=True).stdout.strip()
    notes = [f"commit {commit}, seeds {' '.join(options.seeds)}, {options.count} mutants each",
             f"{len(reached)} tests, at most {options.max_ranks} processors each; not used because they fail or are "
             f"skipped without a mutant: {', '.join(sorted(left_out)) or 'none'}",
             f"{(time.monotonic() - begin) / 60:.0f} minutes on {options.jobs} processors"]
    table.write(options.out, mutants, notes)
    tell("\n" + table.markdown(mutants, notes))
    tell(f"written: {options.out}/mutants.md, {options.out}/mutants.csv")


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends what runs, as Ctrl-C does
    if options.apply is not None:
        sys.stdout.write(patch(options, mutant_of(load_state(options), options.apply).site))
    elif options.only is not None:
        run_one(options)
    else:
        os.makedirs(options.work, exist_ok=True)
        with open(os.path.join(options.work, "lock"), "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                sys.exit(f"mutate: another run uses {options.work}; name another folder with --work")
            run_all(options)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("mutate: interrupted")
