#!/bin/bash
# gptbench --calibrate: the result file, the profile that --project reads, and what is refused. Times
# mean nothing here: the limit is a second, which leaves the cheapest of each kind.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders

# calibrates NAME TYPE RANKS ARGUMENTS...: ends well, with both files of output/NAME, and a last line.
calibrates() {
  local name=$1 type=$2
  shift 2
  run "$1" --calibrate "${@:2}" run.time_limit_s=1 run.device=host
  [ "$status" -eq 0 ] || fail "status $status"
  tail -1 out | grep -Eq "^GPTBENCH calibration status=OK verdict=VALID ranks=$1 nodes=1 kernels=[0-9]+ messages=[0-9]+ left_out=[0-9]+ gemm_tflops=[0-9.e+-]+ memory_gb_per_s=[0-9.e+-]+ all_reduce_busbw_gb_per_s=[0-9.e+-]+ profile=output/$name/$name.in file=output/$name/result.h5$" ||
    fail "last line: $(tail -1 out)"
  grep -Eq "^Calibration of $1 ranks? on 1 node, at most 1 s:$" out || fail "the first line: $(head -1 out)"
  grep -Eq '^     [0-9] s, [01] s left: memory and launches$' out || fail "no progress: $(cat out)"
  local line phase in=" in $type"
  for phase in "GEMMs$in" "attention$in" "other kernels$in" "messages along axis"; do
    [[ $1 -eq 1 && $phase == messages* ]] || grep -Eq "^ +[0-9]+ s, [01] s left: $phase" out || fail "no phase: $phase"
  done
  grep -Eq '^Rates: +GEMM [0-9.e+-]+ TFLOP/s and triad [0-9.e+-]+ GB/s per rank' out || fail "no rates: $(cat out)"
  grep -Fqx "As machine 'local': cp output/$name/$name.in input/machines/local.in" out || fail "does not say how to keep it"
  check_result "$work/output/$name/result.h5" OK
  for line in "hosts $1" 'libraries mpi=.' 'chosen device=.'; do
    grep -q "^$line" values || fail "no '$line': $(grep -E 'hosts|libraries|chosen' values)"
  done
  "$GPTPOST" show "$work/output/$name/result.h5" --format json >shown
  grep -Eq "\"nodes\": *1,.*\"ranks_per_node\": *$1," <(tr -d '\n' <shown) || fail "not $1 ranks on one node"
  cp "$work/output/$name/$name.in" "$decks/profile.in"
  cp "$work/output/$name/result.h5" "$decks/calibration.h5"
  run 0 --project "$decks/tiny.in" --machine "$decks/profile.in" --ranks 2 "precision.compute=$type"
  grep -Eq '^GPTBENCH projection sec_per_it=[0-9.e+-]+ ' out || fail "no projection with the profile"
}
profiled() { sed -n "s/^  $1 = \([0-9.]*\).*/\1/p" "$decks/profile.in"; }
calibrates calibration fp32 1
memory=$(profiled memory_gb)
[ "$(profiled ranks_per_node)" = 1.0 ] || fail "$(profiled ranks_per_node) ranks per node"
# A deck in fp8: its GEMMs in fp8 beside what stays bf16, and the profile projects it.
calibrates tiny-calibration bf16 1 "$decks/tiny.in" precision.compute=fp8
grep -q '^  linear_forward_fp8 =$' "$decks/profile.in" || fail "no shapes of GEMMs in fp8"
grep -Eq '^  fp8_efficiency = [0-9.]+  ! fitted to .*, fp8$' "$decks/profile.in" || fail "no rate of GEMMs in fp8"
run 0 --project "$decks/tiny.in" --machine "$decks/profile.in" --ranks 1 precision.compute=fp8
grep -Eq '^GPTBENCH projection sec_per_it=[0-9.e+-]+ ' out || fail "no projection in fp8"
# Kernels of the deck's family; in any time the first of them, its norm, is measured.
calibrates tiny-calibration fp32 1 "$decks/tiny.in" precision.compute=fp32 model.family=llama
grep -q '"kernel": *"rmsnorm_forward"' shown || fail "no RMSNorm of Llama"
if grep -q '"kernel": *"layernorm_' shown; then fail "a norm that the deck does not have"; fi
# Attention to both sides, with which a deck of causal attention is projected as well.
calibrates tiny-calibration bf16 2 "$decks/tiny.in" precision.compute=bf16 parallel.zero_stage=3 model.family=bert
grep -q '"kernel": *"attention_forward_bidirectional"' shown || fail "attention is not that of the deck"
grep -q '^  attention_forward_bf16 =$' "$decks/profile.in" || fail "no shapes of attention"
[ "$(profiled ranks_per_node)" = 2.0 ] || fail "$(profiled ranks_per_node) ranks per node"
# Two ranks of a host share what one has; both figures have four digits.
awk -v one="$memory" -v two="$(profiled memory_gb)" 'BEGIN { d = 2 * two / one - 1; exit !(d * d < 4e-6) }' ||
  fail "memory of a rank: $memory GiB of one, $(profiled memory_gb) of two"
