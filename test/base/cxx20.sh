#!/bin/sh
# The sources of all layers as C++20, warnings as errors, by the commands of this build; all but
# those that include Kokkos, whose version decides which standard its headers want.
#   cxx20.sh SOURCE_DIR BUILD_DIR
set -eu
cd "$2"
with_kokkos=$(grep -lE 'include [<"](Kokkos_|device/host/(parallel|fp8|attention)\.h)' "$1"/src/*/*.cpp "$1"/src/*/*/*.cpp)
list=$(mktemp)
trap 'rm -f "$list"' EXIT
sed -n 's/^ *"command": "\(.*\)",\{0,1\}$/\1/p' compile_commands.json |
  sed -e 's/\\\(["\\]\)/\1/g' -e 's/-std=[a-z+]*[0-9]*/-std=c++20/' -e 's/ -o [^ ]*\.o -c / -fsyntax-only /' |
  grep -e '-fsyntax-only .*/src/[a-z0-9_/]*\.cpp$' | grep -v -F "$with_kokkos" >"$list"
count=$(wc -l <"$list")
[ "$count" -gt 50 ] || { echo "cxx20: only $count sources found"; exit 1; }
tr '\n' '\0' <"$list" | xargs -0 -n 1 -P 2 sh -c
echo "cxx20: $count sources compile"
