#!/bin/bash
# h5dump_test.sh WRITE_MADE_RECORD: h5dump reads a result file whole.
set -eu
if ! command -v h5dump > /dev/null; then
  echo "skipped: h5dump is not installed (Debian: hdf5-tools)"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" "$folder"
h5dump "$folder/result.h5" > "$folder/all.txt"
h5dump -a /summary/num_params "$folder/result.h5" | grep -q 124475904
h5dump -d /steps/loss "$folder/result.h5" | grep -q 10.98
# The commands of doc/result_schema.md, "Checksum".
cd "$folder"
if [ "$(head -n 2 result.h5 | tail -n 1)" != "$(tail -c +513 result.h5 | cksum)" ]; then
  echo "cksum does not print the checksum that stands in the file"
  exit 1
fi
tail -c +513 result.h5 > edited.h5
h5dump edited.h5 | tail -n +2 | cmp - <(tail -n +2 all.txt)
for name in units description; do
  datasets=$(grep -c '^ *DATASET ' "$folder/all.txt")
  labelled=$(grep -c "ATTRIBUTE \"$name\"" "$folder/all.txt")
  if [ "$datasets" != "$labelled" ]; then
    echo "$datasets datasets, $labelled with the attribute $name"
    exit 1
  fi
done
