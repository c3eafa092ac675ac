#!/bin/bash
# A bundle of this build runs on two ranks from another folder, without anything of this environment:
# no PATH, no library path, and none of the libraries that it should have brought along.
set -euo pipefail

sh "$GPTBENCH_SOURCE_DIR/cmake/bundle.sh" "$GPTBENCH_BINARY_DIR" "$PWD/made"
if [ ! -x made/bin/mpirun ]; then
  echo "skipped: bundles hold no launcher but that of Open MPI"
  exit 77
fi
rm -rf moved elsewhere
mv made moved
mkdir elsewhere
bundle=$PWD/moved
cd elsewhere

keys="model.num_layers=1 model.hidden_size=32 model.num_attention_heads=2 model.seq_length=16 model.vocab_size=97
  run.steps=2 run.warmup_steps=1 output.directory=out"
# shellcheck disable=SC2086  # a list of keys
env -i "$bundle/launch" 2 gptbench "$bundle/input/124m_short.in" $keys >log 2>&1 || {
  cat log
  exit 1
}
grep -q 'status=OK verdict=VALID .* ranks=2' log
"$GPTPOST" show out/result.h5 >shown
grep -q 'VALID' shown

# What the linker maps comes from the bundle, but for the C library.
env -i LD_LIBRARY_PATH="$bundle/lib" ldd "$bundle/bin/gptbench" >mapped
grep -q "=> $bundle/lib/" mapped
outside=$(sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' mapped | grep -v "^$bundle/" |
  grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|libutil)\.so' || true)
if [ -n "$outside" ]; then
  echo "FAILED: from outside of the bundle: $outside"
  exit 1
fi
env -i ldd "$bundle/bin/gptbench" >mapped
if grep -iE 'cuda|cublas|nccl|cudnn' mapped; then
  echo "FAILED: the program needs a library of CUDA to start"
  exit 1
fi
echo "the bundle runs"
