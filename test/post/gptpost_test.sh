#!/bin/bash
# gptpost_test.sh WRITE_MADE_RECORD: exit statuses and streams of the program itself.
set -u
if [ -z "${GPTPOST:-}" ] || [ ! -x "$GPTPOST" ]; then
  echo "skipped: gptpost was not built"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" "$folder/a" && "$1" "$folder/b" || exit 1
good=$folder/a/result.h5
failures=0

# expect STATUS ARGUMENT ...: also checks that an error is one line on standard error.
expect() {
  local status=$1
  shift
  "$GPTPOST" "$@" > "$folder/out" 2> "$folder/err"
  local got=$?
  if [ "$got" != "$status" ]; then
    echo "gptpost $*: exit status $got, not $status"
    cat "$folder/err"
    failures=$((failures + 1))
  fi
  local LC_ALL=C text
  text=$(<"$folder/out")$(<"$folder/err")
  if [[ $text == *[$'\001'-$'\010'$'\013'-$'\037'$'\177']* || $text == *$'\302'[$'\200'-$'\237']* ]]; then
    echo "gptpost $*: control characters in its output"
    failures=$((failures + 1))
  fi
}
says() {
  if ! grep -qF -- "$2" "$folder/$1"; then
    echo "$1 lacks '$2':"
    cat "$folder/$1"
    failures=$((failures + 1))
  fi
}
lines() {
  if [ "$(wc -l < "$folder/$1")" != "$2" ]; then
    echo "$1 does not have $2 lines:"
    cat "$folder/$1"
    failures=$((failures + 1))
  fi
}

expect 0 --help;    says out "gptpost table"
expect 0 --version; says out "gptpost"
for format in md csv latex; do
  for style in native fugaku mpt zero megatron scaling; do
    expect 0 table --style $style --format $format "$good" "$folder/b/result.h5"
    lines err 0
  done
done
expect 0 table --format csv -o "$folder/table.csv" "$good"; lines out 0
grep -q '^Run,Model,Sequence,' "$folder/table.csv" || failures=$((failures + 1))
# A table for programs has no room for a warning.
expect 0 table --format csv --peak 0.000001 "$good"; lines err 1; says err "WARNING: MFU above 100 %"
expect 0 show "$good";                       says out "OK, VALID"
expect 0 deck "$good";                       says out "name = 'made'"
expect 2 deck "$good" "$good";               lines err 1
expect 7 deck "$folder/none.h5";             lines out 0
expect 0 compare "$good" "$folder/b/result.h5"; says out "are the same"
expect 0 table --where status=OOM "$good";   lines out 0; says err 'no run is left'
expect 0 table --where status=OOM --format json "$good"; says err 'no run is left'
[ "$(cat "$folder/out")" = '[]' ] || { echo "no JSON of a table without rows"; failures=$((failures + 1)); }
expect 0 table --sort -tokens_per_s "$good"
expect 2 table --sort -token_per_s "$good";  lines err 1; says err "no file has a figure 'token_per_s'"
expect 2 table --where statu=OK "$good";     lines err 1; says err "no file has a figure 'statu'"

# Groups of runs: parted by "--", or by the runs' names. Where all have one name, as repeats of a deck
# do, each is a group, as with two files; unless one that could not be read may have had another.
b=$folder/b/result.h5
"$1" "$folder/c" && "$1" "$folder/d" || exit 1
expect 0 compare "$good" "$b" -- "$folder/c/result.h5" "$folder/d/result.h5"
says out "No difference was found in tokens/s"
expect 0 compare "$good" "$b" "$folder/c/result.h5"; lines err 0
[ "$(grep -c '^Not decided: the change in tokens/s' <(head -2 "$folder/out"))" -eq 2 ] ||
  { echo "the first two lines are no answers about B and C"; failures=$((failures + 1)); }
says out "from A to B is"; says out "from A to C is"; says out "A  $good"; says out "B  $b"
says out "C  $folder/c/result.h5"
expect 7 compare "$good" "$b" "$folder/none.h5"; lines out 0; lines err 1
expect 2 compare "$good" "$b" --;   lines err 1
cp "$b" "$folder/copy.h5"
for arguments in "$good $b -- $folder/copy.h5" "$b $folder/copy.h5" "$good $good"; do
  # shellcheck disable=SC2086
  expect 2 compare $arguments; lines out 0; lines err 1; says err "hold the same run"
