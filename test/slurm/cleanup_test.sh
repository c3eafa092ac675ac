#!/bin/bash
# The cluster of the tests leaves nothing behind, not even when the shell that started it is killed with
# a job running.
set -u
here=$GPTBENCH_SOURCE_DIR/test/slurm
# shellcheck source=/dev/null
source "$here/cluster.sh"
cluster_skip_without_slurm

rm -f scratch
# shellcheck disable=SC2016  # expanded by the inner shell
bash -c 'source "$0/cluster.sh"; cluster_start || exit 1
  sbatch --output=/dev/null --wrap "srun sleep 600" >/dev/null
  for _ in $(seq 600); do
    if [ "$(squeue -h -t running | wc -l)" -eq 1 ]; then break; fi
    sleep 0.1
  done
  echo "$cluster_scratch" >scratch.part && mv scratch.part scratch
  sleep 600' "$here" &
shell=$!
for _ in $(seq 1200); do
  if [ -s scratch ]; then break; fi
  sleep 0.1
done
if [ ! -s scratch ]; then
  echo "FAILED: the cluster is not up after two minutes"
  kill "$shell"
  exit 1
fi
scratch=$(cat scratch)
# munged, slurmctld and four slurmd at least, a step and its task, which begin after the job.
for _ in $(seq 600); do
  running=$(cluster_processes "$scratch" 0 | wc -l)
  if [ "$running" -ge 8 ]; then break; fi
  sleep 0.1
done
kill -KILL "$shell"
wait "$shell" 2>/dev/null
if [ "$running" -lt 8 ]; then
  echo "FAILED: only $running processes are seen"
  exit 1
fi
for _ in $(seq 600); do
  if [ ! -e "$scratch" ] && [ -z "$(cluster_processes "$scratch" 0)" ]; then
    echo "$running processes and $scratch are gone"
    exit 0
  fi
  sleep 0.1
done
echo "FAILED: after a minute $(cluster_processes "$scratch" 0 | wc -l) of $running processes are left"
exit 1
