#!/bin/bash
# pjsub, pjstat and pjdel, by the name that it is called under: as much of Fujitsu's Technical Computing
# Suite as the job scripts use. Jobs run at once on this host; the steps of a step job one after the
# other; a job inherits no environment but what -x names. PJM_STAND_IN is a directory for its files:
# <job>/{state,number,pid}. Options that the user guide of Fugaku does not list are refused.
set -u
shopt -s nullglob
spool=${PJM_STAND_IN:?}
mkdir -p "$spool"
finished() { [[ $(cat "$spool/$1/state") != @(QUE|RUN) ]]; }
# set_state JOB STATE: renamed into place, so that nobody reads an empty file.
set_state() { echo "$2" >"$spool/$1/state.$BASHPID" && mv "$spool/$1/state.$BASHPID" "$spool/$1/state"; }

refuse() {
  echo "[ERR.] PJM 0003 pjsub $*" >&2
  exit 1
}

# parse WORD ...: options into variables; what is left is the script.
parse() {
  while [ $# -gt 0 ]; do
    case $1 in
      -j | -s | -S) shift && continue ;;
      --bulk) bulk=yes && shift && continue ;;
      --step) step=yes && shift && continue ;;
      -L?*) set -- -L "${1#-L}" "${@:2}" ;;
      -*) ;;
      *) script=$1 && shift && continue ;;
    esac
    if [ $# -lt 2 ]; then refuse "option $1: no value"; fi
    local part value=$2
    case $1 in
      -L | --rsc-list) IFS=, read -r -a parts <<<"$value" && for part in "${parts[@]}"; do resources[${part%%=*}]=${part#*=}; done ;;
      --mpi) mpi=$value ;;
      --sparam) sparam=$value ;;
      -N | --name) name=$value ;;
      -o) out=$value ;;
      -z) only=$value ;;
      -x)
        IFS=, read -r -a parts <<<"$value"
        for part in "${parts[@]}"; do
          case $part in
            *=*) passed+=("$part") ;;
            *) if [ -n "${!part+set}" ]; then passed+=("$part=${!part}"); fi ;;
          esac
        done
        ;;
      *) refuse "option $1: unknown" ;;
    esac
    shift 2
  done
}

# start JOB AFTER NAME=VALUE ...: in the background, once the job AFTER has ended.
start() {
  local job=$1 after=$2
  shift 2
  mkdir -p "$spool/$job"
  set_state "$job" QUE
  cp "$script" "$spool/$job/script"
  # A process group of its own, which pjdel can end.
  set -m
  (
    while [ -n "$after" ] && ! finished "$after"; do sleep 0.1; done
    finished "$job" && exit
    set_state "$job" RUN
    env -i PATH="$PATH" HOME="$HOME" PJM_JOBNAME="$name" PJM_O_WORKDIR="$PWD" PJM_NODE="${resources[node]%%:*}" \
      STAND_IN_MPI="$mpi" STAND_IN_FREQ="${resources[freq]:-}" "$@" "${passed[@]}" \
      bash "$spool/$job/script" >"${out:-$name.$job.out}" 2>&1
    set_state "$job" "EXT $?"
  ) </dev/null >/dev/null 2>&1 &
  echo $! >"$spool/$job/pid"
  set +m
}

submit() {
  declare -A resources=([node]=1)
  passed=() parts=()
  bulk='' step='' sparam='' mpi='' out='' only='' script='' name=''
  # Options given to pjsub win over those of the script, which come first.
  parse "$@"
  if [ ! -f "$script" ]; then refuse "script file '$script': not found"; fi
  mapfile -t words < <(sed -n 's/^#PJM //p' "$script" | xargs printf '%s\n')
  parse "${words[@]}" "$@"
  name=${name:-$(basename "$script")}
  if [ "${resources[rscgrp]:-}" = nowhere ]; then refuse "rscgrp=nowhere: no such resource group"; fi
  local id number after=''
  if [[ $sparam == *jid=* ]]; then
    [ -n "$step" ] || refuse "--sparam jid without --step"
    id=$(tr ',' '\n' <<<"$sparam" | sed -n 's/^ *jid=//p')
    number=$(find "$spool" -maxdepth 1 -name "${id}_*" | wc -l)
    after=${id}_$((number - 1))
    if [ "$number" = 0 ] || finished "$after"; then refuse "step job $id has ended"; fi
  else
    id=$(($(cat "$spool/.last" 2>/dev/null || echo 0) + 1))
    echo $id >"$spool/.last"
    number=0
  fi
  if [ -n "$bulk" ]; then
    if [[ ! $sparam =~ ^([0-9]+)-([0-9]+)$ ]] || [ -n "$step" ]; then refuse "--bulk --sparam '$sparam'"; fi
    for ((number = BASH_REMATCH[1]; number <= BASH_REMATCH[2]; ++number)); do
      local sub_job="${id}[$number]"
      out=$name.$sub_job.out start "$sub_job" '' PJM_JOBID="$id" PJM_SUBJOBID="$sub_job" PJM_BULKNUM="$number"
    done
  elif [ -n "$step" ]; then
    start "${id}_$number" "$after" PJM_JOBID="$id" PJM_SUBJOBID="${id}_$number" PJM_STEPNUM="$number"
    id=${id}_$number
  else
    start "$id" '' PJM_JOBID="$id"
  fi
  if [ "$only" = jid ]; then echo "$id"; else echo "[INFO.] PJM 0000 pjsub Job $id submitted."; fi
}

case $(basename "$0") in
  pjsub) submit "$@" ;;
  # Jobs that have not ended; with the states of a job's parts where it is named.
  pjstat)
    echo "JOB_ID  ST"
    for job in "$spool"/*; do
      job=${job##*/}
      if [ $# -gt 0 ] || ! finished "$job"; then
        case $job in "${1:-$job}" | "${1:-}"[_[]*) echo "$job  $(cat "$spool/$job/state")" ;; esac
      fi
    done
    ;;
  pjdel)
    # The last step first: a step starts as soon as the one before it has ended.
    jobs=("$spool/$1" "$spool/$1"[_[]*)
    for ((at = ${#jobs[@]} - 1; at >= 0; --at)); do
      job=${jobs[at]##*/}
      if [ -d "$spool/$job" ] && ! finished "$job"; then set_state "$job" CCL && kill -- "-$(cat "$spool/$job/pid")"; fi
    done
    ;;
esac
