#!/bin/bash
# What new users met, on real runs (post_trials has the same with given times): the spread of MFU stays within that
# of the time, none is above 100 % without a word, tp=2 and dp=2 come in one order everywhere, and a sweep over ZeRO
# stages can be read in its own table. Nothing is compared with a time.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
here=$GPTBENCH_SOURCE_DIR/test/system
cat >"$decks/trial.in" <<'END'
&run steps = 30, warmup_steps = 5, verify = .false. /
&model num_layers = 2, hidden_size = 128, num_attention_heads = 4, seq_length = 64, vocab_size = 512 /
&batch micro_batch_size = 2, global_batch_size = 4 /
END
gptpost() { "$GPTPOST" "$@"; }

# trains NAME KEY=VALUE ...: on two ranks, into $work/NAME, its report into $work/NAME.txt.
trains() {
  local name=$1 launch=()
  shift
  case="run $name: $*"
  read -r -a launch <<<"$GPTBENCH_LAUNCH 2"
  "${limited[@]}" "${launch[@]}" "$GPTBENCH" "$decks/trial.in" "run.name=$name" "output.directory=$work/$name" "$@" >out 2>err ||
    fail "status $?"
  cp out "$work/$name.txt"
}

# --- one model in two layouts, against a measured ceiling that is kept from run to run ---------------
export GPTBENCH_CEILINGS=$work/ceilings
trains dp-1
trains tp-1 parallel.tensor_parallel=2
trains dp-2
trains dp-3
# Others may use the machine: the steady ceilings, which serve all runs, must agree.
have_peak() { gptpost table "$work"/?p-?/result.h5 | grep -q '; peak .*measured GEMM ceilings, '; }
for more in 4 5 6 7; do
  if have_peak; then break; fi
  trains "dp-$more"
done
case="runs against a measured ceiling"
if have_peak; then
  (cd "$work" && python3 "$here/trials_test.py" "$GPTPOST" ./?p-?/result.h5) >out 2>err || fail "$(cat out err)"
else
  not_tested "MFU of runs against a measured ceiling: the $(find "$work" -name '?p-?.txt' | wc -l) runs had no peak in common"
fi

# --- above 100 % --------------------------------------------------------------------------------------
# warned COMMAND ...: whether its output holds the warning.
warned() {
  "$@" 2>&1 | tr -s ' \n' ' ' | grep -Eq 'WARNING: MFU above 100 \\?%'
}
trains above output.peak_tflops=1e-6
trains below output.peak_tflops=1e3
echo "&mfu figure = 'mfu', reference = 1e-9, verdict = 'any' /" >"$work/mfu.in"
for name in above below; do
  expected=0
  if [ "$name" = below ]; then expected=1; fi
  file=$work/$name/result.h5
  gptpost report -o "$work/$name.html" "$file" >out
  for command in "cat $work/$name.txt" "gptpost show $file" "gptpost show --format json $file" "gptpost table $file" \
    "gptpost table --style mpt $file" "gptpost table --format csv $file" "gptpost table --format json $file" \
    "gptpost table --format latex $file" "gptpost compare $work/dp-1/result.h5 $file" "gptpost accept $work/mfu.in $file" "cat $work/$name.html"; do
    case=$command
    # shellcheck disable=SC2086  # words
    warned $command
    [ $? -eq $expected ] || fail "a warning is $([ $expected = 0 ] && echo missing || echo there)"
  done
  [ "$(grep -c '^GPTBENCH .* mfu=[0-9.]* warning=mfu_above_100_percent ' "$work/$name.txt")" -eq $((1 - expected)) ] ||
    fail "last line: $(tail -1 "$work/$name.txt")"
done

# --- a sweep over ZeRO stages, in the table that it names ---------------------------------------------
{
  cat "$decks/trial.in"
  echo "&output peak_tflops = 1 /"
  echo "&sweep vary(1) = 'zero_stage = 0:3', vary(2) = 'micro_batch_size = 1, 2', ranks = 2, launcher = '$GPTBENCH_LAUNCH {ranks}' /"
} >"$decks/zero.in"
case="sweep over ZeRO stages"
(cd "$work" && timeout "${GPTBENCH_COMMAND_S:-180}" "$GPTBENCH" --sweep "$decks/zero.in" run.name=zero) >out 2>err || fail "status $?"
(cd "$work" && eval "$(sed -n 's/^  gptpost table/gptpost table/p' ../out)") >table.md 2>err || fail "the table that the sweep names"
python3 - table.md >out 2>err <<'END' || fail "$(cat out err table.md)"
import sys
lines = [[cell.strip() for cell in line.strip("| \n").split("|")] for line in open(sys.argv[1]) if line.startswith("|")]
rows = [dict(zip(lines[0], line)) for line in lines[2:]]
names = {row["Run"]: (row["Layout"], row["micro_batch_size"]) for row in rows}
expected = {f"zero-zero_stage_{stage}-micro_batch_size_{size}": (f"dp2 z{stage}", str(size)) for stage in range(4) for size in (1, 2)}
assert len(rows) == 8 and names == expected, names
END
finish
