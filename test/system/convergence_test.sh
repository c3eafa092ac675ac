#!/bin/bash
# Held-out loss, target and time to target end to end: on one rank and on every axis, from files, and
# what is refused.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
model=(model.num_layers=2 model.hidden_size=32 batch.global_batch_size=8 optimizer.lr=1e-2)
options=("${model[@]}" run.steps=16 convergence.evaluate_every=4)

two=convergence.evaluate_batches=2

# held_out N: the held-out loss of the N-th evaluation.
held_out() { sed -n 's/^held_out_loss //p' values | cut -d ' ' -f "$1"; }
# same A B: losses that differ by at most 0.001: AdamW passes on differences of roundoff.
same() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(a > 0 && b > 0 && d * d < 1e-6) }'; }

ends 0 OK 1 "$decks/tiny.in" "${options[@]}" "$two"
[ "$(grep -c '^Held-out loss after step' out)" = 4 ] || fail "not four evaluations"
grep -qx 'held_out_step 4 8 12 16' values || fail "evaluations: $(grep '^held_out_step' values)"
grep -qx 'to_target 0 steps 0 tokens 0 s' values || fail "a target that was not set: $(grep '^to_target' values)"
grep -q '^Held-out loss   [0-9.]* after step 16; evaluated in' out || fail "not in the headline"
third=$(held_out 3)
last=$(held_out 4)

for layout in tensor_parallel=2 pipeline_parallel=2 context_parallel=2 zero_stage=3 zero_stage=1; do
  ends 0 OK 2 "$decks/tiny.in" "${options[@]}" "$two" "parallel.$layout"
  same "$last" "$(held_out 4)" || fail "held-out loss $(held_out 4), on one rank $last"
done

# The journal has them too, and is the data of a run that was killed.
[ "$(cut -d , -f 8 "$work/output/tiny/steps.csv" | sed -n '1p;5p;17p')" = "$(printf 'held_out_loss\n%.9g\n%.9g' "$(held_out 1)" "$(held_out 4)")" ] ||
  fail "steps.csv has $(cut -d , -f 8 "$work/output/tiny/steps.csv" | tr '\n' ' ')"
# Between two evaluations the run ends with one, by its steps and by the clock.
ends 0 OK 1 "$decks/tiny.in" "${model[@]}" convergence.evaluate_every=4 run.steps=10
grep -qx 'held_out_step 4 8 10' values || fail "evaluations: $(grep '^held_out_step' values)"
ends 0 OK 1 "$decks/tiny.in" "${model[@]}" convergence.evaluate_every=1000000 run.duration_s=0.2
[ "$(wc -w < <(grep '^held_out_step' values))" = 2 ] || fail "evaluations: $(grep '^held_out_step' values)"

# The third evaluation as the target: the run ends there. The time is that of its steps.
ends 0 OK 1 "$decks/tiny.in" "${options[@]}" "$two" convergence.target_loss="$third" output.log_every=5
grep -A 1 -E '^ +12/16 ' out | grep -q '^Held-out loss after step 12: ' || fail "the last step is not printed before its loss"
grep -qx 'steps 12' values || fail "$(grep '^steps ' values) trained"
grep -qx "to_target 12 steps 768 tokens $(sed -n 's/^time_of_steps //p' values) s" values || fail "$(grep '^to_target' values)"
grep -q '^Held-out loss .* target reached with 768 tokens in' out || fail "not in the headline"
grep -q 'target .* not reached' out && fail "reached, and not reached"
"$GPTPOST" table "$work/output/tiny/result.h5" | grep -q 'To target (s)' || fail "not in the table"
"$GPTPOST" show "$work/output/tiny/result.h5" | grep -q 'target reached after 12' || fail "not on the page"
ends 0 OK 1 "$decks/tiny.in" "${options[@]}" "$two" convergence.target_loss=0.5
grep -q '^Held-out loss .*, target 0.5 not reached' out || fail "not in the headline: $(grep '^Held-out' out)"
target=$(awk -v loss="$third" 'BEGIN { print loss + 0.001 }')  # roundoff differs
# A target in the warm-up: no step is timed, and nothing tells of timed steps or their messages.
ends 0 OK 2 "$decks/tiny.in" "${options[@]}" "$two" run.warmup_steps=15 convergence.target_loss="$target"
grep -q '^comm ' values && fail "messages of the warm-up: $(grep '^comm ' values)"
"$GPTPOST" show "$work/output/tiny/result.h5" >page
grep -q 'no step was timed' page || fail "timed steps: $(grep throughput page)"
grep -q 'held-out loss .*target reached after' page || fail "the target is not on the page"
grep -qE '^(time of|communication)' page && fail "times of the warm-up: $(grep -E '^(time of|communication)' page)"
"$GPTPOST" report "$work/output/tiny/result.h5" -o page.html || fail "no report"
grep -q 'No step was timed' page.html || fail "the report does not say that no step was timed"

