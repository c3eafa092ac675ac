"""The mutated copy of the source tree and its build folder; the checkout itself is never changed."""

import os
import re
import shutil
import signal
import subprocess

import sites as s

LISTENER = "  target_sources(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/test/mutation/case_listener.cpp)\n"


class Copy:
    """`source` is the checkout as it was when the run began, `tree` the mutated copy, `build` its build
    folder. All stay between runs, so that only what changed is compiled. The layout of the copy is that
    of the presets, so that ccache recognises unchanged files."""

    def __init__(self, checkout, work, cmake_arguments):
        self.checkout, self.source, self.tree = checkout, os.path.join(work, "source"), os.path.join(work, "tree")
        self.build = os.path.join(self.tree, "build", "release")
        self.cmake_arguments = cmake_arguments
        self.log = os.path.join(work, "build.log")
        self.names = []

    def configure(self):
        """Takes over the checkout, its sources only where the copy has none yet, and configures."""
        listed = subprocess.run(["git", "-C", self.checkout, "ls-files", "-co", "--exclude-standard", "-z"],
                                check=True, stdout=subprocess.PIPE).stdout.decode()
        self.names = [n for n in listed.split("\0") if n and os.path.exists(os.path.join(self.checkout, n))]
        self._update(self.checkout, self.source, self.names, {})
        with open(os.path.join(self.source, "cmake/GptbenchTest.cmake")) as file:
            changed = {"cmake/GptbenchTest.cmake": self._listen(file.read()).encode()}
        self._update(self.source, self.tree, [n for n in self.names if not re.match(r"src/.*\.(h|cpp)$", n) or
                                              not os.path.exists(os.path.join(self.tree, n))], changed)
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        if os.path.exists(os.path.join(self.build, "CMakeCache.txt")):
            generator = []
        if self._run(["cmake", "-S", self.tree, "-B", self.build, *generator, "-DCMAKE_BUILD_TYPE=Release",
                      "-DGPTBENCH_WERROR=OFF", "-DGPTBENCH_TOP_LINKS=OFF", *self.cmake_arguments]) != 0:
            raise SystemExit(f"mutate: the copy cannot be configured: {self.log}")

    def mutate(self, sites_by_id):
        """Brings the files of src/ up to date, with the switches of the mutants."""
        by_file = {}
        for number, site in sites_by_id.items():
            by_file.setdefault(site.file, {})[number] = site
        changed = {}
        for name, of_file in by_file.items():
            include = os.path.relpath("test/mutation/mutant.h", os.path.dirname(name))
            with open(os.path.join(self.source, name), "rb") as file:
                changed[name] = s.render(file.read(), of_file, include)
        self._update(self.source, self.tree, [n for n in self.names if n.startswith("src/")], changed)

    def compile(self, targets, jobs, sites_by_id):
        """Builds the targets; returns the ids of mutants that do not compile (then nothing is built)."""
        command = ["cmake", "--build", self.build, "--parallel", str(jobs), "--target", *targets]
        if self._run(command) == 0:
            return []
        with open(self.log, errors="replace") as log:
            output = log.read()
        bad, of_file = set(), set()
        for name, line, severity in re.findall(r"([\w./-]+\.(?:h|cpp)):(\d+):\d+: (error|note)", output):
            path = os.path.realpath(os.path.join(self.build, name))
            for number, site in sites_by_id.items():
                if os.path.join(os.path.realpath(self.tree), site.file) == path:
                    # The #include in front moves every line by one.
                    if site.line <= int(line) - 1 <= site.line + site.original.count("\n"):
                        bad.add(number)
                    elif severity == "error":
                        of_file.add(number)
        bad = bad or of_file  # an error elsewhere in the file: none of its mutants is used
        if not bad:
            raise SystemExit(f"mutate: the mutated tree does not compile: {self.log}")
        return sorted(bad)

    def _update(self, origin, target, names, changed):
        """Writes files whose contents differ (`changed` has those that are not the origin's), and removes
        what the checkout no longer has."""
        for name in names:
            path, contents = os.path.join(target, name), changed.get(name)
            if contents is None:
                with open(os.path.join(origin, name), "rb") as file:
                    contents = file.read()
            if not os.path.exists(path) or open(path, "rb").read() != contents:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(contents)
                shutil.copymode(os.path.join(origin, name), path)
        known = set(self.names)
        for folder in ("src", "test", "cmake", "cuda", "input", "jobscripts", "doc"):
            for at, _, files in os.walk(os.path.join(target, folder)):
                for file in files:
                    if os.path.relpath(os.path.join(at, file), target) not in known:
                        os.remove(os.path.join(at, file))

    @staticmethod
    def _listen(text):
        program = "  add_executable(test_${name} ${ARG_SOURCES})\n"
        if program not in text:
            raise SystemExit("mutate: cmake/GptbenchTest.cmake no longer adds test programs as build.py expects")
        return text.replace(program, program + LISTENER)

    def _run(self, command):
        """The exit status; the output goes to the log, and an interrupt ends all processes."""
        with open(self.log, "w") as log:
            process = subprocess.Popen(["nice", *command], stdout=log, stderr=subprocess.STDOUT,
                                       start_new_session=True)
        try:
            return process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            raise
