#!/bin/bash
# h5py_test.sh WRITE_MADE_RECORD: a Python that has h5py reads a result file, and the Python examples
# of doc/result_schema.md run as they stand there.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=
for candidate in /usr/bin/python3 "$(command -v python3 || true)"; do
  if [ -n "$candidate" ] && "$candidate" -c 'import h5py' 2> /dev/null; then
    python=$candidate
    break
  fi
done
if [ -z "$python" ]; then
  echo "skipped: no python3 imports h5py (Debian: python3-h5py)"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" "$folder"
cd "$folder"
"$python" "$here/h5py_test.py" result.h5 "$here/../../doc/result_schema.md"
"$python" "$here/doc_examples.py" "$here/../../doc/result_schema.md"
