#!/bin/bash
# run.find_largest: the largest batch that fits, not one more and not one less.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
deck=$decks/tiny.in
sed -i 's/seq_length = 8/seq_length = 64/' "$deck"
micro=(run.find_largest=micro_batch run.find_largest_steps=3)
search=("${micro[@]}" memory.device_memory_gib=0.06)
cap=$(awk 'BEGIN { printf "%d", 0.06 * 1024 ^ 3 }')

# found: the size that the record names; steps and sizes agree with it.
found() { sed -n "s/^reason largest $1 = \([0-9]*\);.*/\1/p" values; }

# need RANKS OVERRIDES...: bytes of a rank by the plan.
need() {
  local ranks=$1
  shift
  "$GPTBENCH" --plan "$deck" --ranks "$ranks" "$@" | sed -n 's/^memory per rank: \([0-9]*\) bytes.*/\1/p'
}

# By the bound on a device: b fits by the plan, b + 1 does not.
ends 0 OK 0 "$deck" "${search[@]}"
b=$(found micro_batch_size)
[ -n "$b" ] || fail "no size in the notes: $(grep reason values)"
[ "$(need 1 batch.micro_batch_size="$b")" -le "$cap" ] || fail "$b does not fit"
[ "$(need 1 batch.micro_batch_size=$((b + 1)))" -gt "$cap" ] || fail "$((b + 1)) fits as well"
grep -q "reason .*micro_batch_size = $((b + 1)): out of memory, predicted: .*device_memory_gib" values || fail "$(grep reason values)"
grep -qx 'steps 4' values || fail "$(grep '^steps' values)"
ends 0 OK 0 "$deck" run.find_largest=micro_batch run.find_largest_steps=6 memory.device_memory_gib=0.033
grep -qx 'steps 6' values || fail "$(grep '^steps' values)"

# The plan alone says the same, without running.
run 0 --plan "$deck" "${search[@]}"
grep -qx "Largest batch   micro_batch_size = $b by the plan, in device_memory_gib" out || fail "$(tail -1 out), found $b"

# Over powers of two: the largest of them, and the next one does not fit.
ends 0 OK 0 "$deck" "${search[@]}" run.find_largest_over=powers_of_two
p=$(found micro_batch_size)
if [ "$p" -gt "$b" ] || [ $((2 * p)) -le "$b" ]; then fail "$p of $b"; fi
for ((power = 1; power < p; power *= 2)); do :; done
[ "$power" -eq "$p" ] || fail "$p is no power of two"
grep -q "reason .*micro_batch_size = $((2 * p)): out of memory, predicted: .*device_memory_gib" values || fail "$(grep reason values)"

# On ranks, and as a global batch: three micro-batches a step stay three.
ends 0 OK 2 "$deck" run.find_largest=global_batch memory.device_memory_gib=0.06 run.find_largest_steps=3 batch.micro_batch_size=2 batch.global_batch_size=12
g=$(found global_batch_size)
[ $((g % 6)) -eq 0 ] || fail "global batch $g"
[ "$(need 2 batch.micro_batch_size=$((g / 6)) batch.global_batch_size="$g")" -le "$cap" ] || fail "$g does not fit"
[ "$(need 2 batch.micro_batch_size=$((g / 6 + 1)) batch.global_batch_size=$((g + 6)))" -gt "$cap" ] || fail "$((g + 6)) fits as well"

# The top value that the deck allows, when everything fits; and no size at all.
for top in 1 7 8; do
  ends 0 OK 0 "$deck" "${search[@]}" batch.global_batch_size=$top
  [ "$(found micro_batch_size)" = $top ] || fail "$(grep reason values)"
done
ends 3 OOM 0 "$deck" "${micro[@]}" memory.device_memory_gib=1e-4
grep -q 'reason out of memory, predicted' values || fail "$(grep reason values)"
"$GPTPOST" table --style zero "$work/output/tiny/result.h5" | grep -q 'Cannot even initialize model' || fail "zero table"

# The system refuses memory that the plan would take: what is found still runs.
if [ -z "${ASAN_OPTIONS:-}" ]; then
  (
    ulimit -v 1000000
    ends 0 OK 0 "$deck" "${micro[@]}"
    exit "$failures"
  ) || failures=$((failures + 1))
  grep -Eq 'reason largest micro_batch_size = [0-9]+; .*out of memory, met' values || fail "$(grep reason values)"
fi

# An outcome that is not of memory ends the search.
ends 5 FAILED 0 "$deck" "${search[@]}" optimizer.lr=1e30
ends 8 TIMEOUT 0 "$deck" "${search[@]}" run.steps=2000000000 batch.global_batch_size=1 run.time_limit_s=1
finish