"$GPTPOST" table --style comm --format csv "$decks/calibration.h5" >out 2>err || fail "no table"
for op in reduce_scatter all_gather all_reduce; do
  grep -q ",$op,2,1," out || fail "no $op"
done
if grep -q ',data,send,' out; then fail "messages that the deck does not send"; fi
calibrates calibration bf16 2
"$GPTPOST" table --style comm --format csv "$decks/calibration.h5" >out 2>err || fail "no table"
grep -q ',data,send,2,1,8,2,f32,none,' out || fail "no message of 8 bytes"

# What there is no time for is counted: measured or left out, it is as many in any time. Without a deck the three
# kernels of each layer and number of rows are added where times change between two numbers of rows.
counted() { tail -1 out | sed -E 's/.* kernels=([0-9]+) messages=([0-9]+) left_out=([0-9]+) .*/\1 + \2 + \3/'; }
run 2 --calibrate run.time_limit_s=0.3 run.device=host
short=$(counted)
# Report and profile say so, and what would help; the time is that of all, so no second.
tr -s ' \n' ' ' <out | grep -Eq 'Left out: WARNING: most was not measured, .* [0-9]+ of [0-9]+ measurements were left out, large sizes first, for lack of time; run.time_limit_s = [0-9]{2,} or more would do' ||
  fail "what is left out: $(grep -A 4 '^Left out' out)"
awk 'length($0) > 80 && !/^(GPTBENCH|Project|As machine|Messages:) / { exit 1 }' out || fail "lines of more than 80 columns"
cut -c 1-80 "$work/output/calibration/calibration.in" | grep '^! ' | tr -s '\n!' ' ' >heading
grep -q 'WARNING: most was not measured, ' heading || fail "the profile does not say that it is poor: $(cat heading)"
grep -Eq "^  unmeasured = .*'between_gb_per_s', 'between_us'" "$work/output/calibration/calibration.in" ||
  fail "the profile does not name what was not measured: $(grep unmeasured "$work/output/calibration/calibration.in")"
long_s=$((${GPTBENCH_COMMAND_S:-180} / 18)) # more under a sanitizer
run 2 --calibrate run.time_limit_s=$long_s run.device=host
added=$(($(counted) - $((short))))
[ $((added % 3)) -eq 0 ] || fail "measured and left out: $short in 0.3 s, $(counted) in $long_s s"
[ "$short" != "$(counted)" ] || fail "as many in 0.3 s as in $long_s s: $short"

# No GEMM fits: what was measured is kept, and there is no profile.
run 1 --calibrate run.time_limit_s=1 run.device=host "$decks/tiny.in" model.hidden_size=1048576 model.num_attention_heads=8192 model.vocab_size=1048576
[ "$status" -eq 3 ] || fail "status $status instead of 3"
tail -1 out | grep -q '^GPTBENCH calibration status=OOM verdict=NOT VERIFIED .* profile=none ' || fail "last line: $(tail -1 out)"

