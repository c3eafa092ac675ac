#!/usr/bin/env python3
"""lint_aggregates.py TREE: no braces of src/ and cuda/ give more than five values without names.

Such values could be swapped and still compile: assign fields by name, or give the struct parts.
Lists are left alone: arrays, std::vector, loops over braces, and tables, whose rows have a heading
in the comment above the table.
"""
import pathlib
import re
import sys

LIMIT = 5
BLANKED = re.compile(
    r'//[^\n]*|/\*.*?\*/|(?<!\w)R"(?P<d>\w*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<!\w)'(?:\\.|[^'\\\n])+'",
    re.S,
)
LIST = re.compile(
    r"(?:\[\w*\]\s*=?|\bfor \([^;{}]*:|\b(?:vector|initializer_list|array)<[^;{}]*>(?:\s+\w+)?\s*=?"
    r"|\.(?:insert|assign)\((?:[^;{}]*,)?|\brows\.push_back\(|\bauto \w+ =|\benum\b[^;{}()]*)\s*$"
)
NO_VALUE = re.compile(r"(?:\)|\bconst|\boverride|\bnamespace(?:\s+[\w:]+)?)\s*$")  # but a body
LITERAL = re.compile(r"""-?[\d.][\w.']*|["'][^{}(]*["']""")
ROW = re.compile(r"\{|[a-z_]+\(")


def blank(match):
    text = match.group()
    quote = text[0] if text[0] in "\"'" else ""
    return quote + re.sub(r"[^\n]", " ", text[len(quote):len(text) - len(quote)]) + quote


def values(body):
    """The values of a brace, split at its own commas; none where it holds statements."""
    found, depth, begin = [], 0, 0
    for match in re.finditer(r"[,;(){}\[\]]", body):
        mark = match.group()
        if depth == 0 and mark == ";":
            return []
        if depth == 0 and mark == ",":
            found.append(body[begin:match.start()].strip())
            begin = match.end()
        elif mark not in ",;":
            depth += 1 if mark in "({[" else -1
    last = body[begin:].strip()
    return found + [last] if last else found


def is_list(text, begin, parts):
    if LIST.search(text, max(0, begin - 200), begin):
        return True
    if all(LITERAL.fullmatch(part) for part in parts):
        return True
    return any(part[0] == "{" for part in parts) and all(ROW.match(part) for part in parts)


def heading_above(source, begin):
    """Whether the line that begins the statement of a table follows a comment."""
    lines = source[:begin].split("\n")
    return any(line.lstrip().startswith("//") for line in lines[-4:-1])


def findings(source):
    text = BLANKED.sub(blank, source)
    opened = []
    for match in re.finditer(r"[{}]", text):
        if match.group() == "{":
            opened.append(match.start())
            continue
        if not opened:
            continue
        begin = opened.pop()
        body = text[begin + 1:match.start()]
        if body.count(",") < LIMIT or NO_VALUE.search(text, max(0, begin - 80), begin):
            continue
        parts = values(body)
        if len(parts) <= LIMIT:
            continue
        if is_list(text, begin, parts):
            continue
        if opened and LIST.search(text, max(0, opened[-1] - 200), opened[-1]):
            if heading_above(source, opened[-1]):
                continue
        yield text.count("\n", 0, begin) + 1, len(parts)


def main():
    tree = pathlib.Path(sys.argv[1])
    status = 0
    for folder in ("src", "cuda"):
        for path in sorted((tree / folder).rglob("*")):
            if path.suffix not in (".h", ".cpp", ".cu", ".cuh"):
                continue
            for line, count in findings(path.read_text()):
                print(f"{path.relative_to(tree)}:{line}: {count} values without names")
                status = 1
    return status


sys.exit(main())