# A run that continues another adds the time of its steps.
saved=$PWD/saved
rm -rf "$saved"
ends 0 OK 2 "$decks/tiny.in" "${model[@]}" convergence.evaluate_every=4 "$two" run.steps=8 checkpoint.directory="$saved"
first=$(sed -n 's/^time_of_steps //p' values)
ends 0 OK 1 "$decks/tiny.in" "${options[@]}" "$two" run.resume="$saved" convergence.target_loss="$target"
own=$(sed -n 's/^time_of_steps //p' values)
# The checkpoint has the time of the slowest rank, the first result the sum of each step's slowest.
sed -n 's/^to_target \([0-9]*\) steps .* tokens \(.*\) s$/\1 \2/p' values |
  awk -v a="$first" -v b="$own" '{ exit !($1 == 12 && $2 > b + a / 2 && $2 < 1.0001 * (a + b)) }' ||
  fail "$(grep '^to_target' values): $first s before, and $own s"

# A run that has reached its target is at its end when it is started again.
rm -rf "$saved"
ended=("${options[@]}" "$two" convergence.target_loss="$target" checkpoint.directory="$saved" run.resume=auto)
ends 0 OK 1 "$decks/tiny.in" "${ended[@]}"
run 1 "$decks/tiny.in" "${ended[@]}" output.directory="$work/again"
grep -q 'is reached by a held-out loss of [0-9.]*: nothing is left to train, .*step-00000012.h5' err || fail "trains on behind its target"
[ ! -e "$work/again" ] || fail "wrote a second result"

# A step that is the last before a limit has its held-out loss from the run that goes on.
rm -rf "$saved"
every=("${model[@]}" convergence.evaluate_every=1 run.steps=4 checkpoint.directory="$saved" run.resume=auto)
ends 8 TIMEOUT 2 "$decks/tiny.in" "${every[@]}" run.time_limit_s=0.001
ends 0 OK 2 "$decks/tiny.in" "${every[@]}"
grep -qx 'held_out_step 1 2 3 4' values || fail "evaluations: $(grep '^held_out_step' values)"

# One that was stopped before it saw that its last step reaches the target is at its end, too.
rm -rf "$saved" "$PWD/kept"
run 1 "$decks/tiny.in" "${every[@]}" output.directory="$PWD/kept" run.time_limit_s=0.001
[ "$status" -eq 8 ] || fail "status $status of a run that is stopped"
run 1 "$decks/tiny.in" "${every[@]}" output.directory="$PWD/kept" convergence.target_loss=100
[ "$status" -eq 0 ] || fail "status $status of a run that has reached its target"
grep -q 'is reached by a held-out loss of .*, and .*kept/result.h5 says TIMEOUT: ' err || fail "does not say how the earlier run ended"

# The end of the files is held out, or a file of its own.
head -c 4000 /dev/zero | tr '\0' a >"$decks/a.txt"
head -c 129 /dev/zero | tr '\0' b >"$decks/b.txt"
cat "$decks/a.txt" "$decks/b.txt" >"$decks/ab.txt"
text=("${options[@]}" model.vocab_size=256 data.source=text)
ends 0 OK 1 "$decks/tiny.in" "${text[@]}" "$two" data.path=ab.txt
unseen=$(held_out 4)
awk -v a="$unseen" 'BEGIN { exit !(a > 4) }' || fail "what was never trained has a loss of $unseen"
ends 0 OK 2 "$decks/tiny.in" "${text[@]}" "$two" data.path=a.txt convergence.held_out_path=b.txt
same "$unseen" "$(held_out 4)" || fail "held out from a file of its own $(held_out 4), from the end $unseen"
refused 2 'b.txt. holds 16 sequences of 8, and 24 are evaluated' 1 "$decks/tiny.in" "${text[@]}" data.path=a.txt convergence.held_out_path=b.txt convergence.evaluate_batches=3
refused 7 'a.txt.*leaves nothing to train on' 1 "$decks/tiny.in" "${text[@]}" data.path=a.txt convergence.evaluate_batches=1000

refused 2 'convergence.target_loss needs convergence.evaluate_every' 0 "$decks/tiny.in" convergence.target_loss=1
refused 2 'leaves no step to decay' 0 "$decks/tiny.in" convergence.lr_schedule=cosine convergence.lr_warmup_steps=4
refused 2 'which run.duration_s replaces' 0 "$decks/tiny.in" convergence.lr_schedule=cosine run.duration_s=1
refused 2 "lr_decay_steps is of convergence.lr_schedule = 'cosine', which is 'constant'" 0 "$decks/tiny.in" convergence.lr_decay_steps=8
refused 2 'is more than optimizer.lr' 0 "$decks/tiny.in" convergence.lr_schedule=cosine convergence.lr_min=1
refused 2 "needs data.source = 'text'" 0 "$decks/tiny.in" convergence.held_out_path=x convergence.evaluate_every=1
finish
