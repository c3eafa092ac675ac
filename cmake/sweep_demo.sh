#!/bin/sh
# sweep_demo.sh BUILD [DIRECTORY]: the sweeps of input/demo and the short twins of the ZeRO and the
# Megatron table, one after the other, then all table styles and plots from their result files, in DIRECTORY
# (output/sweep_demo). Started again it goes on where it was stopped.
set -eu

build=$1
output=${2:-output/sweep_demo}
post=$build/bin/gptpost
# Two ranks on two cores, one thread each.
OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
export OMP_NUM_THREADS

for deck in input/demo/families.in input/demo/124m.in input/zero/sweep_short.in \
  input/megatron/sweep_short.in; do
  name=$(basename "$(dirname "$deck")")-$(basename "$deck" .in)
  "$build/bin/gptbench" --sweep "$deck" "output.directory=$output/$name" \
    "sweep.launcher='\"$build/launch\" {ranks}'"
done

families="$output/demo-families"
large="$output/demo-124m"
zero="$output/zero-sweep_short"
bert="$output/megatron-sweep_short"
{
  "$post" table --style mpt "$families"/*/result.h5
  "$post" table --style fugaku "$large"/*/result.h5
  "$post" table --style zero "$zero"/*/result.h5
  "$post" table --style megatron "$bert"/*/result.h5
  "$post" table --style scaling "$large"/*/result.h5
} >"$output/tables.md"
cat "$output/tables.md"
for sweep in "$families" "$large" "$zero" "$bert"; do
  "$post" report -o "$sweep/report.html" "$sweep"/*/result.h5
done
"$post" plot -o "$output/plots-families" "$families"/*/result.h5
"$post" plot -o "$output/plots-124m" "$large"/*/result.h5
echo "Tables: $output/tables.md; plots: $output/plots-*; reports: $output/*/report.html"
