#!/bin/bash
# The command line: what is printed without a run, and overrides.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
deck=$decks/tiny.in

says() {  # says PATTERN ARGUMENTS...: without MPI, status 0, nothing on standard error or disk
  local pattern=$1
  shift
  run 0 "$@"
  [ "$status" -eq 0 ] || fail "status $status"
  [ ! -s err ] || fail "said something on standard error"
  grep -Eq -- "$pattern" out || fail "no '$pattern' in the output"
  [ -z "$(find "$work" -mindepth 1)" ] || fail "wrote something"
}
says '^  8  stopped by time limit or signal \(status TIMEOUT\)$' --help
awk 'length($0) > 80 { exit 1 }' out || fail "lines of more than 80 columns"
says '^  8  stopped by time limit or signal' -h
says '^gptbench [0-9]+\.[0-9]+\.[0-9]+ \(commit ' --version
says 'num_attention_heads' --keys
for group in run model parallel batch precision memory optimizer data output; do says "&$group" --keys; done
says 'micro_batch_size' --keys --markdown
says "^ *name = 'tiny'" --check "$deck"
says '^  seed = 1 +! default$' --check "$deck"
says '^  steps = 4$' --check "$deck"
says '^  steps = 9 +! command line$' --check "$deck" run.steps=9
# Decks that the shell has opened.
says "^ *name = 'tiny'" --check <(cat "$deck")
says "^ *name = 'tiny'" --check /dev/stdin < <(cat "$deck")
says "^ *name = 'tiny'" --check - <"$deck"

# What --check prints is a deck, and gives itself; of every family.
for family in gpt bert mpt llama; do
  run 0 --check "$deck" "model.family=$family"
  cp out "$decks/echo.in"
  run 0 --check "$decks/echo.in"
  grep -v '^!' "$decks/echo.in" | sed 's/ *!.*//' >echo.1
  grep -v '^!' out | sed 's/ *!.*//' >echo.2
  case="--check of what --check printed, $family"
  cmp -s echo.1 echo.2 || fail "$(diff echo.1 echo.2 | head -3)"
done

# And the deck that a result holds repeats its run.
run 0 "$deck" run.steps=5 model.hidden_size=32
loss=$(sed -n 's/.* loss=\([^ ]*\) .*/\1/p' out)
"$GPTPOST" deck "$work/output/tiny/result.h5" >"$decks/again.in"
run 0 "$decks/again.in"
grep -q "^GPTBENCH status=OK .* steps=4 .* loss=${loss:-none} " out || fail "not the run of before, with loss $loss"

# A report names the keys that the console names, as they were set: 0 too, in whose place the run put 2.
run 2 "$deck" parallel.data_parallel=0 run.seed=7
"$GPTPOST" report -o page.html "$work/output/tiny/result.h5" >/dev/null 2>err || fail "no report"
sed -n '/^Deck /,/^---/p' out | grep -oE '[a-z_0-9]+=[^ ,]+' >keys.console
sed -n '/<h2>Keys that were set/,/<.pre>/p' page.html | sed -nE "s/&#39;/'/g; s/^  ([a-z_0-9]+) = (.*)/\1=\2/p" >keys.report
grep -qx 'data_parallel=0' keys.console || fail "the console does not show data_parallel"
cmp -s keys.console keys.report || fail "other keys: $(diff keys.console keys.report)"

