#!/bin/bash
# The archive of a bundle of this build, unpacked elsewhere: its programs run on two ranks, and on one without
# MPI's launcher, with nothing of this environment: no library path, no program but those that `launch` itself
# starts (no ssh), and none of the libraries that it should have brought along. All programs that
# test/gpu/check.sh starts are inside.
set -euo pipefail

rm -rf made* elsewhere tools
mkdir tools
for tool in sh dirname chmod; do ln -s "$(command -v "$tool")" tools/; done
tools=$PWD/tools
sh "$GPTBENCH_SOURCE_DIR/cmake/bundle.sh" "$GPTBENCH_BINARY_DIR" "$PWD/made"
if [ ! -x made/bin/mpirun ]; then
  echo "skipped: bundles hold no launcher but that of Open MPI"
  exit 77
fi
rm -rf made
mkdir elsewhere
tar -xJf made.tar.xz -C elsewhere
bundle=$PWD/elsewhere/made
cd elsewhere
fail() {
  echo "FAILED: $*"
  exit 1
}

keys="model.num_layers=1 model.hidden_size=32 model.num_attention_heads=2 model.seq_length=16 model.vocab_size=97
  run.steps=2 run.warmup_steps=1"
# trains RANKS: a run on that many ranks.
trains() {
  # shellcheck disable=SC2086  # a list of keys
  env -i "PATH=$tools" sh "$bundle/launch" "$1" gptbench "$bundle/input/124m_short.in" $keys "output.directory=out$1" >log 2>&1 || {
    cat log
    exit 1
  }
  grep -q "status=OK verdict=VALID .* ranks=$1 " log || fail "no valid run on $1 ranks: $(tail -n 1 log)"
}
trains 2
# Copies may lose the modes.
chmod a-x "$bundle/launch" "$bundle"/bin/*
mkdir apart
mv "$bundle/bin/mpirun" "$bundle/bin/orted" apart/
trains 1
"$GPTPOST" show out2/result.h5 >shown
grep -q 'VALID' shown
env -i "PATH=$tools" sh "$bundle/launch" 1 gptpost show --format json out1/result.h5 >shown
# Lines of text as check.sh expects them.
grep -q '"chosen_algorithms": ".*\\u000a' shown

# What the linker maps comes from the bundle, but for the C library.
for program in "$bundle"/bin/*; do
  env -i LD_LIBRARY_PATH="$bundle/lib" ldd "$program" >mapped
  grep -q "=> $bundle/lib/" mapped
  outside=$(sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' mapped | grep -v "^$bundle/" |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|libutil)\.so' || true)
  [ -z "$outside" ] || fail "$program maps from outside of the bundle: $outside"
  # Our own kernels need no library of CUDA to be loaded.
  if grep -iE 'libcu|nccl|libnv' mapped; then fail "$program needs a library of CUDA to start"; fi
done

# check.sh's programs start here; without a GPU they say so, with status 77 or 0.
bash "$bundle/test/gpu/check.sh" --list >/dev/null
if [ -x "$GPTBENCH_BINARY_DIR/bin/test_gpu" ]; then
  grep -oE '\b(test_gpu|bench_cuda)[a-z_]*' "$bundle/test/gpu/check.sh" | sort -u >started
  [ "$(wc -l <started)" -eq 4 ] || fail "programs of check.sh: $(cat started)"
  while read -r program; do
    status=0
    env -i "PATH=$tools" CUDA_VISIBLE_DEVICES= sh "$bundle/launch" 1 "$program" >log 2>&1 || status=$?
    if [ "$status" -ne 0 ] && [ "$status" -ne 77 ]; then fail "$program ends with $status: $(tail -n 3 log)"; fi
    grep -qiE 'skipped|no GPU' log || fail "$program does not say that there is no GPU: $(tail -n 3 log)"
  done <started
  env -i "PATH=$PATH" CUDA_VISIBLE_DEVICES= OUT="$PWD/seen" bash "$bundle/test/gpu/check.sh" 124m tests >log 2>&1 || true
  grep -q "^FAILED  124m: status 2 .* device = 'cuda': no " seen/summary.txt || fail "check.sh 124m: $(cat log)"
  grep -q '^skipped test_gpu: skipped: no ' seen/summary.txt || fail "check.sh tests: $(cat log)"
  # One copy of the kernels: in their library, which the programs share.
  [ -e "$bundle/lib/libgptbench_cuda_kernels.so" ] || fail "no library of kernels"
  if readelf -SW "$bundle/bin/gptbench" | grep -q nv_fatbin; then fail "gptbench holds kernels of its own"; fi
fi
echo "the bundle runs"
