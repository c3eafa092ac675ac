#!/bin/bash
# formats_test.sh WRITE_MADE_RECORD: JSON and CSV of gptpost as a Python program reads them.
set -u
if [ -z "${GPTPOST:-}" ] || [ ! -x "$GPTPOST" ]; then
  echo "skipped: gptpost was not built"
  exit 77
fi
python=
for candidate in /usr/bin/python3 "$(command -v python3)"; do
  if [ -n "$candidate" ] && "$candidate" -c 'import h5py' 2> /dev/null; then
    python=$candidate
    break
  fi
done
if [ -z "$python" ]; then
  echo "skipped: no python3 imports h5py (Debian: python3-h5py)"
  exit 77
fi
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" "$folder/a" && "$1" "$folder/b" $'\033[2J\302\233\r\t"\\\377' || exit 1
results=("$folder/a/result.h5" "$folder/b/result.h5")
if [ -x "${GPTBENCH:-}" ]; then
  "$GPTBENCH" --project "$here/../../input/124m_short.in" --machine h100 --software gptbench --ranks 16 \
    parallel.offload=optimizer parallel.zero_stage=2 batch.global_batch_size=16 \
    --write-result "$folder/projected" >"$folder/out" 2>&1 || { cat "$folder/out"; exit 1; }
  results+=("$folder/projected/result.h5")
else
  echo "gptbench was not built: without a projected result"
fi
for repeat in 1 2 3 4; do
  "$1" "$folder/repeats/$repeat" || exit 1
done
"$python" "$here/formats_test.py" "$GPTPOST" "$here/../reference" "$folder/repeats" "${results[@]}"
