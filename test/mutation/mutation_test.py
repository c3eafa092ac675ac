"""Tests of the mutation tool on a small source tree.

usage: mutation_test.py COMPILER
"""

import json
import os
import subprocess
import sys
import unittest

import build
import draw
import hunt
import sites as s
import suite
import table

COMPILER = sys.argv.pop(1)
HEADER = """#pragma once
#include <algorithm>
namespace small {
inline int twice(int a) { return 2 * a; }
}  // namespace small
"""
SOURCE = """#include "small/small.h"

extern "C" int printf(const char*, ...);

namespace {
constexpr int limit = 7;
constexpr bool even(int n) { return n % 2 == 0; }
static_assert(even(2 + 2), "never drawn: 1 + 1");
int buffer[limit + 1];

struct Range {
  int first = 3;
  int last = 9;
};

int count(const Range& r, bool all) {
  int n = 0;
  for (int i = r.first; i <= r.last; ++i) {  // i <= 2 + 2
    if (i == 5 && !all) continue;
    n += i < limit ? i : std::min(i, limit + 1);
    buffer[0] = n;
  }
  if (n < 0) throw n + 1000;
  return n;
}

int difference(int a, int b) { return a - b; }
}  // namespace

int main(int argc, char** argv) {
  const bool all = argc > 1 && argv[1] != nullptr;
  const int n = count({}, all);
  printf("%d %d %d %d\\n", n, buffer[0], difference(small::twice(21), 4), even(argc) ? 1 : 0);
  return 0;
}
"""


def setUpModule():
    os.makedirs("src/small", exist_ok=True)
    os.makedirs("include_roots/small", exist_ok=True)
    if not os.path.exists("include_roots/small/small"):
        os.symlink(os.path.abspath("src/small"), "include_roots/small/small")
    for name, text in (("src/small/small.h", HEADER), ("src/small/main.cpp", SOURCE)):
        with open(name, "w") as file:
            file.write(text)
    main = os.path.abspath("src/small/main.cpp")
    command = f"{COMPILER} -I{os.path.abspath('include_roots/small')} -std=c++17 -o main.o -c {main}"
    with open("compile_commands.json", "w") as file:
        json.dump([{"directory": os.getcwd(), "command": command, "file": main}], file)


def compiler():
    tree = os.getcwd()
    return draw.Compiler(tree, tree, tree, os.path.join(tree, "work"))


def drawn(seed, count):
    return draw.draw(os.getcwd(), compiler(), seed, count, 2)


def compiling_sites():
    """{number: site} of every site of both files that compiles, and {file: numbers}."""
    arguments, found = compiler(), {}
    for name in ("src/small/main.cpp", "src/small/small.h"):
        path = os.path.abspath(name)
        with open(path, "rb") as file:
            text = file.read()
        unit = s.parse(path, arguments.arguments(name), text)
        for site in s.find_sites(unit, path, name, text):
            unit.reparse([(path, s.render(text, {1: site}).decode())])
            if not s.errors(unit):
                found[len(found) + 1] = site
    return found


class Drawing(unittest.TestCase):
    def test_seed_decides(self):
        self.assertEqual(drawn("3", 6), drawn("3", 6))
        self.assertEqual(drawn("3", 6)[:3], drawn("3", 3))
        self.assertNotEqual(drawn("3", 6), drawn("4", 6))


