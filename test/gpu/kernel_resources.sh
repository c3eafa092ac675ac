#!/bin/bash
# kernel_resources.sh LIBRARY [DOCUMENT]: what the compiler gave each kernel for compute capability
# 9.0, as a table: instantiations, registers per thread (least to most), bytes of stack per thread
# (most; spilled registers lie there), code of all instantiations. With a document: compares with the
# table in it; ends with status 77 where a tool is missing, or COMPILER, nvcc's version, is not that of
# the table.
set -euo pipefail

library=$1 document=${2:-}
for folder in "" "${CUDA_HOME:-/usr/local/cuda}/bin/"; do
  if command -v "${folder}cuobjdump" >/dev/null; then cuobjdump=${folder}cuobjdump; fi
done
for tool in "${cuobjdump:-cuobjdump}" readelf c++filt; do
  if ! command -v "$tool" >/dev/null; then
    echo "skipped: no $tool (cuobjdump is part of the CUDA toolkit, the others of binutils)"
    exit 77
  fi
done

folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT

# Lines "name registers stack" and "name code" of the kernels' mangled names.
"$cuobjdump" --dump-resource-usage "$library" | awk '
  /^arch = / { arch = $3 }
  / Function / { name = $2; sub(/:$/, "", name) }
  /REG:/ && arch == "sm_90" {
    split($1, registers, ":"); split($2, stack, ":")
    print name, registers[2], stack[2]
  }' >"$folder/usage"
absolute=$(realpath "$library")
(cd "$folder" && "$cuobjdump" --extract-elf sm_90 "$absolute" >/dev/null)
for cubin in "$folder"/*.cubin; do
  readelf -SW "$cubin" 2>/dev/null | sed -n 's/^ *\[ *[0-9]*\] *\.text\.\([^ ]*\) *PROGBITS *[0-9a-f]* *[0-9a-f]* *\([0-9a-f]*\) .*/\1 \2/p'
done | while read -r name size; do echo "$name $((16#$size))"; done >"$folder/code"

table() {
  echo "|kernel|instantiations|registers|stack|code/KiB|"
  echo "|---|---:|---:|---:|---:|"
  join <(sort "$folder/usage") <(sort "$folder/code") | c++filt | sed 's/(anonymous namespace):://g' |
    awk '{
      name = $0
      sub(/[<(].*/, "", name)  # before the arguments of the template or of the function
      sub(/.*[: ]/, "", name)
      registers = $(NF - 2); stack = $(NF - 1)
      if (!(name in count) || registers < least[name]) least[name] = registers
      if (registers > most[name]) most[name] = registers
      if (stack > deepest[name]) deepest[name] = stack
      ++count[name]; code[name] += $NF
    }
    END {
      for (name in count) {
        range = least[name] == most[name] ? most[name] : least[name] "-" most[name]
        printf "|`%s`|%d|%s|%d|%.0f|\n", name, count[name], range, deepest[name], code[name] / 1024
      }
    }' | LC_ALL=C sort
}

if [ -z "$document" ]; then
  table
  exit
fi
if ! grep -q "nvcc ${COMPILER:?}" "$document"; then
  echo "skipped: compiled with nvcc $COMPILER, the table of $document with another version"
  exit 77
fi
table >"$folder/table"
sed -n '/kernel table begin/,/kernel table end/{/^|/p}' "$document" >"$folder/documented"
diff "$folder/documented" "$folder/table" || {
  echo "$document: the table of kernels is not that of $library (right); put in the lines of $0 $library"
  exit 1
}
