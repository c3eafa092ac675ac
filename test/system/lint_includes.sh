#!/bin/sh
# lint_includes.sh TREE: which headers may be included where.
set -eu
cd "$1"
status=0

# forbid REASON PATTERN FIND-ARGUMENTS: no file found may hold an #include line with PATTERN.
forbid() {
  reason=$1
  pattern=$2
  shift 2
  hits=$(find "$@" '(' -name '*.h' -o -name '*.cpp' -o -name '*.in' -o -name '*.cu' -o -name '*.cuh' ')' -type f \
    -exec grep -HnE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[\"<]($pattern)" {} + || true)
  if [ -n "$hits" ]; then
    printf '%s:\n%s\n' "$reason" "$hits"
    status=1
  fi
}

folders=
for folder in src test cuda; do
  if [ -d "$folder" ]; then folders="$folders $folder"; fi
done
# shellcheck disable=SC2086  # a list of folders
forbid "an include path goes upwards; write \"layer/header.h\"" '[^">]*\.\.[/\\]' $folders
forbid "of cuda/, the program includes backend.h alone" 'cuda/([^b]|b[^a])' src
forbid "CUDA, cuBLAS, cuDNN and NCCL headers belong to cuda/" \
  'cuda[^/]|cublas|cudnn|nccl|nvml|nvtx|nvToolsExt|cupti|cute/|cutlass|mma\.h' src
forbid "HDF5 headers belong to src/io" 'hdf5|H5' src -path src/io -prune -o
forbid "Kokkos and oneDNN headers belong to src/device" 'Kokkos|oneapi/|dnnl' src -path src/device -prune -o
forbid "mpi.h belongs to src/comm" 'mpi\.h|mpi-ext' src -path src/comm -prune -o
forbid "nlohmann's JSON belongs to src/weights" 'nlohmann/' src -path src/weights -prune -o
exit "$status"