# The plan of any number of ranks, without MPI.
says 'data 12288 = 12288 ranks' --plan "$GPTBENCH_SOURCE_DIR/input/124m.in" --ranks 12288 batch.global_batch_size=12288
says '^Parameters +124,475,904' --plan "$GPTBENCH_SOURCE_DIR/input/124m.in" --ranks 512
says '^Parameters +64,862,437,376' --plan "$deck" model.num_layers=80 model.hidden_size=8192 model.num_attention_heads=64 model.seq_length=2048 model.vocab_size=50368
says '^memory per rank: [0-9]+ bytes' --plan "$deck" --ranks 3
says '^ +data +all_reduce +[0-9,]+ calls +[0-9,]+ bytes' --plan "$deck" --ranks 3
# Without --ranks: of one replica.
says '^Grid +tensor 2 x context 1 x pipeline 3 x data 1 = 6 ranks' --plan "$deck" model.num_layers=3 parallel.tensor_parallel=2 parallel.pipeline_parallel=3
says '^GPTBENCH plan params=[0-9]+ ranks=3 memory_bytes=[0-9]+ limit_bytes=0 fits=yes$' --plan "$deck" --ranks 3
says '^GPTBENCH plan params=[0-9]+ ranks=3 memory_bytes=[0-9]+ limit_bytes=1073741824 fits=yes$' --plan "$deck" --ranks 3 memory.device_memory_gib=1
says '^GPTBENCH plan params=[0-9]+ ranks=3 memory_bytes=[0-9]+ limit_bytes=1024 fits=no$' --plan "$deck" --ranks 3 memory.device_memory_gib=9.5367431640625e-7
[ "$(tail -1 out | cut -d ' ' -f 1-2)" = 'GPTBENCH plan' ] || fail "last line: $(tail -1 out)"
says '^ +weight = parameters::working/h.0.mlp.fc.weight ' --plan "$deck" --ranks 3 --operations
says '^memory per rank: [0-9]+ bytes' --plan "$deck" --ranks 3 --operations
# A step on a machine that is not there, of thousands of ranks.
fugaku=$GPTBENCH_SOURCE_DIR/input/fugaku/fugaku-1024-none-12288-tp12-mbs1-6.144-row32.in
says '^GPTBENCH projection sec_per_it=[0-9.e+-]+ low=[0-9.e+-]+ high=[0-9.e+-]+ tokens_per_s=[0-9.e+-]+ mfu=0\.[0-9]+ memory_bytes=[0-9]+ fits=yes machine=a64fx-2.0 software=megatron-a64fx$' --project "$fugaku" --machine a64fx-2.0 --software megatron-a64fx --ranks 12288
[ "$(tail -1 out | cut -d ' ' -f 1-2)" = 'GPTBENCH projection' ] || fail "last line: $(tail -1 out)"
says '^300 Gtokens +[0-9.e+]+ h, [0-9.e+]+ node-hours, [0-9.e+]+ MWh$' --project "$fugaku" --machine a64fx-2.2 --software megatron-a64fx --ranks 12288 --tokens 3e11
says ' fits=no machine=h100 software=gptbench$' --project "$deck" --machine h100 --software gptbench --ranks 3 memory.device_memory_gib=1
# The same figures as one JSON object; the list of a sweep likewise.
says '^GPTBENCH plan ' --plan "$deck" --ranks 6 model.num_layers=2 parallel.pipeline_parallel=2
tail -1 out >plan_line
says '^\{"params": ' --plan "$deck" --ranks 6 model.num_layers=2 parallel.pipeline_parallel=2 --format json
python3 - plan_line out <<'END' || fail "JSON of the plan: $(cat plan_line)"
import json, sys
line = dict(word.split("=") for word in open(sys.argv[1]).read().split()[2:])
plan = json.load(open(sys.argv[2]))
plan["fits"] = "yes" if plan["fits"] else "no"
assert all(str(plan[key]) == value for key, value in line.items()), plan
assert len(plan["stages"]) == 2 and plan["memory_bytes"] == max(s["memory"]["total_bytes"] for s in plan["stages"])
END
says '^\{"name": "fugaku' --sweep "$GPTBENCH_SOURCE_DIR/input/fugaku/sweep.in" --list --format json
python3 - out <<'END' || fail "JSON of the list"
import json, sys
sweep = json.load(open(sys.argv[1]))
assert len(sweep["rows"]) == 37 and sweep["left_out"] == 3
assert sum(row["left_out"] is not None for row in sweep["rows"]) == 3
assert all(set(row["values"]) == set(sweep["rows"][0]["values"]) and row["ranks"] > 0 for row in sweep["rows"])
END
# Of the largest batches, too.
most=2147483647
says "^Micro-batches +$most sequences?" --plan "$deck" batch.micro_batch_size=$most batch.global_batch_size=$most
says "^Micro-batches +$most x 1 sequences?" --plan "$deck" batch.micro_batch_size=1 batch.global_batch_size=$most

