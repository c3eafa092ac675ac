#!/bin/sh
# run.sh BUILD SECONDS: libFuzzer on every target for so long, two at a time (FUZZ_JOBS). FUZZ_TARGETS
# names some: FUZZ_TARGETS='deck sweep'. What it finds is kept in BUILD/fuzz: new inputs in TARGET/corpus,
# inputs that fail in TARGET.
#
# run.sh --merge BUILD: makes corpus.tar.xz of the inputs of BUILD/fuzz and of the archive, without those
# that reach nothing that others do not reach as often. Not of `result`: HDF5 is not instrumented.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
merge=
[ "$1" != --merge ] || { merge=1 && shift; }
build=$(cd "$1" && pwd)
fuzzer=$build/test/fuzz/parser_fuzzer
corpus=$build/test/fuzz/corpus  # of the archive
mkdir -p "$build/fuzz"
cd "$build/fuzz"
all=$("$fuzzer")
targets=${FUZZ_TARGETS:-$all}
for target in $targets; do
  echo "$all" | grep -qx "$target" || {
    echo "no target '$target'; there are: $(echo "$all" | tr '\n' ' ')" >&2
    exit 2
  }
done

if [ "$merge" ]; then
  scratch=$(mktemp -d /dev/shm/gptbench_fuzz.XXXXXX 2>/dev/null || mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  mkdir "$scratch/work"
  cd "$scratch/work"
  for target in $all; do
    [ "$target" != result ] || continue
    # A copy: a run that goes on replaces inputs by shorter ones.
    rm -rf "$scratch/from"
    mkdir "$scratch/from"
    for folder in "$corpus/$target" "$build/fuzz/$target/corpus"; do
      [ ! -d "$folder" ] || cp "$folder"/* "$scratch/from" 2>/dev/null || :
    done
    GPTBENCH_FUZZ=$target "$fuzzer" -merge=1 -max_len=8192 -verbosity=0 \
      "$scratch/corpus/$target" "$scratch/from" 2>"$scratch/log" || {
      tail -n 40 "$scratch/log" >&2
      exit 1
    }
    rm -f "$scratch/corpus/$target"/seed_*  # the program has them
    # libFuzzer's names, hashes of the content, do not compress.
    number=0
    for input in "$scratch/corpus/$target"/*; do
      number=$((number + 1))
      mv "$input" "$scratch/corpus/$target/n$number"
    done
    echo "$target: $number inputs"
  done
  tar -C "$scratch" --sort=name --mode=go-w --owner=0 --group=0 --numeric-owner --mtime=@0 -cf - corpus |
    xz -9e >"$here/corpus.tar.xz"
  ls -l "$here/corpus.tar.xz"
  exit
fi

# One target; the file failed.TARGET says that it failed.
cat >one.sh <<'END_OF_SCRIPT'
target=$4
rm -f "failed.$target"
mkdir -p "$target"
(cd "$target" && FUZZ_SEED=0 FUZZ_VERBOSITY=1 sh "$1" "$2" "$target" "$5" "$3/$target" .) >"$target.out" 2>"$target.log" ||
  : >"failed.$target"
cat "$target.out"
END_OF_SCRIPT
echo "$targets" | tr ' ' '\n' | grep . |
  xargs -I '{}' -P "${FUZZ_JOBS:-2}" sh one.sh "$here/one.sh" "$fuzzer" "$corpus" '{}' "$2"
failed=
for target in $targets; do
  [ ! -e "failed.$target" ] || failed="$failed $target"
done
[ -z "$failed" ] || { echo "FAILED:$failed; inputs in $1/fuzz/TARGET" && exit 1; }
