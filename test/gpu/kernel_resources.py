#!/usr/bin/env python3
"""kernel_resources.py LIBRARY [DOCUMENT]: what the compiler gave each kernel for compute capability 9.0,
as a table: instantiations, registers per thread (least to most), bytes of stack per thread (most; spilled
registers lie there), code of all instantiations. With a document: compares with the table in it; ends with
status 77 where nothing can be compared: COMPILER, nvcc's version, is not that of the table, or FLAGS, options
of nvcc beside the project's, are not empty. Needs no tool of CUDA's: machine code lies in the library's section
.nv_fatbin as ELF files, compressed by zstd."""

import ctypes
import os
import re
import struct
import subprocess
import sys

ARCHITECTURE = 90
FATBIN_MAGIC = 0xBA55ED50
MACHINE_CODE = 2  # kind of an entry
ZSTD = 0x8000  # flag of an entry
# Attributes in .nv.info, of {symbol, value}.
REGISTERS, STACK = 0x2F, 0x12


def sections(elf):
    """(name, flags of the section, content) of each section of an ELF file."""
    (table,) = struct.unpack_from("<Q", elf, 40)
    size, count, names_index = struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, table + i * size) for i in range(count)]
    names = headers[names_index][4]
    for header in headers:
        start = names + header[0]
        name = elf[start:elf.index(b"\0", start)].decode()
        no_content = header[1] in (0, 8)  # SHT_NULL, SHT_NOBITS
        yield name, header, b"" if no_content else elf[header[4]:header[4] + header[5]]


def decompressed(data, size):
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    zstd.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    out = ctypes.create_string_buffer(size)
    got = zstd.ZSTD_decompress(out, size, data, len(data))
    if got != size:
        sys.exit(f"kernel_resources.py: {got} of {size} bytes of machine code")
    return out.raw


def machine_codes(library):
    """The ELF files for the architecture in a library."""
    for name, _, fatbins in sections(library):
        if name != ".nv_fatbin":
            continue
        at = 0
        while at + 16 <= len(fatbins):
            magic, _, header_size, size = struct.unpack_from("<IHHQ", fatbins, at)
            if magic != FATBIN_MAGIC:
                at += 8  # alignment
                continue
            entry, end = at + header_size, at + header_size + size
            while entry < end:
                kind, _, entry_header, padded = struct.unpack_from("<HHII", fatbins, entry)
                (compressed,) = struct.unpack_from("<I", fatbins, entry + 16)
                (architecture,) = struct.unpack_from("<I", fatbins, entry + 28)
                flags, _, full = struct.unpack_from("<QQQ", fatbins, entry + 40)
                data = fatbins[entry + entry_header:entry + entry_header + padded]
                if kind == MACHINE_CODE and architecture == ARCHITECTURE:
                    yield decompressed(data[:compressed], full) if flags & ZSTD else data
                entry += entry_header + padded
            at = end


def attributes(info):
    """(attribute, symbol, value) of those in .nv.info that have both."""
    at = 0
    while at + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form != 4:  # the value stands in place of the size
            continue
        if size == 8:
            yield (attribute, *struct.unpack_from("<II", info, at))
        at += size


def kernels(elf):
    """{mangled name: (registers, stack, bytes of code)}."""
    named = {name: content for name, _, content in sections(elf)}
    symbols, strings = named[".symtab"], named[".strtab"]

    def symbol_name(index):
        (start,) = struct.unpack_from("<I", symbols, 24 * index)
        return strings[start:strings.index(b"\0", start)].decode()

    found = {REGISTERS: {}, STACK: {}}
    for attribute, symbol, value in attributes(named[".nv.info"]):
        if attribute in found:
            found[attribute][symbol_name(symbol)] = value
    for name, code in named.items():
        if name.startswith(".text."):
            kernel = name[len(".text."):]
            yield kernel, found[REGISTERS][kernel], found[STACK].get(kernel, 0), len(code)


def table(path):
    with open(path, "rb") as file:
        all_kernels = [kernel for elf in machine_codes(file.read()) for kernel in kernels(elf)]
    readable = subprocess.run(["c++filt"], input="\n".join(name for name, *_ in all_kernels), text=True,
                              stdout=subprocess.PIPE, check=True).stdout.splitlines()
    rows = {}
    for text, (_, registers, stack, code) in zip(readable, all_kernels):
        text = re.sub(r"[<(].*", "", text.replace("(anonymous namespace)::", ""))
        rows.setdefault(re.sub(r".*[: ]", "", text), []).append((registers, stack, code))
    lines = ["|kernel|instantiations|registers|stack|code/KiB|", "|---|---:|---:|---:|---:|"]
    for name in sorted(rows):
        registers, stacks, codes = zip(*rows[name])
        least, most = min(registers), max(registers)
        used = str(most) if least == most else f"{least}-{most}"
        lines.append(f"|`{name}`|{len(codes)}|{used}|{max(stacks)}|{sum(codes) / 1024:.0f}|")
    return lines


def main():
    library, document = sys.argv[1], sys.argv[2:]
    lines = table(library)
    if not document:
        print("\n".join(lines))
        return 0
    with open(document[0], encoding="utf-8") as file:
        text = file.read()
    compiler = os.environ["COMPILER"]
    if f"nvcc {compiler}" not in text:
        print(f"skipped: compiled with nvcc {compiler}, the table of {document[0]} with another version")
        return 77
    flags = os.environ.get("FLAGS", "").strip()
    if flags:
        print(f"skipped: compiled with {flags}, the table of {document[0]} without")
        return 77
    between = text.split("<!-- kernel table begin -->")[1].split("<!-- kernel table end -->")[0]
    documented = between.strip().splitlines()
    if documented == lines:
        return 0
    for sign, some, others in (("-", documented, lines), ("+", lines, documented)):
        for line in some:
            if line not in others:
                print(sign + line)
    print(f"{document[0]}: the table of kernels (-) is not that of {library} (+); put in the lines of "
          f"{sys.argv[0]} {library}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