done
"$1" "$folder/other" another || exit 1
expect 0 compare "$good" "$b" "$folder/other/result.h5"
says out "A  $good"
says out "B  $folder/other/result.h5"

# Acceptance. The made run is valid, named `made`, on 2 ranks, with 256 tokens/s; a check has failed.
expect 0 accept --write-spec "$folder/written.in" "$good" "$b"; lines out 0
expect 0 accept "$folder/written.in" "$good" "$b"; says out "ACCEPTED: 1 of 1 rows PASSED"
printf '&speed figure = "tokens_per_s", reference = 250 /\n' > "$folder/pass.in"
printf '&speed figure = "tokens_per_s", reference = 300 /\n&rules rules = "met" /\n&wide ranks = 64 /\n' > "$folder/fail.in"
printf '&wide ranks = 64 /\n' > "$folder/open.in"
printf '&speed figur = "tokens_per_s" /\n' > "$folder/wrong.in"
expect 0 accept "$folder/pass.in" "$good"; lines err 0
expect 2 accept "$folder/pass.in" "$b" "$folder/copy.h5"; lines out 0
says err "accept: $b and $folder/copy.h5 hold the same run, of 2024-03-09T10:11:12Z; a run counts once"
expect 2 accept --write-spec "$folder/none.in" "$b" "$b"; says err "$b and $b hold the same run"
expect 9 accept --junit "$folder/junit.xml" "$folder/fail.in" "$good"
says out "NOT ACCEPTED: 0 of 3 rows PASSED, 2 FAILED, 1 NOT DECIDED"
python3 - "$folder/junit.xml" << 'PYTHON' || failures=$((failures + 1))
import sys, xml.etree.ElementTree as xml
suite = xml.parse(sys.argv[1]).getroot()
assert (suite.tag, suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("testsuite", "3", "2", "1")
assert [[child.tag for child in case] for case in suite] == [["failure"], ["failure"], ["error"]]
assert suite[0].get("name") == "speed" and "reference 300" in suite[0][0].get("message")
PYTHON
expect 9 accept --format json "$folder/fail.in" "$good"
python3 -c 'import json, sys; assert [row["verdict"] for row in json.load(open(sys.argv[1]))["rows"]] == ["FAILED", "FAILED", "NOT DECIDED"]' \
  "$folder/out" || failures=$((failures + 1))
expect 10 accept "$folder/open.in" "$good"
expect 7 accept --junit "$folder/junit.xml" "$folder/pass.in" "$good" "$folder/none.h5"; lines err 1
says out "NOT ACCEPTED: 1 of 1 rows PASSED, 0 FAILED, 0 NOT DECIDED, 1 NOT READABLE"
grep -q '<error message="[^"]*none.h5: cannot open' "$folder/junit.xml" || failures=$((failures + 1))
expect 7 accept --format json "$folder/pass.in" "$good" "$folder/none.h5"; says out '{"accepted": false'
expect 9 accept "$folder/fail.in" "$good" "$folder/none.h5"
# MFU by the peak that the runs have in common, 0.11 of 0.225; each says 0.489 of itself.
printf '&mfu figure = "mfu", reference = 0.489, tolerance = 0.01 /\n' > "$folder/mfu.in"
expect 9 accept "$folder/mfu.in" "$good" "$b"; says out "mfu 0.488889, reference 0.489 (-0.023 %"
expect 2 accept "$folder/wrong.in" "$good"; lines out 0; lines err 1; says err "did you mean 'figure'?"
expect 2 accept "$folder/none.in" "$good";  lines err 1; says err "accept takes SPEC RESULT"
expect 2 accept "$good" "$b";               lines err 1
expect 7 accept --junit "$folder/none/j.xml" "$folder/pass.in" "$good"

# Published tables beside a result, and alone.
reference=$(dirname "$0")/../reference
for style in native fugaku mpt zero megatron scaling; do
  expect 0 table --style $style --published "$reference/mpt_training.csv" \
    --published "$reference/zero_8xa100_40gb.csv" --published "$reference/fugaku_124m.csv" "$good"
  lines err 0
  says out "published"
done
expect 0 table --style mpt --format csv --published "$reference/mpt_training.csv" --where precision.compute=fp8 --peak both
says out "MFU fp8 (%)"
expect 2 table --published "$good" "$good"; lines err 1
expect 7 table --published "$folder/none.csv" "$good"; lines err 1

# Rows are sorted and selected by any figure; those without it come last.
printf 'ranks,tokens_per_s\n4,100\n3,300\n8,200\n' > "$folder/points.csv"
ranks_of() {
  local wanted=$1 ranks
  shift
  expect 0 table --style mpt --format csv --published "$folder/points.csv" "$@"
  ranks=$(tail -n +2 "$folder/out" | cut -d, -f4 | tr '\n' ' ')
  [ "$ranks" = "$wanted " ] || { echo "ranks $ranks, not $wanted: $*"; failures=$((failures + 1)); }
}
ranks_of "4 8 3" --sort tokens_per_s
ranks_of "3 8 4" --sort -tokens_per_s
ranks_of "2 4 3 8" --sort power_w "$good"
ranks_of "2 4 3 8" --sort -power_w "$good"
ranks_of "8" --where world_size=8

# Files of unknown origin: nothing of them reaches a terminal as a control character, and their text
# is no spreadsheet formula, markup or command substitution.
escape=$'\033[2J\302\233\r'
"$1" "$folder/hostile" "$escape=x" || exit 1
hostile=$folder/hostile/result.h5
cp "$hostile" "$folder/$escape.h5"
for arguments in show "compare $good" table "table --format csv" "table --format latex"; do
  # shellcheck disable=SC2086
  expect 0 $arguments "$hostile"
  says out 'x1b'
done
expect 0 show "$folder/$escape.h5";      says out '\x1b[2J\xc2\x9b\x0d.h5'
expect 7 show "$folder/none$escape.h5";  says err '\x1b[2J\xc2\x9b\x0d.h5'
expect 2 table --where "$escape=1" "$good"; says err '\x1b[2J\xc2\x9b\x0d'
if (ulimit -v 300000 && "$GPTPOST" show "$good") > "$folder/out" 2>&1; then
  { echo ranks,tokens_per_s; yes 1,2 | head -n 4000000; } > "$folder/large.csv"
  (ulimit -v 300000; expect 3 table --published "$folder/large.csv"; says err "out of memory"; exit $failures)
  failures=$((failures + $?))
else
  echo "not tested: a limit of memory, which sanitizers do not live with"
fi

expect 0 plot -o "$folder/one" "$good"
[ -s "$folder/one/loss.svg" ] || { echo "no loss.svg of one run"; failures=$((failures + 1)); }
[ ! -e "$folder/one/loss-1.svg" ] || { echo "pictures of one run are numbered"; failures=$((failures + 1)); }
name="'x''\"\`touch ran\`\\ @y \$(z) %d <&> $escape"
"$1" "$folder/odd'name \$(touch x)" "$name" || exit 1
mkdir -p "$folder/p/q"
echo precious > "$folder/p/victim"
ln -s ../victim "$folder/p/q/loss.png"
expect 0 plot -o "$folder/p/q" "$folder/odd'name \$(touch x)/result.h5" "$good"
lines err 0
says out "scaling: no run has the figures"
for kind in throughput utilisation memory breakdown messages loss steps memory_map-1; do
  [ -s "$folder/p/q/$kind.dat" ] || { echo "no $kind.dat"; failures=$((failures + 1)); }
  grep -q '</svg>' "$folder/p/q/$kind.svg" || { echo "no $kind.svg"; failures=$((failures + 1)); }
  if command -v rsvg-convert > /dev/null; then
    head -c 4 "$folder/p/q/$kind.png" | grep -q PNG || { echo "no $kind.png"; failures=$((failures + 1)); }
  fi
done
[ "$(cat "$folder/p/victim")" = precious ] || { echo "a link was followed"; failures=$((failures + 1)); }
[ ! -e "$folder/p/q/ran" ] || { echo "a run's name was executed"; failures=$((failures + 1)); }
grep -qF "&#39;x&#39;&#39;&quot;\`touch ran\`\\ @y \$(z) %d &lt;&amp;&gt; \\x1b[2J\\xc2\\x9b\\x0d, 2 ranks" "$folder/p/q/loss.svg" ||
  { echo "the legend of the loss is not the run's name:"; grep -aF "touch" "$folder/p/q/loss.svg"; failures=$((failures + 1)); }
expect 2 plot --kind scaling -o "$folder/p" "$good"; lines err 1
expect 7 plot -o "$folder/a/result.h5/p" "$good";    lines err 1
PATH=/nonexistent expect 0 plot -o "$folder/without" "$good"
says out "no .png: rsvg-convert was not found"
for kind in throughput utilisation memory breakdown loss; do
  [ -s "$folder/without/$kind.svg" ] || { echo "no $kind.svg without rsvg-convert"; failures=$((failures + 1)); }
done
expect 0 report -o "$folder/report.html" "$good" "$folder/b/result.h5"; says out "report: $folder/report.html"
expect 7 report -o "$folder/a/result.h5/r" "$good"; lines err 1
expect 2 report --kind loss "$good";                lines err 1

for arguments in "" "tables $good" "table" "table --style x $good" "compare $good" \
  "table --where batch.size=1 $good" "plot --style mpt $good" "plot --kind los $good"; do
  # shellcheck disable=SC2086
  expect 2 $arguments
  lines out 0
  lines err 1
done

# Another program's HDF5 file, and one of a later version of ours: the attribute's letters, patched
# in a file whose checksum was removed.
tail -c +513 "$good" > "$folder/newer.h5"
h5=$(LC_ALL=C grep -obUa gptbench-1 "$folder/newer.h5" | head -n 1 | cut -d: -f1)
cp "$folder/newer.h5" "$folder/foreign.h5"
printf 'gptbench-9' | dd of="$folder/newer.h5" bs=1 seek="$h5" conv=notrunc status=none
printf 'elsewhere!' | dd of="$folder/foreign.h5" bs=1 seek="$h5" conv=notrunc status=none
expect 7 table "$folder/newer.h5" "$folder/foreign.h5" "$good"
lines err 2
says err "$folder/newer.h5: schema 'gptbench-9' is newer than gptbench-1"
says err "$folder/foreign.h5: not a gptbench result"
says out "124M"

head -c 5000 "$good" > "$folder/half.h5"
: > "$folder/empty.h5"
expect 7 table "$folder/half.h5" "$good" "$folder/empty.h5" "$folder/none.h5"
lines err 3
says err "$folder/half.h5: damaged, cut or edited: the content does not match the checksum"
says err "$folder/empty.h5: empty file"
says err "$folder/none.h5: cannot open"
says out "124M"
expect 7 compare "$good" "$folder/half.h5"; lines out 0
expect 7 table -o "$folder/none/table.md" "$good"; lines err 1
expect 7 convert "$good" "$folder/weights.bin"; says err 'no checkpoint, which has'
expect 2 convert "$good" ''; says err "convert: a name is empty"
expect 2 recover ''; says err "recover: a name is empty"
# Like /dev/stdout: what is printed without -o, into a pipe and behind what a file holds.
ln -s /proc/self/fd/1 "$folder/stdout"
"$GPTPOST" table "$good" > "$folder/printed"
"$GPTPOST" table -o "$folder/stdout" "$good" | cmp -s - "$folder/printed" || { echo "-o does not write into a pipe"; failures=$((failures + 1)); }
echo first > "$folder/appended"
"$GPTPOST" table -o "$folder/stdout" "$good" >> "$folder/appended"
{ echo first; cat "$folder/printed"; } | cmp -s - "$folder/appended" || { echo "-o does not append"; failures=$((failures + 1)); }
[ -L "$folder/stdout" ] || { echo "the link is replaced"; failures=$((failures + 1)); }
if [ -w /dev/full ]; then
  "$GPTPOST" table "$good" > /dev/full 2> "$folder/err"
  [ $? = 7 ] || { echo "a full disk went unnoticed"; failures=$((failures + 1)); }
fi
[ $failures = 0 ] || exit 1
command -v rsvg-convert > /dev/null ||
  { echo "skipped: PNG are not tested, rsvg-convert is not installed (Debian: librsvg2-bin)"; exit 77; }
