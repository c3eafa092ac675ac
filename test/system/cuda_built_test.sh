#!/bin/bash
# cuda_built_test.sh GPTBENCH_CUDA NVCC: where there is an nvcc the program holds the CUDA back end, and
# where there is a driver or none it starts and plans without opening it. NVCC is what CMake found, ""
# or NOTFOUND for none; a build that was asked not to have CUDA (GPTBENCH_CUDA=OFF) is skipped with that reason.
set -euo pipefail
asked=$1
found_by_cmake=${2:-} # CMake drops an empty argument
found_by_cmake=${found_by_cmake%%*NOTFOUND}
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# Looked for here as well: a CMake that overlooks it would make a program without CUDA everywhere.
nvcc=
for candidate in "$(command -v nvcc || true)" "${CUDA_HOME:-}/bin/nvcc" "${CUDA_PATH:-}/bin/nvcc" /usr/local/cuda/bin/nvcc; do
  if [ -z "$nvcc" ] && [ -x "$candidate" ]; then nvcc=$candidate; fi
done
libraries=$("$GPTBENCH" --version | sed -n 's/^libraries //p')
case $libraries in
  *"; CUDA "[0-9]*) built=yes ;;
  *"; without CUDA") built=no ;;
  *) fail "--version does not say whether CUDA is there: $libraries" ;;
esac
echo "nvcc here: ${nvcc:-none}; found by CMake: ${found_by_cmake:-none}; asked: $asked; libraries: $libraries"
if [ -n "$nvcc$found_by_cmake" ] && [ "$asked" != OFF ] && [ "${built:-}" = no ]; then
  fail "nvcc is there, and the program has no CUDA back end"
fi
if [ -z "$found_by_cmake" ] && [ "${built:-}" = yes ]; then fail "CMake found no nvcc, and the program claims CUDA"; fi

# Neither the driver nor a library of CUDA may be a need of the program, ...
cuda_names='lib(cuda|cudart|cublas|cublasLt|cudnn|nccl|nvrtc|nvidia-ml)[._]'
if readelf -d "$GPTBENCH" | grep NEEDED | grep -E "$cuda_names"; then fail "the program needs a library of CUDA to start"; fi
if ldd "$GPTBENCH" | grep -E "$cuda_names"; then fail "a library that the program needs brings one of CUDA along"; fi

# ... nor be opened where nothing is computed.
for arguments in --version --keys "--plan $GPTBENCH_SOURCE_DIR/input/124m.in --ranks 8"; do
  rm -f opened.*
  # shellcheck disable=SC2086  # a list of words
  LD_DEBUG=files LD_DEBUG_OUTPUT=opened "$GPTBENCH" $arguments >output || fail "$arguments: status $?"
  [ -s output ] || fail "$arguments: said nothing"
  if grep -hE "$cuda_names" opened.*; then fail "$arguments: opened a library of CUDA"; fi
done

[ "$failures" -eq 0 ] || exit 1
if [ -n "$nvcc" ] && [ "$asked" = OFF ]; then
  echo "skipped: built without CUDA as asked (GPTBENCH_CUDA=OFF) though there is an nvcc"
  exit 77
fi