# Explained with the profile; a calibration has no steps.
run 2 "$decks/tiny.in"
"$GPTPOST" explain --profile "$decks/profile.in" "$work/output/tiny/result.h5" >out 2>err ||
  fail "explain: $(cat err)"
grep -q '^  limits    profile' out || fail "the profile is not named"
if "$GPTPOST" explain "$decks/calibration.h5" >out 2>err; then fail "explains a calibration"; fi
grep -q 'a calibration has no steps' err || fail "says nothing of steps"

# A signal to one rank: what was measured so far is in the result, and there is no profile.
for ranks in 1 2; do
  case="signal, $ranks ranks"
  rm -rf "$work" out
  mkdir -p "$work"
  # shellcheck disable=SC2016  # expanded by the inner shell
  (cd "$work" && read -r -a launch <<<"$GPTBENCH_LAUNCH $ranks" &&
    exec "${limited[@]}" "${launch[@]}" sh -c 'echo $$ >>pids; exec "$0" "$@"' "$GPTBENCH" --calibrate run.time_limit_s=200 run.device=host) >out 2>err &
  job=$!
  await ' left: other kernels in fp32$' out "$job"
  kill -TERM "$(head -n 1 "$work/pids")"
  await_end "$job"
  [ "$status" -eq 8 ] || fail "status $status instead of 8"
  tail -1 out | grep -q '^GPTBENCH calibration status=TIMEOUT verdict=NOT VERIFIED .* profile=none ' || fail "last line: $(tail -1 out)"
  check_result "$work/output/calibration/result.h5" TIMEOUT
  grep -q '^reason stopped by signal 15, without a profile; measurements left out: [1-9]' values || fail "$(grep reason values)"
  [ ! -e "$work/output/calibration/calibration.in" ] || fail "a profile"
  "$GPTPOST" show "$work/output/calibration/result.h5" --format json >shown || fail "the result is not shown"
  grep -q '"kernel": *"triad"' shown || fail "what was measured is not in the result"
done