class Switching(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Every site of both files in one program; switches nest."""
        cls.sites = compiling_sites()
        os.makedirs("mutated/small", exist_ok=True)
        for name in ("src/small/main.cpp", "src/small/small.h"):
            of_file = {number: site for number, site in cls.sites.items() if site.file == name}
            with open(name, "rb") as file, open(name.replace("src", "mutated"), "wb") as out:
                out.write(s.render(file.read(), of_file))
        subprocess.run([COMPILER, "-std=c++17", "-Imutated", "mutated/small/main.cpp", "-o", "switched"], check=True)

    def test_only_code_is_mutated(self):
        lines = SOURCE.split("\n")
        for site in self.sites.values():
            if site.file.endswith("main.cpp"):
                for constant in ("static_assert", "constexpr int limit", "int buffer["):
                    self.assertNotIn(constant, lines[site.line - 1])
                self.assertNotIn("1000", site.original)
            for part in site.parts:
                text = (SOURCE if site.file.endswith("main.cpp") else HEADER)[part.start:part.end]
                self.assertNotIn("//", text)
        kinds = {site.kind for site in self.sites.values()}
        self.assertEqual(kinds, {
            "arithmetic", "assigned, not accumulated", "bound", "comparison", "condition false", "condition true",
            "constant", "dropped bound", "dropped condition", "dropped negation", "dropped statement",
            "dropped term", "equality", "logic", "returned value", "swapped arguments"})
        self.assertTrue(any(site.file.endswith(".h") for site in self.sites.values()))

    def output(self, **environment):
        done = subprocess.run(["./switched"], stdout=subprocess.PIPE, text=True, timeout=20,
                              env={**os.environ, **environment})
        return done.stdout if done.returncode == 0 else str(done.returncode)

    def number(self, kind, original, mutated):
        return str(next(n for n, x in self.sites.items() if (x.kind, x.original, x.mutated) == (kind, original, mutated)))

    def test_active_mutant_changes_the_result(self):
        # 3 + 4 + 6 below the limit (5 is left out), then min(i, 8) of 7, 8 and 9.
        self.assertEqual(self.output(), "36 36 38 0\n")
        for kind, original, mutated, expected in (
                ("arithmetic", "a - b", "a + b", "36 36 46 0\n"),
                ("comparison", "i <= r.last", "i < r.last", "28 28 38 0\n"),
                ("comparison", "i < limit", "i <= limit", "36 36 38 0\n"),  # equivalent: min(7, 8) is 7
                ("constant", "limit", "limit + 1", "36 36 38 0\n"),
                ("bound", "std::min(i, limit + 1)", "std::max(i, limit + 1)", "38 38 38 0\n"),
                ("dropped condition", "i == 5 && !all", "i == 5", "36 36 38 0\n"),
                ("dropped statement", "buffer[0] = n", "", "36 0 38 0\n"),
                ("assigned, not accumulated", "n += i < limit ? i : std::min(i, limit + 1)",
                 "n = i < limit ? i : std::min(i, limit + 1)", "8 8 38 0\n"),
                ("swapped arguments", "small::twice(21), 4", "4, small::twice(21)", "36 36 -38 0\n"),
                ("constant", "9", "10", "44 44 38 0\n"),
                ("equality", "n % 2 == 0", "n % 2 != 0", "36 36 38 1\n"),  # in a constexpr function, at run time
                ("dropped term", "2 * a", "a", "36 36 17 0\n")):
            with self.subTest(kind=kind, original=original):
                self.assertEqual(self.output(GPTBENCH_MUTANT=self.number(kind, original, mutated)), expected)

    def test_trace_names_what_is_reached(self):
        if os.path.exists("trace"):
            os.remove("trace")
        self.output(GPTBENCH_MUTATION_TRACE=os.path.abspath("trace"))
        with open("trace", "a") as file:
            file.write("R 2R 70000 A.B\n")  # of two processes, one of which was killed
        reached, _ = suite.read_trace("trace")
        self.assertEqual(reached.pop(70000), {"A.B"})
        self.assertEqual(reached[int(self.number("arithmetic", "a - b", "a + b"))], {""})
        self.assertEqual(max(len(cases) for cases in reached.values()), 1)
        self.assertLess(len(reached), len(self.sites))

    def test_plain_text(self):
        site = self.sites[int(self.number("swapped arguments", "small::twice(21), 4", "4, small::twice(21)"))]
        self.assertIn(b"difference((4), (small::twice(21)))", s.apply(SOURCE.encode(), site))


class Hunting(unittest.TestCase):
    def run_mutants(self, script):
        site = s.Site("src/small/main.cpp", 1, "constant", (s.Part(0, 1, "1"),), "0", "1")
        mutants = [hunt.Mutant(n, "1", site) for n in (1, 2, 3)]
        tests = {"small": suite.Test("small", ["sh", "-c", script], {}, 60, 1, [])}
        reached = {"small": {1: {""}, 2: {""}}}
        for mutant in mutants:
            hunt.plan_tests(mutant, tests, reached)
        work = os.path.abspath("work")
        os.makedirs(work, exist_ok=True)
        hunt.Hunt(mutants, work, 2, float("inf"), lambda text: None).run()
        return mutants

    def test_outcomes(self):
        mutants = self.run_mutants('test "$GPTBENCH_MUTANT" != 2')
        self.assertEqual([m.outcome for m in mutants], ["survived", "killed", "not reached"])
        self.assertEqual(table.score(mutants), (1, 3))
        text = table.markdown(mutants, ["note"])
        self.assertIn("| small | 1 | 2 | 0 | 33 % |", text)

    def test_hang_and_what_it_leaves(self):
        test = suite.Test("hang", ["sh", "-c", "sleep 600 & sleep 600"], {}, 60, 1, [])
        mark = str(os.getpid())
        result = suite.run_test(test, os.path.abspath("work/hang"), {"GPTBENCH_MUTATION_TEST": mark}, 1)
        self.assertEqual(result.outcome, "hang")
        self.assertEqual(suite._processes_of("GPTBENCH_MUTATION_TEST=" + mark), [])

    def test_equivalents(self):
        with open("equivalent.txt", "w") as file:
            file.write("# comment\nsrc/small/main.cpp | constant | 0 | 1 | why\n")
        site = s.Site("src/small/main.cpp", 1, "constant", (s.Part(0, 1, "1"),), "0", "1")
        self.assertEqual(table.read_equivalents("equivalent.txt")[site.key()], "why")
        text = b"int a = 0;\nint  b = 0;  // why\n"
        other = s.Site("src/small/main.cpp", 2, "constant", (s.Part(20, 21, "1"),), "0", "1")
        self.assertEqual(s.line_key(text, other), ("src/small/main.cpp", "constant", "int b = 0;", "int b = (1);"))


class Listener(unittest.TestCase):
    def test_test_programs_are_extended(self):
        with open(os.path.join(os.environ["GPTBENCH_SOURCE_DIR"], "cmake/GptbenchTest.cmake")) as file:
            self.assertIn("case_listener.cpp", build.Copy._listen(file.read()))


if __name__ == "__main__":
    unittest.main()
