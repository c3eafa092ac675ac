"""Finds the places of a C++ file where a realistic mistake can be made, with libclang.

A Site replaces one or more expressions by others of the same type. It is rendered as a run-time
switch, `(gptbench_mutant(17) ? (mutated) : (original))`, or as plain mutated text. Switches nest.
"""

import os
import re
import sys
from dataclasses import dataclass

try:
    import clang.cindex as ci
except ImportError:  # Debian's package belongs to Debian's own Python
    sys.path.append("/usr/lib/python3/dist-packages")
    import clang.cindex as ci

MUTANT_H = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mutant.h")
K, T = ci.CursorKind, ci.TypeKind

INTEGERS = {T.CHAR_U, T.UCHAR, T.USHORT, T.UINT, T.ULONG, T.ULONGLONG, T.CHAR_S, T.SCHAR, T.SHORT,
            T.INT, T.LONG, T.LONGLONG}
REALS = {T.HALF, T.FLOAT, T.DOUBLE, T.LONGDOUBLE}
DEPENDENT = {T.DEPENDENT, T.UNEXPOSED}
NUMBERS = INTEGERS | REALS | DEPENDENT
SCALARS = NUMBERS | {T.BOOL, T.POINTER, T.ENUM}

OFF_BY_ONE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
OPPOSITE = {"==": "!=", "!=": "=="}
LOGICAL = {"&&": "||", "||": "&&"}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "&": "|", "|": "&"}
COMPOUND = {"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "|=": "&=", "&=": "|="}
# Calls without effect on behaviour; their arguments have none either.
WITHOUT_EFFECT = {"reserve", "shrink_to_fit"}
# Calls that only make the text of a message of their arguments, as `throw` does.
MESSAGES = {"fail", "fail_at", "fail_type", "refuse", "usage"}
LOOPS = {K.FOR_STMT, K.WHILE_STMT, K.CXX_FOR_RANGE_STMT, K.DO_STMT}
EXPRESSION_STATEMENTS = {K.CALL_EXPR, K.BINARY_OPERATOR, K.COMPOUND_ASSIGNMENT_OPERATOR, K.UNARY_OPERATOR}
FUNCTIONS = {K.FUNCTION_DECL, K.CXX_METHOD, K.CONSTRUCTOR, K.FUNCTION_TEMPLATE, K.CONVERSION_FUNCTION}


@dataclass(frozen=True)
class Part:
    """One expression [start, end) of the file, what replaces it, and how the original is wrapped."""
    start: int
    end: int
    mutated: str
    wrap: str = ""  # "void" or "static_cast<bool>"


@dataclass(frozen=True)
class Site:
    file: str
    line: int
    kind: str
    parts: tuple
    original: str
    mutated: str
    in_constexpr: bool = False

    def key(self):
        """What names a mutant independently of its line number."""
        return (self.file, self.kind, " ".join(self.original.split()), " ".join(self.mutated.split()))


class _Finder:
    def __init__(self, unit, path, name, text):
        self.path, self.name, self.text = path, name, text
        self.sites, self.constants = [], {}
        self.macros = [(c.extent.start.offset, c.extent.end.offset) for c in unit.cursor.get_children()
                       if c.kind == K.MACRO_INSTANTIATION and self._here(c)]
        for child in unit.cursor.get_children():
            if not child.kind.is_preprocessing() and self._here(child):
                self._walk(child, [], False)

    def _here(self, cursor):
        return cursor.location.file is not None and cursor.location.file.name == self.path

    def _range(self, cursor):
        return cursor.extent.start.offset, cursor.extent.end.offset

    def _source(self, start, end):
        return self.text[start:end].decode()

    def _text(self, cursor):
        return self._source(*self._range(cursor))

    def _add(self, cursor, kind, mutated, wrap="", shown=None):
        start, end = self._range(cursor)
        self._add_parts(cursor, kind, [Part(start, end, mutated, wrap)], self._source(start, end),
                        mutated if shown is None else shown)

    def _add_parts(self, cursor, kind, parts, original, mutated):
        for part in parts:
            if part.end <= part.start or any(a < part.end and part.start < b for a, b in self.macros):
                return
        self.sites.append(Site(self.name, cursor.extent.start.line, kind, tuple(parts), original, mutated,
                               self.in_constexpr))

    def _is_constexpr(self, cursor):
        return "constexpr" in self._source(cursor.extent.start.offset, cursor.location.offset)

    def _walk(self, cursor, parents, in_constexpr):
        if cursor.kind in (K.CXX_THROW_EXPR, K.STATIC_ASSERT, K.ENUM_DECL, K.CASE_STMT, K.TYPEDEF_DECL,
                           K.TYPE_ALIAS_DECL):
            if cursor.kind == K.CASE_STMT:  # its value is a constant, its statement is not
                for child in list(cursor.get_children())[1:]:
                    self._walk(child, parents + [cursor], in_constexpr)
            return
        if cursor.kind == K.VAR_DECL and self._is_constexpr(cursor):
            return
        if cursor.kind == K.CALL_EXPR and cursor.spelling in WITHOUT_EFFECT:
            return
        if cursor.kind in FUNCTIONS:
            in_constexpr = self._is_constexpr(cursor)
        self.in_constexpr = in_constexpr
        handler = getattr(self, "_" + cursor.kind.name.lower(), None)
        if handler is not None and cursor.spelling not in MESSAGES:
            handler(cursor, parents)
        if cursor.kind in EXPRESSION_STATEMENTS:
            self._statement(cursor, parents)
        if cursor.kind == K.CALL_EXPR and cursor.spelling in MESSAGES:
            return
        for child in cursor.get_children():
            self._walk(child, parents + [cursor], in_constexpr)

    def _type(self, cursor):
        return cursor.type.get_canonical().kind

    def _operator(self, left, right):
        between = self._source(left.extent.end.offset, right.extent.start.offset)
        return re.sub(r"//.*|/\*.*?\*/", "", between).strip().rstrip("(").strip()

    # Kinds of mistakes, one function per kind of cursor.

    def _binary_operator(self, cursor, parents):
        children = list(cursor.get_children())
        if len(children) == 2:
            self._binary(cursor, *children)

    def _binary(self, cursor, left, right):
        operator = self._operator(left, right)
        a, b = self._text(left), self._text(right)
        numbers = self._type(left) in NUMBERS and self._type(right) in NUMBERS
        if operator in OFF_BY_ONE:
            self._add(cursor, "comparison", f"{a} {OFF_BY_ONE[operator]} {b}")
        elif operator in OPPOSITE:
            self._add(cursor, "equality", f"{a} {OPPOSITE[operator]} {b}")
        elif operator in LOGICAL and self._type(cursor) in SCALARS:
            self._add(cursor, "logic", f"({a}) {LOGICAL[operator]} ({b})", shown=f"{a} {LOGICAL[operator]} {b}")
            self._add(cursor, "dropped condition", f"static_cast<bool>({a})", shown=a)
            self._add(cursor, "dropped condition", f"static_cast<bool>({b})", shown=b)
        elif operator in ARITHMETIC and self._type(cursor) in SCALARS:
            if numbers:
                self._add(cursor, "arithmetic", f"({a}) {ARITHMETIC[operator]} ({b})",
                          shown=f"{a} {ARITHMETIC[operator]} {b}")
            self._add(cursor, "dropped term", a)
            if operator in "+*" and numbers:
                self._add(cursor, "dropped term", b)

    def _unary_operator(self, cursor, parents):
        children = list(cursor.get_children())
        text = self._text(cursor)
        if len(children) == 1 and text[:1] in "!-~" and not text.startswith("--"):
            self._add(cursor, "dropped negation", self._text(children[0]))

    def _compound_assignment_operator(self, cursor, parents):
        children = list(cursor.get_children())
        if len(children) != 2 or self._type(children[0]) not in NUMBERS:
            return
        operator = self._operator(*children)
        a, b = self._text(children[0]), self._text(children[1])
        if operator in COMPOUND:
            self._add(cursor, "arithmetic", f"{a} {COMPOUND[operator]} {b}")
        self._add(cursor, "assigned, not accumulated", f"{a} = {b}")

    def _integer_literal(self, cursor, parents):
        text = self._text(cursor)
        digits = re.match(r"0[xX][0-9a-fA-F']+|[0-9']+", text)
        if digits and not text.startswith(("0b", "0B")):
            value = digits.group().replace("'", "")
            octal = value.startswith("0") and value.isdigit() and len(value) > 1
            number = f"0{int(value, 8) + 1:o}" if octal else str(int(value, 0) + 1)
            self._add(cursor, "constant", number + text[digits.end():])

    def _floating_literal(self, cursor, parents):
        text = self._text(cursor)
        zero = not re.search(r"[1-9]", re.split("[eE]", text)[0])
        self._add(cursor, "constant", "1.0f" if zero and text[-1] in "fF" else "1.0" if zero else f"2 * {text}")

    def _cxx_bool_literal_expr(self, cursor, parents):
        self._add(cursor, "constant", "false" if self._text(cursor) == "true" else "true")

    def _decl_ref_expr(self, cursor, parents):
        target = cursor.referenced
        if target is not None and target.kind == K.VAR_DECL and self._type(cursor) in INTEGERS | REALS \
                and self._declared_constexpr(target):
            name = self._text(cursor)
            self._add(cursor, "constant", f"{name} + 1" if self._type(cursor) in INTEGERS else f"2 * {name}")

    def _declared_constexpr(self, target):
        place = (str(target.location.file), target.location.offset)
        if place not in self.constants:
            words = [t.spelling for t in target.get_tokens() if t.location.offset < place[1]]
            self.constants[place] = "constexpr" in words
        return self.constants[place]

    def _condition(self, cursor, values):
        children = list(cursor.get_children())
        if children and children[0].kind.is_expression():
            for value in values:
                self._add(children[0], "condition " + value, value, "static_cast<bool>")

    def _if_stmt(self, cursor, parents):
        self._condition(cursor, ("true", "false"))

    def _conditional_operator(self, cursor, parents):
        self._condition(cursor, ("true", "false"))

    def _while_stmt(self, cursor, parents):
        self._condition(cursor, ("false",))

    def _return_stmt(self, cursor, parents):
        children = list(cursor.get_children())
        if len(children) != 1 or children[0].kind == K.INIT_LIST_EXPR:
            return
        text = self._text(children[0])
        if self._type(children[0]) == T.BOOL:
            self._add(children[0], "returned value", f"!({text})")
        elif self._type(children[0]) in INTEGERS:
            self._add(children[0], "returned value", f"({text}) + 1")

    def _call_expr(self, cursor, parents):
        arguments = [a for a in cursor.get_arguments() if a is not None and a.extent.end.offset > a.extent.start.offset]
        if cursor.spelling.startswith("operator"):
            if len(arguments) == 2 and cursor.spelling[8:] in {**OFF_BY_ONE, **OPPOSITE}:
                self._binary(cursor, *arguments)
            return
        text = self._text(cursor)
        bound = re.match(r"std::(min|max)\b", text)
        if bound and len(arguments) == 2:
            other = "max" if bound.group(1) == "min" else "min"
            self._add(cursor, "bound", f"std::{other}" + text[bound.end():])
            for argument in arguments:
                self._add(cursor, "dropped bound", self._text(argument))
            return
        self._swaps(cursor, arguments)

    def _init_list_expr(self, cursor, parents):
        self._swaps(cursor, list(cursor.get_children()))

    def _swaps(self, cursor, arguments):
        for a, b in zip(arguments, arguments[1:]):
            one, other = self._text(a), self._text(b)
            if one == other or a.type.get_canonical().spelling.replace("const ", "") != \
                    b.type.get_canonical().spelling.replace("const ", ""):
                continue
            if a.extent.end.offset > b.extent.start.offset or cursor.spelling == "swap" or \
                    re.search(r"\bc?r?begin\(\)", one):
                continue
            parts = [Part(*self._range(a), other), Part(*self._range(b), one)]
            self._add_parts(a, "swapped arguments", parts, f"{one}, {other}", f"{other}, {one}")

    def _statement(self, cursor, parents):
        """Drops an expression statement."""
        chain = [p for p in parents if p.kind != K.UNEXPOSED_EXPR]
        parent = chain[-1] if chain else None
        if parent is None or not (parent.kind == K.COMPOUND_STMT or parent.kind in LOOPS or
                                  parent.kind in (K.IF_STMT, K.CASE_STMT, K.DEFAULT_STMT)):
            return
        if parent.kind != K.COMPOUND_STMT:
            # The body of a loop or branch: its last child, or the statement before `else`.
            first, last = self._range(cursor)
            bodies = [self._range(c) for c in list(parent.get_children())]
            bodies = bodies[1:] if parent.kind == K.IF_STMT else bodies[-1:]
            if (first, last) not in bodies:
                return
        children = list(cursor.get_children())
        if cursor.kind == K.BINARY_OPERATOR and (len(children) != 2 or self._operator(*children) != "="):
            return
        if cursor.kind == K.UNARY_OPERATOR and not re.match(r"\+\+|--|.*(\+\+|--)$", self._text(cursor), re.S):
            return
        self._add(cursor, "dropped statement", "void()", "void", shown="")


def parse(path, arguments, text):
    """The translation unit of the file at `path`, whose contents are `text`."""
    return ci.Index.create().parse(path, args=arguments, unsaved_files=[(path, text.decode())],
                                   options=ci.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD |
                                   ci.TranslationUnit.PARSE_PRECOMPILED_PREAMBLE)


def errors(unit):
    return [d for d in unit.diagnostics if d.severity >= ci.Diagnostic.Error]


def find_sites(unit, path, name, text):
    """Sites of the file in the order of their places; `name` is how the file is called in reports."""
    sites = {(s.parts, s.kind): s for s in _Finder(unit, path, name, text).sites}
    return sorted(sites.values(), key=lambda s: (s.parts[0].start, s.parts[0].end, s.kind, s.mutated))


def render(text, sites_by_id, include=MUTANT_H):
    """The file's text (bytes) with a switch for every {id: site}. `include` is the path of mutant.h."""
    opening, closing = {}, {}
    for number, site in sites_by_id.items():
        function = "gptbench_mutant" + "_constexpr" * site.in_constexpr
        for part in site.parts:
            cast = "static_cast<void>" if part.wrap == "void" else part.wrap
            before = f"(::{function}({number}) ? ({part.mutated}) : {cast}("
            # Of parts that begin together the longest opens first, of equal ones that with a cast; it closes last.
            outer = (part.end - part.start, part.wrap != "", -number)
            opening.setdefault(part.start, []).append((outer, before))
            closing.setdefault(part.end, []).append((outer, "))"))
    out, last = [], 0
    for place in sorted(set(opening) | set(closing)):
        out.append(text[last:place])
        out += [insert.encode() for _, insert in sorted(closing.get(place, []))]
        out += [insert.encode() for _, insert in sorted(opening.get(place, []), reverse=True)]
        last = place
    out.append(text[last:])
    return f'#include "{include}"\n'.encode() + b"".join(out)


def apply(text, site):
    """The file's text (bytes) with the plain mutation."""
    for part in sorted(site.parts, key=lambda p: -p.start):
        mutated = "" if part.wrap == "void" else f"({part.mutated})"
        text = text[:part.start] + mutated.encode() + text[part.end:]
    return text


def line_key(text, site):
    """Names a mutant as Site.key() does, by the line of code that it changes, without its comment."""
    lines = (t.decode().splitlines() for t in (text, apply(text, site)))
    changed = next((pair for pair in zip(*lines) if pair[0] != pair[1]), ("", ""))
    return (site.file, site.kind, *(" ".join(line.split("//")[0].split()) for line in changed))
