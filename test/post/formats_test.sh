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
"$python" "$here/formats_test.py" "$GPTPOST" "$here/../reference" "$folder/a/result.h5" "$folder/b/result.h5"
