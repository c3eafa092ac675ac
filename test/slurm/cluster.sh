# Sourced: a Slurm cluster of four nodes on this host (n0 to n3, partition "main"), out of Debian's
# packages, in a scratch folder and on free ports. Every process of it carries
# SLURM_CONF=<scratch>/slurm.conf in its environment; that is how they are found again and ended, and
# nothing else is.
#
#   cluster_start    starts it and sets cluster_scratch, SLURM_CONF; 77 where Slurm is not installed
#   cluster_stop     ends it; also called when the shell exits, however it does
# shellcheck shell=bash

cluster_scratch=

# Daemons live in sbin, which the PATH of ordinary users lacks.
PATH=$PATH:/usr/sbin:/sbin

cluster_skip_without_slurm() {
  local command
  for command in munged slurmctld slurmd sbatch srun; do
    if ! command -v "$command" >/dev/null; then
      echo "skipped: $command was not found (Debian, Ubuntu: apt-get install slurm-wlm munge)"
      exit 77
    fi
  done
}

# The first of `$1` consecutive ports on which nobody listens, below those that Linux hands out.
cluster_free_ports() {
  local count=$1 base port used
  used=$(awk 'FNR > 1 { sub(/.*:/, "", $2); print $2 }' /proc/net/tcp /proc/net/tcp6 2>/dev/null)
  for _ in $(seq 100); do
    base=$((20000 + RANDOM % 12000))
    for ((port = base; port < base + count; ++port)); do
      if grep -qix "$(printf '%04x' "$port")" <<<"$used"; then continue 2; fi
    done
    echo "$base"
    return
  done
  echo "no $count free ports in a row" >&2
  return 1
}

cluster_write_configuration() {
  local host port user
  host=$(hostname -s)
  user=$(id -un)
  port=$(cluster_free_ports 5) || return 1
  mkdir -p "$cluster_scratch"/{state,munge,tmp.n0,tmp.n1,tmp.n2,tmp.n3}
  cat >"$cluster_scratch/slurm.conf" <<CONF
ClusterName=gptbench
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$cluster_scratch/munge/socket
CredType=cred/munge
StateSaveLocation=$cluster_scratch/state
SlurmctldPidFile=$cluster_scratch/slurmctld.pid
SlurmctldLogFile=$cluster_scratch/slurmctld.log
SlurmdSpoolDir=$cluster_scratch/spool.%n
SlurmdPidFile=$cluster_scratch/slurmd.%n.pid
SlurmdLogFile=$cluster_scratch/slurmd.%n.log
TmpFS=$cluster_scratch/tmp.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=pmix
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
EnforcePartLimits=ALL
KillWait=10
PropagateResourceLimitsExcept=MEMLOCK
CONF
  # From 23.02 on slurmd looks for control groups of version 2, and then wants a hierarchy of its own,
  # which a container may lack. 24.05 can be told to do without, earlier ones to take version 1, of
  # which nothing is used here.
  local version
  version=$(slurmd -V | sed 's/^[^ ]* \([0-9]*\)\.\([0-9]*\).*$/\1\2/')
  if [ "$version" -ge 2405 ]; then
    echo "CgroupPlugin=disabled" >"$cluster_scratch/cgroup.conf"
  elif [ "$version" -ge 2302 ]; then
    echo "CgroupPlugin=cgroup/v1" >"$cluster_scratch/cgroup.conf"
  fi
  local node
  for node in 0 1 2 3; do
    echo "NodeName=n$node NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1 + node)) CPUs=4 RealMemory=1000"
  done >>"$cluster_scratch/slurm.conf"
  echo "PartitionName=main Nodes=n[0-3] Default=YES MaxTime=60 OverSubscribe=NO State=UP" >>"$cluster_scratch/slurm.conf"
}

# Processes of this cluster, daemons, steps and tasks, but not the shell that asks. Only those of
# this user can be read, and only those are ours.
cluster_processes() {
  local scratch=$1 keep=$2 environment pid
  for environment in /proc/[0-9]*/environ; do
    pid=${environment#/proc/}
    pid=${pid%/environ}
    if [ "$pid" = "$keep" ] || [ "$pid" = "$BASHPID" ]; then continue; fi
    if grep -qzFx "SLURM_CONF=$scratch/slurm.conf" "$environment" 2>/dev/null; then echo "$pid"; fi
  done
}

# cluster_end SCRATCH KEEP: jobs first, so that their steps report and end, then what is left.
cluster_end() {
  local scratch=$1 keep=$2 pids signal
  if [ -z "$scratch" ] || [ ! -d "$scratch" ]; then return; fi
  SLURM_CONF=$scratch/slurm.conf timeout 10 scancel --user="$(id -un)" >/dev/null 2>&1
  for signal in TERM TERM KILL; do
    pids=$(cluster_processes "$scratch" "$keep")
    if [ -z "$pids" ]; then break; fi
    # shellcheck disable=SC2086  # a list of numbers
    kill "-$signal" $pids 2>/dev/null
    for _ in $(seq 30); do
      if [ -z "$(cluster_processes "$scratch" "$keep")" ]; then break; fi
      sleep 0.1
    done
  done
  rm -rf "$scratch"
}

cluster_stop() {
  cluster_end "$cluster_scratch" $$
  cluster_scratch=
}

# CTest ends a test that takes too long with a signal that no shell can catch: a process outside of
# its tree waits for the shell's end and tidies up behind it.
cluster_watch() {
  local here
  here=${BASH_SOURCE[0]}
  # shellcheck disable=SC2016  # expanded by the inner shell
  env -u SLURM_CONF setsid -f bash -c 'while kill -0 "$2" 2>/dev/null; do sleep 1; done
    source "$1"; cluster_end "$3" 0' watch "$here" $$ "$cluster_scratch" >/dev/null 2>&1 </dev/null
}

cluster_start() {
  cluster_skip_without_slurm
  # Sockets have paths of at most 107 characters: a build folder's can be longer.
  cluster_scratch=$(mktemp -d "${TMPDIR:-/tmp}/gptbench-slurm.XXXXXX") || return 1
  chmod 755 "$cluster_scratch"
  trap cluster_stop EXIT
  trap 'exit 130' INT TERM HUP
  cluster_watch
  cluster_write_configuration || return 1
  export SLURM_CONF=$cluster_scratch/slurm.conf
  (umask 077 && head -c 1024 /dev/urandom >"$cluster_scratch/munge/key")
  munged --force --foreground --key-file="$cluster_scratch/munge/key" --socket="$cluster_scratch/munge/socket" \
    --pid-file="$cluster_scratch/munge/pid" --seed-file="$cluster_scratch/munge/seed" \
    >"$cluster_scratch/munge/log" 2>&1 </dev/null &
  local node
  for _ in $(seq 100); do
    if [ -S "$cluster_scratch/munge/socket" ]; then break; fi
    sleep 0.1
  done
  slurmctld -D -f "$SLURM_CONF" >"$cluster_scratch/slurmctld.out" 2>&1 </dev/null &
  for node in n0 n1 n2 n3; do
    slurmd -D -N "$node" -f "$SLURM_CONF" >"$cluster_scratch/slurmd.$node.out" 2>&1 </dev/null &
  done
  for _ in $(seq 300); do
    if [ "$(timeout 5 sinfo -h -o '%D %t' 2>/dev/null)" = "4 idle" ]; then return; fi
    sleep 0.1
  done
  echo "FAILED: the cluster is not up after 30 s" >&2
  tail -n 5 "$cluster_scratch"/munge/log "$cluster_scratch"/*.{log,out} >&2
  return 1
}
