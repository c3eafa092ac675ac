#!/bin/sh
# run.sh BUILD DECK [RANKS]: runs a deck on as many ranks as physical cores and memory allow (or on
# RANKS) and writes its report. Both land in output/<name of the deck>.
set -eu

build=$1
deck=$2
ranks=${3:-}
name=$(basename "$deck" .in)

# Physical cores among those that this process may use, within the CPU quota of its cgroup.
cores() {
  count=$(nproc)
  physical=$(lscpu -p=CPU,CORE,SOCKET 2>/dev/null | grep -v '^#' | cut -d, -f2,3 | sort -u | wc -l)
  if [ "$physical" -gt 0 ] && [ "$physical" -lt "$count" ]; then count=$physical; fi
  if read -r quota period 2>/dev/null </sys/fs/cgroup/cpu.max && [ "$quota" != max ]; then
    whole=$(((quota + period / 2) / period))
    if [ "$whole" -lt 1 ]; then whole=1; fi
    if [ "$whole" -lt "$count" ]; then count=$whole; fi
  fi
  echo "$count"
}

# Bytes of memory that Linux and the cgroup offer.
available() {
  bytes=$(($(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo) * 1024))
  if read -r limit 2>/dev/null </sys/fs/cgroup/memory.max && [ "$limit" != max ]; then
    read -r used </sys/fs/cgroup/memory.current
    cache=$(awk '/^(in)?active_file / { sum += $2 } END { printf "%.0f", sum }' /sys/fs/cgroup/memory.stat)
    if [ $((limit - used + cache)) -lt "$bytes" ]; then bytes=$((limit - used + cache)); fi
  fi
  echo "$bytes"
}

# Bytes a rank needs when the deck runs on $1 ranks; nothing where it cannot.
need() {
  "$build/bin/gptbench" --plan "$deck" --ranks "$1" 2>/dev/null |
    sed -n 's/^.*memory per rank: *\([0-9][0-9]*\) bytes.*$/\1/p' | head -n 1
}

# What the MPI library takes on each rank, as src/memory/budget.h counts it.
runtime=$((160 * 1024 * 1024))
count=$(cores)
if [ -z "$ranks" ]; then
  offer=$(available)
  ranks=$count
  while [ "$ranks" -gt 1 ]; do
    bytes=$(need "$ranks")
    if [ -n "$bytes" ] && [ $((ranks * (bytes + runtime))) -le "$offer" ]; then break; fi
    ranks=$((ranks - 1))
  done
fi
if [ -z "${OMP_NUM_THREADS:-}" ]; then
  OMP_NUM_THREADS=$((count / ranks > 0 ? count / ranks : 1))
  export OMP_NUM_THREADS
fi

echo "gptbench $deck: $ranks ranks, $OMP_NUM_THREADS threads per rank"
# Ctrl-C would reach the launcher, and Open MPI's kills the ranks a second later, amid a step. In a session of its
# own the launcher gets it as SIGUSR1, which launchers forward: the ranks end after the step in hand, with a result.
result_file() { ls -i "output/$name/result.h5" 2>/dev/null || true; }
earlier=$(result_file)
setsid "$build/launch" "$ranks" "$build/bin/gptbench" "$deck" "output.directory=output/$name" &
launcher=$!
trap 'kill -USR1 "$launcher"' INT TERM HUP
running=yes
while [ -n "$running" ]; do
  status=0
  wait "$launcher" || status=$? # a signal ends it, too
  kill -0 "$launcher" 2>/dev/null || running=
done
# A run that wrote none leaves the result of an earlier one.
if [ "$(result_file)" != "$earlier" ]; then
  echo
  "$build/bin/gptpost" report -o "output/$name/report.html" "output/$name/result.h5"
fi
exit "$status"
