#!/bin/sh
# checkpoint_rate.sh BUILD [--quick] [--repeats N] [--ranks '1 2'] [--directory DIR] [KEY=VALUE ...]
# The rate at which checkpoints are written, from the end of a step to the complete checkpoint, beside
# that of fio with as many writers, the same file size and the same pattern, in the same folder: each
# writer writes its part of one file in pieces of 4 MiB, around the page cache where gptbench does so (ext4,
# XFS, Btrfs), else with sync_file_range after each, and calls fsync at its end. GPT-2 124M, 1.5 GB,
# checkpoint.async = .false.; gptbench and fio in turn, medians and ranges.
# --quick takes a tiny model, which says nothing about rates. DIR is on the disk to measure (default: in
# BUILD). Prints why and ends with status 77 where fio is missing. KEY=VALUE are deck keys of all runs.
set -eu

usage() {
  echo "usage: checkpoint_rate.sh BUILD [--quick] [--repeats N] [--ranks '1 2'] [--directory DIR] [KEY=VALUE ...]" >&2
  exit 2
}

[ $# -ge 1 ] || usage
build=$(cd "$1" && pwd)
shift
repeats=5
checkpoints=4
ranks_list='1 2'
directory=$build
model="model.preset=gpt2-124m model.seq_length=32"
keys=
while [ $# -gt 0 ]; do
  case $1 in
    --quick)
      model="model.num_layers=2 model.hidden_size=256 model.num_attention_heads=4 model.seq_length=32 model.vocab_size=101"
      repeats=1
      ;;
    --repeats) shift; [ $# -gt 0 ] || usage; repeats=$1 ;;
    --ranks) shift; [ $# -gt 0 ] || usage; ranks_list=$1 ;;
    --directory) shift; [ $# -gt 0 ] || usage; directory=$1 ;;
    *=*) keys="$keys $1" ;;
    *) usage ;;
  esac
  shift
done
case $repeats$ranks_list in *[!0-9\ ]*) usage ;; esac
if ! command -v fio >/dev/null 2>&1; then
  echo "skipped: fio was not found (Debian: apt-get install fio)"
  exit 77
fi
OMP_NUM_THREADS=1
export OMP_NUM_THREADS

work=$(mktemp -d "$directory/checkpoint_rate.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
printf '&run name = "rate" /\n' >"$work/deck.in"

case $(stat -f -c %T "$directory") in
  ext2/ext3 | xfs | btrfs) pattern=--direct=1 ;;
  *) pattern=--sync_file_range=write:1 ;;
esac

# gptbench_rate RANKS: MB/s; leaves the size of a checkpoint in $bytes.
gptbench_rate() {
  rm -rf "$work/ck" "$work/out"
  # shellcheck disable=SC2086  # words
  if ! "$build/launch" "$1" "$build/bin/gptbench" "$work/deck.in" $model run.device=host run.verify=.false. \
    run.steps=$checkpoints run.warmup_steps=1 batch.micro_batch_size=1 output.peak_tflops=1 parallel.zero_stage=1 \
    "output.directory=$work/out" "checkpoint.directory=$work/ck" checkpoint.every_steps=1 checkpoint.keep=1 \
    checkpoint.async=.false. $keys >"$work/log" 2>&1; then
    cat "$work/log" >&2
    return 1
  fi
  bytes=$(find "$work/ck" -name 'step-*.h5' -exec stat -c %s {} + | head -n 1)
  "$build/bin/gptpost" show --format json "$work/out/result.h5" |
    sed -n 's/.*"checkpoint_write_s": *\([0-9.e+-]*\).*/\1/p' | awk -v bytes="$bytes" '{ printf "%.1f\n", bytes / $1 / 1e6; exit }'
  rm -rf "$work/ck"
}

# fio_rate RANKS: MB/s of a file of $bytes. fio gives the time of each writer in ms, its fsync included.
fio_rate() {
  part=$(((bytes / $1 + 4095) / 4096 * 4096))
  fio --name=checkpoint --directory="$work" --filename=fio.data --rw=write --bs=4m --ioengine=psync --fallocate=none \
    --numjobs="$1" --size="$part" --offset_increment="$part" "$pattern" --end_fsync=1 --output-format=json \
    >"$work/fio.json"
  rm -f "$work/fio.data"
  awk -F'[:,]' -v bytes="$bytes" '/"job_runtime"/ { if ($2 > most) most = $2 } END { printf "%.1f\n", bytes / (most > 0 ? most : 1) / 1e3 }' "$work/fio.json"
}

# median_of FILE: "median (least to largest)"
median_of() {
  sort -n "$1" | awk '{ v[NR] = $1 } END { m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
    printf "%.*f (%.*f to %.*f)", d, m, d, v[1], d, v[NR] }' d="$2"
}

echo "checkpoints beside fio $(fio --version | sed 's/^fio-//'), $repeats in turn, in $directory ($(stat -f -c %T "$directory"))"
echo "ranks   size MB   gptbench MB/s                 fio MB/s                      ratio of neighbours"
for ranks in $ranks_list; do
  : >"$work/ours"
  : >"$work/theirs"
  turn=0
  while [ $((turn += 1)) -le "$repeats" ]; do
    gptbench_rate "$ranks" >"$work/rate"
    cat "$work/rate" >>"$work/ours"
    fio_rate "$ranks" >>"$work/theirs"
  done
  paste "$work/ours" "$work/theirs" | awk '{ print $1 / $2 }' >"$work/ratios"
  printf '%5s %9.0f   %-29s %-29s %s\n' "$ranks" "$(echo "$bytes" | awk '{ print $1 / 1e6 }')" \
    "$(median_of "$work/ours" 0)" "$(median_of "$work/theirs" 0)" "$(median_of "$work/ratios" 2)"
done
