"""Draws mutants over a source tree: code lines uniformly, then one site of the line."""

import glob
import json
import multiprocessing
import os
import random
import re
import shlex
import shutil
import signal

import sites as s


def source_files(tree):
    """Files of src/ that are compiled or included, relative to the tree."""
    found = []
    for folder, _, names in os.walk(os.path.join(tree, "src")):
        found += [os.path.relpath(os.path.join(folder, n), tree) for n in names if n.endswith((".cpp", ".h"))]
    return sorted(found)


def code_lines(text):
    """Numbers of the lines that hold code, comments and preprocessor lines left out."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    code = []
    for number, line in enumerate(text.split("\n"), 1):
        line = re.sub(r"//.*", "", line).strip()
        if re.search(r"\w", line) and not line.startswith("#"):
            code.append(number)
    return code


def area_of(name):
    parts = name.split("/")
    return parts[1] if len(parts) > 2 else "program"


class Compiler:
    """Arguments of libclang for every file of the checkout. They are the compile commands of `build`, a
    build folder of `copy`, with the include roots (cmake/GptbenchLayer.cmake) of the checkout."""

    def __init__(self, source, copy, build, work):
        self.of_folder, self.of_file = {}, {}
        built, roots = os.path.join(build, "include_roots"), os.path.join(work, "include_roots")
        shutil.rmtree(roots, ignore_errors=True)
        for link in glob.glob(os.path.join(built, "*", "*")):
            ours = os.path.join(roots, os.path.relpath(link, built))
            os.makedirs(os.path.dirname(ours))
            os.symlink(os.path.realpath(link).replace(os.path.realpath(copy), source, 1), ours)
        with open(os.path.join(build, "compile_commands.json")) as commands:
            for command in json.load(commands):
                name = os.path.relpath(command["file"], copy)
                if name.startswith("src/"):
                    words = [word.replace(built, roots) if built in word else word.replace(copy, source)
                             for word in shlex.split(command["command"])]
                    arguments = self._strip(words)
                    self.of_file[name] = arguments
                    self.of_folder.setdefault(os.path.dirname(name), arguments)

    @staticmethod
    def _strip(words):
        kept, skip = [], False
        for word in words[next(i for i, w in enumerate(words) if w.startswith("-")):]:
            if skip or word in ("-c", "-o", "-MD", "-MMD", "-MF", "-MT"):
                skip = word in ("-o", "-MF", "-MT")
            elif word.startswith("-") or kept and kept[-1] == "-isystem":
                kept.append(word)
        return kept + ["-Wno-everything", "-Werror=vla"]

    def arguments(self, name):
        """None for a file that this build does not compile."""
        if name in self.of_file:
            return self.of_file[name]
        folder = os.path.dirname(name)
        if not name.endswith(".h") or folder not in self.of_folder:
            return None
        return ["-x", "c++", *self.of_folder[folder]]


def _sites_of_lines(job):
    """For every line drawn of one file: the site chosen, or None. `seed` decides, not the order."""
    tree, name, arguments, seed, lines = job
    path = os.path.join(tree, name)
    with open(path, "rb") as file:
        text = file.read()
    unit = s.parse(path, arguments, text)
    if s.errors(unit):
        return name, {}, f"{name}: {s.errors(unit)[0]}"
    found = s.find_sites(unit, path, name, text)
    chosen = {}
    for line in lines:
        rng = random.Random(f"{seed}:{name}:{line}")
        by_kind = {}
        for site in found:
            if site.line == line:
                by_kind.setdefault(site.kind, []).append(site)
        for _ in range(4):  # what does not compile is drawn anew
            if not by_kind:
                break
            kind = rng.choice(sorted(by_kind))
            site = by_kind[kind].pop(rng.randrange(len(by_kind[kind])))
            if not by_kind[kind]:
                del by_kind[kind]
            # Often the only site of a line, and easily noticed: taken half as often.
            if kind == "dropped statement" and rng.random() < 0.5:
                continue
            unit.reparse([(path, s.render(text, {1: site}).decode())])
            if not s.errors(unit):
                chosen[line] = site
                break
    return name, chosen, None


def draw(tree, compiler, seed, count, jobs, wanted=lambda name: True, tell=lambda text: None):
    """The first `count` mutants of the seed, in the order drawn; a smaller count gives the first ones."""
    lines = []
    for name in source_files(tree):
        if wanted(name) and compiler.arguments(name) is not None:
            with open(os.path.join(tree, name)) as file:
                lines += [(name, line) for line in code_lines(file.read())]
    random.Random(str(seed)).shuffle(lines)
    drawn, begin = [], 0
    with multiprocessing.Pool(jobs, signal.signal, (signal.SIGTERM, signal.SIG_DFL)) as pool:
        while len(drawn) < count and begin < len(lines):
            batch = lines[begin:begin + 2 * (count - len(drawn)) + 4]
            begin += len(batch)
            files = {}
            for name, line in batch:
                files.setdefault(name, []).append(line)
            chosen = {}
            work = [(tree, name, compiler.arguments(name), seed, numbers) for name, numbers in files.items()]
            for done, (name, of_lines, problem) in enumerate(pool.imap_unordered(_sites_of_lines, work), 1):
                chosen.update({(name, line): site for line, site in of_lines.items()})
                if problem or done % 10 == 0 or done == len(work):
                    tell(f"seed {seed}: {done} of {len(work)} files read" + (f"; {problem}" if problem else ""))
            drawn += [chosen[place] for place in batch if place in chosen]
    return drawn[:count]