# Overrides: strings with or without quotes, names in any case, the last word over the deck.
ends 0 OK 0 "$deck" Run.STEPS=3
grep -qx 'steps 3' values || fail "$(grep '^steps' values)"
ends 0 OK 0 "$deck" model.hidden_size=32 "precision.compute='bf16'"
# V h + s h + 12 h^2 + 13 h + 2 h with V 32, s 8, h 32
grep -qx "num_params $((32 * 32 + 8 * 32 + 12 * 32 * 32 + 13 * 32 + 2 * 32))" values || fail "$(grep num_params values)"
run 0 "$deck" run.name=other
check_result "$work/output/other/result.h5" OK
run 0 "$deck" output.directory=a/b/c
check_result "$work/a/b/c/result.h5" OK
tail -1 out | grep -Eq '^GPTBENCH status=OK verdict=VALID params=[0-9]+ ranks=1 steps=3 .*loss=[0-9.]+ file=a/b/c/result.h5$' || fail "last line"

# How much is printed. The box and the last line fit in 60 lines; quiet runs print the last line alone.
run 0 "$deck" run.steps=200 output.log_every=0
[ "$(wc -l <out)" -le 60 ] || fail "$(wc -l <out) lines"
grep -Eq '^VALID +199 timed steps' out || fail "no headline"
grep -Eq '^ *200/200 ' out || fail "no last step"
awk 'length($0) > 80 && !/^(GPTBENCH|Deck) / { exit 1 }' out || fail "lines of more than 80 columns"
# However long it is and whatever it tells of: held-out losses, skipped steps, a duration.
few_lines() {  # few_lines RANKS ARGUMENTS...
  run "$@"
  [ "$(wc -l <out)" -le 60 ] || fail "$(wc -l <out) lines"
  grep -Eq '^VALID ' out || fail "no headline"
  grep -Eq '^  &run ' out || fail "none of the keys that were set"
  awk 'length($0) > 80 && !/^(GPTBENCH|Deck) / { exit 1 }' out || fail "lines of more than 80 columns"
}
few_lines 0 "$deck" output.log_every=0 run.steps=500 convergence.evaluate_every=1
few_lines 0 "$deck" output.log_every=0 run.duration_s=1 convergence.evaluate_every=1
few_lines 0 "$deck" output.log_every=0 run.steps=500 run.warmup_steps=100 run.verify=true convergence.evaluate_every=1 \
  memory.activation_checkpointing=full precision.compute=fp16 precision.initial_loss_scale=1e20
# Nearly every key set to something else than its default; a deck with all keys, most of them defaults.
cat >"$decks/keys.in" <<'END'
&run name = 'keys', steps = 400, warmup_steps = 20, seed = 3, device = 'host', comm = 'mpi', mpi_arrays = 'host',
  time_limit_s = 600, watchdog_s = 300, deterministic = T, check_replicas_every = 50, resume = 'auto' /
&model num_layers = 2, hidden_size = 32, num_attention_heads = 4, ffn_hidden_size = 64, seq_length = 16, vocab_size = 61,
  vocab_multiple = 4, position_embedding = 'learned', dropout = 0.1, init_std = 0.03, layernorm_epsilon = 1e-6 /
&parallel data_parallel = 1, tensor_parallel = 2, sequence_parallel = T, rank_order = 'tp_cp_dp_pp', zero_stage = 1,
  offload = 'optimizer', offload_update = 'host' /
&batch micro_batch_size = 2, global_batch_size = 6 /
&precision compute = 'fp16', reduce = 'fp32', initial_loss_scale = 1e20, min_loss_scale = 0.5, loss_scale_growth = 2.5,
  loss_scale_backoff = 0.25, loss_scale_window = 100, loss_scale_hysteresis = 2 /
&memory activation_checkpointing = 'full', checkpoint_every = 2, device_memory_gib = 4 /
&optimizer lr = 1e-3, beta1 = 0.8, beta2 = 0.9, epsilon = 1e-7, weight_decay = 0.2, clip = 2 /
&data source = 'uniform' /
&convergence lr_schedule = 'cosine', lr_warmup_steps = 10, lr_decay_steps = 300, lr_min = 1e-4, evaluate_every = 50,
  evaluate_batches = 2, target_loss = 0.01 /
