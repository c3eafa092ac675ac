#!/bin/sh
# lint_includes.sh must find each kind of forbidden include, and nothing in a clean tree.
set -eu
lint=$GPTBENCH_SOURCE_DIR/test/system/lint_includes.sh
failures=0

# try EXPECTED FILE LINE: a tree whose only suspicious line is LINE in FILE.
try() {
  rm -rf tree
  mkdir -p tree/src/base tree/src/io tree/src/device tree/src/comm tree/test tree/cuda
  mkdir -p "tree/$(dirname "$2")"
  printf '// mpi.h, hdf5.h and "../x.h" in a comment\n%s\n' "$3" >"tree/$2"
  found=clean
  sh "$lint" tree >output 2>&1 || found=refused
  if [ "$found" != "$1" ]; then
    echo "FAILED: $2 with $3: $found, expected $1"
    cat output
    failures=$((failures + 1))
  elif [ "$found" = refused ] && ! grep -qF "$2:2:" output; then
    echo "FAILED: $2 with $3: the report names no file and line"
    cat output
    failures=$((failures + 1))
  fi
}

try clean src/base/a.h '#include "base/error.h"'
try refused src/base/a.h '#include "../deck/config.h"'
try refused test/base/a.cpp '#include "x/../y.h"'
try refused src/engine/a.cpp '#include <mpi.h>'
try refused src/engine/a.h '  #  include "mpi.h"'
try clean src/comm/a.cpp '#include <mpi.h>'
try refused src/main.cpp '#include <mpi.h>'
try clean test/comm/a.cpp '#include <mpi.h>'
try refused src/post/a.cpp '#include <hdf5.h>'
try clean src/io/a.cpp '#include <hdf5.h>'
try refused src/post/a.cpp '#include <nlohmann/json.hpp>'
try clean src/weights/a.cpp '#include <nlohmann/json.hpp>'
try refused src/engine/a.cpp '#include <Kokkos_Core.hpp>'
try refused src/memory/a.cpp '#include <oneapi/dnnl/dnnl.hpp>'
try clean src/device/a.cpp '#include <Kokkos_Core.hpp>'
try refused src/device/a.cpp '#include <cuda_runtime.h>'
try refused src/comm/a.cpp '#include <nccl.h>'
try refused src/engine/a.cpp '#include "cuda/cuda_queue.h"'
try refused src/engine/a.cpp '#include <cuda/std/array>'
try clean src/setup.cpp '#include "cuda/backend.h"'
try clean cuda/a.cu '#include <cuda_runtime.h>'
exit $((failures > 0))