# Ranks that take turns on nodes, and nodes with different numbers of ranks.
# ranks_on 'RANKS OF A NODE, RANK BY RANK' NODES WHO [DECK]: as GPTBENCH_RANKS_PER_NODE makes nodes, rank r on node
# r / its number. WHO exchange messages, where not all do: report, profile and result say so. Leaves the messages in out.
ranks_on() {
  local sizes nodes=$2 who=$3 name=calibration result
  read -ra sizes <<<"$1"
  case="ranks on nodes by $1"
  [ $# -eq 3 ] || name=tiny-calibration
  result=$work/output/$name/result.h5
  rm -rf "$work"
  mkdir -p "$work"
  # shellcheck disable=SC2016  # expanded by the inner shell
  (cd "$work" && export DECK="${4-}" && read -r -a launch <<<"$GPTBENCH_LAUNCH ${#sizes[@]}" &&
    exec "${limited[@]}" "${launch[@]}" sh -c 'shift "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"; exec env "GPTBENCH_RANKS_PER_NODE=$1" "$0" --calibrate $DECK run.device=host run.time_limit_s=1' "$GPTBENCH" "${sizes[@]}") >out 2>err
  status=$?
  [ "$status" -eq 0 ] || fail "status $status"
  tail -1 out | grep -q "^GPTBENCH calibration status=OK verdict=VALID ranks=${#sizes[@]} nodes=$nodes " || fail "last line: $(tail -1 out)"
  check_result "$result" OK
  cat "$work/output/$name/$name.in" >profile
  if [ -n "$who" ]; then
    tr -s ' \n' ' ' <out | grep -Eq "$who [0-9]+ s, " || fail "the report does not say who exchanges messages"
    grep '^! ' profile | tr -s ' \n!' ' ' | grep -Fq "input/profiles.md. $who " || fail "nor does the profile: $(head -8 profile)"
    grep -Fq "reason $who" values || fail "nor does the result: $(grep '^reason' values)"
  elif grep -q 'exchange messages' out; then
    fail "not all ranks exchange messages"
  fi
  "$GPTPOST" table --style comm --format csv "$result" >out 2>err || fail "no table"
}
# has_messages AXIS,RANKS,NODES ...: all of the messages in out, which are of all four kinds.
has_messages() {
  local kind group axis ranks
  for kind in all_reduce reduce_scatter all_gather send; do
    for group in "$@"; do
      IFS=, read -r axis ranks <<<"$group"
      grep -q ",$axis,$kind,$ranks," out || fail "no $kind along $group"
    done
  done
  [ "$(grep -Eo ',[a-z]+,(all_reduce|reduce_scatter|all_gather|send),[0-9]+,[0-9]+,' out | sort -u | wc -l)" -eq $((4 * $#)) ] ||
    fail "messages along other axes: $(cut -d, -f 1-12 out | sort -u | head -20)"
}
ranks_on "4 1 4 2" 2 ""
has_messages tensor,2,1 data,2,2 world,4,2
ranks_on "3 3 3 3 3 1" 3 "4 of 6 ranks exchange messages, 2 on each of 2 nodes: nodes hold 1 to 3"
has_messages tensor,2,1 data,2,2 world,4,2
grep -q '^  ranks_per_node = 3.0 ' profile || fail "ranks of a node: $(grep ranks_per_node profile)"
grep -Eq '^  between_us = [0-9.]+  ! measured: messages between nodes, 2 of 3 ranks per node$' profile || fail "links: $(grep between profile)"
# The first rank, which writes the files, waits.
ranks_on "9 1 1 2 2" 3 "4 of 5 ranks exchange messages, 2 on each of 2 nodes: nodes hold 1 to 2"
has_messages tensor,2,1 data,2,2 world,4,2
ranks_on "2 2 2" 2 "2 of 3 ranks exchange messages, 1 on each of 2 nodes, and the 2 of one node: nodes hold 1 to 2, and the deck's groups need all; groups are those without a deck" \
  "$decks/tiny.in"
has_messages tensor,2,1 data,2,2
# The first rank is alone on its node; the three of the other exchange messages within it.
ranks_on "1 1 2 3" 2 "2 of 4 ranks exchange messages, 1 on each of 2 nodes, and the 3 of one node: nodes hold 1 to 3"
has_messages tensor,3,1 data,2,2
grep -Eq '^  within_us = [0-9.]+  ! measured: messages within a node$' profile || fail "links: $(grep within profile)"
grep -Eq '^  between_us = [0-9.]+  ! measured: messages between nodes, 1 of 3 ranks per node$' profile || fail "links: $(grep between profile)"
# An odd number of ranks on one node.
ranks_on "9 9 9" 1 ""
has_messages data,3,1

# A rank that is stopped is named by the other.
case="a rank is stopped"
rm -rf "$work" out
mkdir -p "$work"
# shellcheck disable=SC2016  # expanded by the inner shell
(cd "$work" && read -r -a launch <<<"$GPTBENCH_LAUNCH 2" &&
  exec "${limited[@]}" "${launch[@]}" sh -c 'echo $$ >>pids; exec "$0" "$@"' "$GPTBENCH" --calibrate run.time_limit_s=200 \
    run.device=host run.watchdog_s=2) >out 2>err &
job=$!
await ' left: other kernels in fp32$' out "$job"
kill -STOP "$(head -n 1 "$work/pids")"
await_end "$job"
[ "$status" -eq 6 ] || fail "status $status instead of 6"
grep -Eq '^gptbench: rank [01] on .*: rank [01] on .* has been stopped for more than 2 s' err || fail "$(cat err)"

refused 2 'only one of --plan' 0 --calibrate --plan
refused 2 "precision.compute = 'fp64' cannot be calibrated, .*; use another type" 2 --calibrate "$decks/tiny.in" run.device=ref \
  precision.compute=fp64
refused 2 'unknown key' 2 --calibrate run.bogus=1
exit $((failures > 0))