&output directory = 'all', flops_convention = 'exact', peak_tflops = 0.5, trace_step = 3 /
&checkpoint directory = 'ck', every_steps = 100, every_s = 30, keep = 1, async = F /
END
few_lines 2 "$decks/keys.in"
grep -Eq '^  and [0-9]+ more, which --verbose prints$' out || fail "all keys are printed"
# On more ranks, whose bindings and messages are more.
few_lines 4 "$decks/keys.in" run.steps=40 parallel.pipeline_parallel=2
[ "$(sed -n '/^Deck /,/^---/p' out | wc -l)" -ge 8 ] || fail "fewer than 6 lines of keys"
few_lines 8 "$decks/keys.in" run.steps=40 parallel.pipeline_parallel=2 parallel.context_parallel=2 parallel.zero_stage=2
grep -q '^Binding, node 0   ranks 0-7: ' out || fail "equal bindings have lines of their own"
# All that fits is printed, where nothing is there to be resumed from.
cat >"$decks/fits.in" <<'END'
&run name = 'fits', steps = 200, warmup_steps = 20, seed = 3, resume = 'auto' /
&model num_layers = 2, hidden_size = 32, num_attention_heads = 4, seq_length = 16, vocab_size = 61 /
&batch micro_batch_size = 2, global_batch_size = 8 /
&precision compute = 'fp16', initial_loss_scale = 1e20 /
&optimizer lr = 1e-3, beta2 = 0.9, weight_decay = 0.2 /
&output peak_tflops = 0.5 /
&checkpoint directory = 'ck', every_steps = 100 /
END
few_lines 2 "$decks/fits.in"
! grep 'verbose prints' out || fail "keys or plan are cut at $(wc -l <out) lines"
[ "$(sed -n '/^VALID /,/^====/p' out | wc -l)" -eq 7 ] || fail "the box does not have six lines"
run 0 --check "$deck" output.log_every=0
cp out "$decks/echo.in"
few_lines 0 "$decks/echo.in"
run 0 "$deck" --quiet
[ "$(wc -l <out)" -eq 1 ] || fail "$(wc -l <out) lines with --quiet"
grep -q '^GPTBENCH status=OK ' out || fail "not the last line"
run 0 "$deck" --quiet optimizer.lr=1e30 run.steps=50
[ "$status" -eq 5 ] || fail "status $status instead of 5"
[ "$(wc -l <out)" -eq 1 ] || fail "$(wc -l <out) lines with --quiet"
grep -q '^gptbench: FAILED: .* in step [0-9]*; ' err || fail "no reason with --quiet"
run 0 --verbose "$deck"
grep -q '^  beta1 = ' out || fail "no deck with --verbose"
grep -q '^Time of the slowest rank' out || fail "no performance with --verbose"
# The verdict is in colour on a terminal; not where output goes elsewhere, or NO_COLOR or a launcher says so.
on_terminal() { (cd "$work" && "${limited[@]}" script -qec "$*" /dev/null </dev/null) >out 2>err; }
green=$'^\033\\[1;32mVALID\033\\[0m '
if command -v script >/dev/null; then
  case="on a terminal"
  on_terminal "$GPTBENCH" "$deck"
  grep -q "$green" out || fail "no colour"
  on_terminal NO_COLOR=1 "$GPTBENCH" "$deck"
  grep -q '^VALID ' out || fail "colour with NO_COLOR"
  on_terminal "$GPTBENCH_LAUNCH" 1 "$GPTBENCH" "$deck"
  grep -q '^VALID ' out || fail "colour behind a launcher, which may write to a file"
  run 0 "$deck"
  grep -q '^VALID ' out || fail "colour in a file"
else
  not_tested "script is missing: colour"
fi
refused 2 '^gptbench: --format requires --plan, --project, --search or --sweep --list' 0 "$deck" --format json
refused 2 '^gptbench: --format requires json' 0 --plan "$deck" --format xml
refused 2 'only one of --verbose and --quiet' 0 "$deck" --quiet --verbose
refused 2 '^gptbench: --quiet requires a run' 0 --check "$deck" --quiet
says '^  warmup_steps = ' --keys warm
! grep -q 'seq_length' out || fail "other keys"
refused 2 "no key has 'nonsense'" 0 --keys nonsense
refused 7 "run.algorithms = 'none.txt' cannot be read .*; name a result file" 0 "$deck" run.algorithms=none.txt
finish
