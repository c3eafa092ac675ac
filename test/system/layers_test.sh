#!/bin/sh
# layers_test.sh COMPILER STANDARD {LAYER=INCLUDE:INCLUDE:... below=LAYER,LAYER,...} ...
# With the include directories of its own target, a layer must not be able to include a header of a
# layer that the design does not put below it, and must find its own and those that it depends on.
set -eu

compiler=$1
standard=$2
shift 2
src=$GPTBENCH_SOURCE_DIR/src
failures=0
refused=0
accepted=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

header_of() {
  find "$src/$1" -maxdepth 1 -name '*.h' | sort | head -n 1
}

others=$(find "$src" -mindepth 1 -maxdepth 1 -type d -exec basename {} ';' | sort)
while [ $# -ge 2 ]; do
  layer=${1%%=*}
  includes=$(echo "${1#*=}" | tr ':' '\n' | sed '/^$/d; s/^/-I/' | tr '\n' ' ')
  below=" $(echo "${2#below=}" | tr ',' ' ') "
  shift 2
  for other in $others; do
    header=$(header_of "$other")
    if [ -z "$header" ]; then continue; fi
    printf '#if __has_include("%s")\n%s\n#endif\n' "$other/$(basename "$header")" "$other"
  done >"probe_$layer.cpp"
  # shellcheck disable=SC2086  # a list of options
  found=" $($compiler $standard $includes -E -P "probe_$layer.cpp" | tr '\n' ' ') "
  for other in $others; do
    case "$found" in
      *" $other "*) accepted=$((accepted + 1)) ;;
      *) refused=$((refused + 1)) && continue ;;  # a layer need not depend on everything below it
    esac
    case "$below$layer " in
      *" $other "*) ;;
      *) fail "layer $layer finds headers of $other, which is not below it" ;;
    esac
  done
  case "$found" in
    *" $layer "*) ;;
    *) fail "layer $layer does not find its own headers" ;;
  esac
done

echo "$accepted includes accepted, $refused refused"
if [ "$accepted" -eq 0 ] || [ "$refused" -eq 0 ]; then fail "nothing was tried"; fi
exit $((failures > 0))
