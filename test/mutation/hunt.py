"""Runs the tests that reach each mutant, cheapest first, until one fails."""

import os
import threading
import time
from dataclasses import dataclass, field

import sites as s
import suite

# Tests of an area come first: they are the most likely to notice. Other areas' folders are named alike.
TESTS_OF = {"device": ("kernels_",), "engine": ("parallel_", "oracle_golden"), "program": ("system_",),
            "post": ("post_", "tables")}


@dataclass
class Mutant:
    number: int
    seed: str
    site: s.Site
    outcome: str = ""  # killed, hang, survived, not reached, equivalent, does not compile; "": not run
    detail: str = ""
    seconds: float = 0.0
    ran: int = 0
    tests: list = field(default_factory=list)  # (cost in seconds, test, cases or None), cheapest first


def plan_tests(mutant, tests, reached):
    """Sets mutant.tests; `reached` is {test: {site: cases}}."""
    area = os.path.dirname(mutant.site.file).split("/")[1] if mutant.site.file.count("/") > 1 else "program"
    planned = []
    for test in tests.values():
        cases = reached.get(test.name, {}).get(mutant.number)
        if cases is None:
            continue
        cost = test.seconds
        if "" in cases or not test.cases or sum(map(len, cases)) > 60000:
            cases = None  # all of them
        else:
            cost = min(cost, 0.2 + sum(test.cases.get(c, 0.0) for c in cases))
        near = test.name.startswith(TESTS_OF.get(area, (area + "_",)))
        planned.append((cost * (0.3 if near else 1.0), cost, test, cases))
    mutant.tests = [entry[1:] for entry in sorted(planned, key=lambda e: (e[0], e[2].name))]


class Hunt:
    """Worker threads share the mutants: the one that has had the least time is next, so that a survivor
    that many slow tests reach does not keep the others waiting when time is short."""

    def __init__(self, mutants, work, jobs, deadline, tell):
        self.mutants, self.work, self.jobs, self.deadline, self.tell = mutants, work, jobs, deadline, tell
        self.waiting = [m for m in mutants if not m.outcome]
        self.busy, self.done = 0, len(mutants) - len(self.waiting)
        self.changed = threading.Condition()
        self.processors = suite.Processors(jobs)

    def run(self):
        for mutant in list(self.waiting):
            if not mutant.tests:
                self._finish(mutant, "not reached", "no test")
                self.waiting.remove(mutant)
        suite.run_threads(self._worker, self.jobs)
        for mutant in self.waiting:
            self._finish(mutant, "survived", f"{mutant.ran} of {mutant.ran + len(mutant.tests)} tests, then time was out")

    def _next(self):
        with self.changed:
            while True:
                if suite.STOPPED.is_set() or time.monotonic() > self.deadline or not (self.waiting or self.busy):
                    return None
                if self.waiting:
                    mutant = min(self.waiting, key=lambda m: m.seconds)
                    self.waiting.remove(mutant)
                    self.busy += 1
                    return mutant
                self.changed.wait(1)

    def _worker(self, worker):
        while True:
            mutant = self._next()
            if mutant is None:
                return
            self._step(mutant, worker)
            with self.changed:
                self.busy -= 1
                if not mutant.outcome:
                    self.waiting.append(mutant)
                self.changed.notify_all()

    def _step(self, mutant, worker):
        cost, test, cases = mutant.tests.pop(0)
        folder = os.path.join(self.work, "runs", str(worker), test.name)
        variables = {"GPTBENCH_MUTANT": str(mutant.number), "GTEST_FAIL_FAST": "0" if "mpi" in test.labels else "1"}
        if cases is not None:
            variables["GTEST_FILTER"] = ":".join(sorted(cases))
        # A command that starts ranks may fail for reasons of the machine: such a failure counts when it comes twice.
        attempts = 2 if "mpi" in test.labels else 1
        taken = self.processors.take(test.processors)
        try:
            for _ in range(attempts):
                result = suite.run_test(test, folder, variables, min(test.timeout, 30 + 8 * cost))
                mutant.seconds += result.seconds
                if result.outcome != "failed":
                    break
        finally:
            self.processors.give(taken)
        mutant.ran += 1
        if result.outcome in ("failed", "hang"):
            shown = f"{test.name}" + (f" ({next(iter(cases))})" if cases is not None and len(cases) == 1 else "")
            self._finish(mutant, "killed" if result.outcome == "failed" else "hang", shown)
        elif not mutant.tests:
            self._finish(mutant, "survived", f"{mutant.ran} test" + "s" * (mutant.ran != 1))

    def _finish(self, mutant, outcome, detail):
        with self.changed:
            mutant.outcome, mutant.detail = outcome, detail
            self.done += 1
            rest = sum(cost for m in self.mutants if not m.outcome for cost, _, _ in m.tests) / self.jobs
            left = max(0.0, min(rest, self.deadline - time.monotonic()))
            self.tell(f"[{self.done}/{len(self.mutants)}] at most {left / 60:.0f} min left | {mutant.number} "
                      f"{mutant.site.file}:{mutant.site.line} {mutant.site.kind}: {outcome}"
                      + (f" by {detail}" if outcome in ("killed", "hang") else f" ({detail})"))


def trace(tests, work, jobs, tell):
    """Runs every test once without a mutant: sets its seconds and cases, and returns {test: {site: cases}}
    of those that pass and {test: reason} of the others."""
    reached, left_out, lock = {}, {}, threading.Lock()
    queue = sorted(tests.values(), key=lambda t: (-t.processors, t.name))
    processors, begin = suite.Processors(jobs), time.monotonic()
    folder = os.path.join(work, "trace")
    os.makedirs(folder, exist_ok=True)

    def worker(number):
        while True:
            with lock:
                if not queue or suite.STOPPED.is_set():
                    return
                test = queue.pop(0)
            path = os.path.join(folder, test.name)
            if os.path.exists(path):
                os.remove(path)
            taken = processors.take(test.processors)
            result = suite.run_test(test, os.path.join(work, "runs", str(number), test.name),
                                    {"GPTBENCH_MUTATION_TRACE": path}, test.timeout)
            processors.give(taken)
            with lock:
                test.seconds = result.seconds
                sites_reached, test.cases = suite.read_trace(path)
                if result.outcome == "passed":
                    reached[test.name] = sites_reached
                else:
                    left_out[test.name] = f"{result.outcome} without a mutant: {result.output.strip()[-300:]}"
                minutes = (time.monotonic() - begin) / 60
                tell(f"tests without a mutant: {len(reached) + len(left_out)} of {len(tests)}, {minutes:.1f} min; "
                     f"{test.name}: {result.outcome}, {result.seconds:.1f} s, {len(sites_reached)} sites")

    suite.run_threads(worker, jobs)
    return reached, left_out
