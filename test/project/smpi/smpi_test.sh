#!/bin/bash
# Collectives of steps of 64 ranks by SimGrid's SMPI and by project/links.h, on one platform, switches
# or a torus: their sums agree within 10 %. Needs smpicc and smpirun (Debian: libsimgrid-dev).
#   smpi_test.sh MESSAGES [all]      the program of messages.cpp
# SimGrid takes minutes for all of it: unless "all" is given, 1 of the 12 layers is compared, a sixth of the vocabulary,
# and ZeRO 3 on 16 ranks.
set -u
here=$GPTBENCH_SOURCE_DIR/test/project/smpi
command -v smpicc smpirun >/dev/null || {
  echo "skipped: no smpicc and smpirun (Debian: libsimgrid-dev)"
  exit 77
}
ranks=64 ranks_of_zero3=16 layers=1 words=8192 gb_per_s=6.8 us=1.5
if [ "${2:-}" = all ]; then ranks_of_zero3=64 layers=12 words=50257; fi
platform() {  # platform LATENCY [ATTRIBUTES]
  cat <<END_OF_PLATFORM
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="cluster" prefix="node-" suffix="" radical="0-$((ranks - 1))" speed="1000Gf" bw="${gb_per_s}GBps" lat="$1" sharing_policy="SPLITDUPLEX" ${2:-}/>
</platform>
END_OF_PLATFORM
}
# By a switch a message passes two links, its sender's and its receiver's.
platform 0.75us >switch.xml
platform "${us}us" 'topology="TORUS" topo_parameters="4,4,4"' >torus.xml
seq -f 'node-%g' 0 $((ranks - 1)) >hosts
smpicc -O1 "$here/replay.c" -o replay || exit 1
messages=$1 failures=0
model=(model.preset=gpt2-124m "model.num_layers=$layers" "model.vocab_size=$words" batch.global_batch_size=128)
# compare NAME RANKS [DIMENSIONS PLATFORM ALGORITHMS] SETTINGS...
on_switch=(0 switch.xml --cfg=smpi/coll-selector:ompi)
on_torus=(3 torus.xml --cfg=smpi/allreduce:lr)
compare() {
  local name=$1 ranks=$2
  "$messages" "$ranks" "$gb_per_s" "$us" "$3" "${model[@]}" "${@:6}" >"$name.txt" || exit 1
  smpirun -np "$ranks" -hostfile hosts -platform "$4" "$5" --cfg=smpi/simulate-computation:no \
    --cfg=network/model:CM02 --cfg=network/crosstraffic:0 --cfg=network/bandwidth-factor:1 --cfg=network/latency-factor:1 \
    --log=root.thres:error ./replay "$name.txt" >"$name.out" 2>&1
  echo "$name: $(wc -l <"$name.txt") collectives, $(tail -1 "$name.out")"
  tail -1 "$name.out" | awk -F 'ratio=' '{ exit !($2 > 0.9 && $2 < 1.1) }' || failures=$((failures + 1))
}
compare data "$ranks" "${on_switch[@]}"
compare zero3 "$ranks_of_zero3" "${on_switch[@]}" parallel.zero_stage=3
compare tensor "$ranks" "${on_switch[@]}" parallel.tensor_parallel=4
# Ranks of a data group are one, and two, nodes apart.
compare data_torus "$ranks" "${on_torus[@]}"
compare tensor_torus "$ranks" "${on_torus[@]}" parallel.tensor_parallel=2
[ "$failures" -eq 0 ]
