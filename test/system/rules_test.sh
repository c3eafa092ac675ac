#!/bin/bash
# Problem classes end to end: a run that meets the rules of its class, and one that does not.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
echo "&run class = 'demo', name = 'tiny' /" >"$decks/demo.in"

# says PATTERN: in the report.
says() {
  grep -Eq -- "$1" out || fail "no '$1' in the report"
}

# The tier that does not ask for a program without local changes. Ten steps are required, for which a busy machine
# takes longer.
duration_s=$((${GPTBENCH_COMMAND_S:-180} / 30))
ends 0 OK 2 "$decks/demo.in" run.tier=tuned output.peak_tflops=1 output.flops_convention=mpt run.duration_s=$duration_s
says '^VALID '
# The figure of merit is the one to quote, whatever the convention.
says '^Total .* \(causal\), '
says '^GPTBENCH .* convention=mpt '
awk '/^Total/ { total = $2 * (/MFLOP/ ? 1e-6 : /GFLOP/ ? 1e-3 : 1) }
  /^GPTBENCH/ { sub(/.* fom_tflops=/, ""); d = $1 / total - 1; exit !(d * d < 1e-6) }' out || fail "the total is not fom_tflops"
says '^Rules +met: class demo, tuned$'
says '^GPTBENCH .* class=demo tier=tuned rules=met fom_tflops=[0-9.e-]+ file='
if grep -q '^Warning: the rules' out; then fail "a warning"; fi
"$GPTPOST" table --where rules=met "$work/output/tiny/result.h5" >page
for part in 'Class demo' '| met'; do grep -q "$part" page || fail "the table is $(cat page)"; done

# A broken rule is no broken run.
ends 0 OK 1 "$decks/demo.in" run.tier=tuned output.peak_tflops=1 model.num_layers=1 run.duration_s=0 run.steps=4
says '^Warning: the rules of class demo will not be met: model.num_layers = 1 '
says '^Rules +not met: class demo, tuned: model.num_layers = 1'
says ' rules=not_met '
"$GPTPOST" show "$work/output/tiny/result.h5" >page
grep -q '^  rules  *not met: class demo' page || fail "the page is $(head -8 page)"
tr -s ' \n' ' ' <page | grep -q 'steps are timed, at least 10 are required: raise run.duration_s' || fail "no word on the steps"

ends 3 OOM 1 "$decks/demo.in" memory.device_memory_gib=0.001
says ' rules=not_met fom_tflops=none '
"$GPTPOST" show "$work/output/tiny/result.h5" | tr -s ' \n' ' ' >page
grep -q 'the verdict is NOT VERIFIED' page || fail "no word on the verdict"
if grep -Eq 'are timed, at least|no peak is known' page; then fail "rules on the steps of a run without any"; fi
refused 2 "run.class = 'dema' is not allowed \(did you mean 'demo'\?\)" 0 "$decks/demo.in" run.class=dema
finish
