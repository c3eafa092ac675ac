"""Runs tests of a CTest build folder one by one, with their own folders, limits and environment."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
import uuid
from dataclasses import dataclass, field

# Tests that look at the source, the build or the machine's tools, not at the behaviour of src/.
EXCLUDED = (r"^(aarch64|bench_.*|build_layers|clean_clone|docs_.*|ecosystem_.*|emulation.*|emulated_.*|fuzz_.*|gpu.*|lint_.*"
            r"|mpi_main|mutation_tool|oracle_self|oracle_golden_origin|script_.*|slurm_.*|system_bundle"
            r"|system_cuda_built)$")


@dataclass
class Test:
    name: str
    command: list
    environment: dict
    timeout: float
    processors: int
    labels: list
    seconds: float = 0.0
    cases: dict = field(default_factory=dict)  # GoogleTest case -> seconds


@dataclass
class Result:
    outcome: str  # passed, failed, skipped or hang
    seconds: float
    output: str


def list_tests(build):
    """Every test of the build folder, by name; the command of a program that is not yet built is empty."""
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True,
                           stdout=subprocess.PIPE, text=True).stdout
    tests = {}
    for entry in json.loads(shown)["tests"]:
        properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
        environment = dict(pair.split("=", 1) for pair in properties.get("ENVIRONMENT", []))
        tests[entry["name"]] = Test(entry["name"], entry.get("command", []), environment,
                                    float(properties.get("TIMEOUT", 900)), int(properties.get("PROCESSORS", 1)),
                                    properties.get("LABELS", []))
    return tests


def programs_of(tests, build):
    """Names of the build targets that the tests start: gptbench_test(NAME) builds test_NAME, and the
    commands of the others name programs of the build folder, and libraries to preload."""
    prefix, names = os.path.join(build, ""), set()
    for test in tests:
        if not test.command:
            names.add("test_" + test.name)
        for word in test.command:
            path = word.split("=")[-1]
            if path.startswith(prefix):
                names.add(re.sub(r"^lib(.*)\.so$", r"\1", os.path.basename(path)))
    shown = subprocess.run(["cmake", "--build", build, "--target", "help"], check=True, stdout=subprocess.PIPE,
                           text=True).stdout
    return sorted(names & set(re.findall(r"[\w.]+", shown)))


# A mutant may fill memory or disks: it is the first to be killed, and its files end at some GiB.
LIMITS = ("ulimit -c 0; ulimit -f 8388608; echo 900 2>/dev/null >/proc/self/oom_score_adj; "
          'exec nice -n 5 "$@"')


def _processes_of(mark):
    """Processes whose environment holds the mark: what a test started and left."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if mark.encode() in file.read():
                        found.append(int(name))
            except OSError:
                pass
    return found


RUNNING = {}  # process -> mark
STOPPED = threading.Event()


def stop():
    """Ends the tests that run, and starts no more."""
    STOPPED.set()
    for process, mark in list(RUNNING.items()):
        _kill(process, mark)


def _kill(process, mark):
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            pass
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        left = _processes_of(mark)
        if not left:
            break
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.05)
    process.wait()


def run_test(test, folder, variables, timeout):
    """Runs the test in `folder`, which is made anew; `variables` are added to its environment."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    mark = "GPTBENCH_MUTATION_PROCESS=" + uuid.uuid4().hex
    environment = {**os.environ, **test.environment, **variables}
    environment.update([mark.split("=")])
    log = folder + ".log"
    begin = time.monotonic()
    with open(log, "wb") as out:
        process = subprocess.Popen(["sh", "-c", LIMITS, "sh", *test.command], cwd=folder, env=environment,
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        RUNNING[process] = mark
        try:
            status = process.wait(timeout)
            outcome = {0: "passed", 77: "skipped"}.get(status, "failed")
        except subprocess.TimeoutExpired:
            outcome = "hang"
        finally:
            _kill(process, mark)
            del RUNNING[process]
    with open(log, "rb") as file:
        file.seek(max(0, os.path.getsize(log) - 4000))
        output = file.read().decode(errors="replace")
    shutil.rmtree(folder, ignore_errors=True)
    return Result(outcome, time.monotonic() - begin, output)


def run_threads(target, count):
    """Runs target(0) ... target(count - 1) at the same time; an interrupt ends their tests."""
    threads = [threading.Thread(target=target, args=(k,)) for k in range(count)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException:
        stop()
        raise


class Processors:
    """Counts the processors in use: a test of more ranks than processors runs alone, as with CTest."""

    def __init__(self, count):
        self.count, self.free = count, count
        self.changed, self.turn = threading.Condition(), threading.Lock()

    def take(self, wanted):
        wanted = min(wanted, self.count)
        with self.turn, self.changed:  # first come, first served: a large test is not overtaken for ever
            self.changed.wait_for(lambda: self.free >= wanted)
            self.free -= wanted
        return wanted

    def give(self, taken):
        with self.changed:
            self.free += taken
            self.changed.notify_all()


def read_trace(path):
    """({site: set of cases}, {case: seconds}) of a trace file of mutant.h; case "" is outside of a case."""
    reached, seconds = {}, {}
    if os.path.exists(path):
        with open(path, errors="replace") as file:
            for line in file:
                # A process that is killed while it writes leaves the beginning of a line before the next one.
                site = re.search(r"R (\d+) (\S*)\n$", line)
                case = re.search(r"T (\S+) (\d+)\n$", line)
                if site:
                    reached.setdefault(int(site[1]), set()).add(site[2])
                elif case:
                    seconds[case[1]] = max(seconds.get(case[1], 0.0), int(case[2]) / 1000)
    return reached, seconds
