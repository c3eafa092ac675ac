#!/bin/bash
# A scaling study: one job per point, and a last one that makes table, plot and report of them. Under Slurm; or
# under PJM, with --site jobscripts/sites/fugaku.pjm, as a step job: one point after the other.
#
#   jobscripts/scaling_study.sh [options] DECK [group.key=value ...]
#
#   --nodes "1 2 4 8"       node counts (default "1 2 4")
#   --ranks-per-node R      default: site_ranks_per_node of the site, else 1
#   --mode strong|weak|both strong (default): one global batch for all points;
#                           weak: the batch grows with the ranks
#   --batch N               sequences in the global batch; weak: at the fewest nodes. Default: the
#                           deck's; where that is 0, micro_batch_size per rank (weak only)
#   --site FILE             environment file of the machine, or its job script of PJM (jobscripts/sites/)
#   --output DIR            default output/<name of the deck>-scaling
#   --sbatch OPTION         further option of sbatch, e.g. --sbatch=--account=x; may be repeated
#   --pjsub OPTION          the same for PJM, e.g. --pjsub=-Lrscgrp=large
#   --chain                 one point after the other, so that they do not share the network
#   --no-check              submit without planning each point here first (cross-compiled programs)
#   --dry-run               print what would be submitted
#
# Nothing is submitted unless every point fits the deck. Exit status: 0 submitted, 2 refused.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
nodes="1 2 4"
ranks_per_node=
mode=strong
batch=
site=
output=
submit_options=()
chain=
check=yes
dry_run=

refuse() {
  echo "scaling_study: $*" >&2
  exit 2
}

while [ $# -gt 0 ]; do
  option=$1
  case $option in
    --*=*)
      set -- "${option%%=*}" "${option#*=}" "${@:2}"
      option=$1
      ;;
  esac
  case $option in
    --nodes | --ranks-per-node | --mode | --batch | --site | --output | --sbatch | --pjsub)
      if [ $# -lt 2 ]; then refuse "$option wants a value"; fi
      value=$2
      shift 2
      ;;
    *) value= ;;
  esac
  case $option in
    --nodes) nodes=$value ;;
    --ranks-per-node) ranks_per_node=$value ;;
    --mode) mode=$value ;;
    --batch) batch=$value ;;
    --site) site=$value ;;
    --output) output=$value ;;
    --sbatch | --pjsub) submit_options+=("$value") ;;
    --chain) chain=yes && shift ;;
    --no-check) check= && shift ;;
    --dry-run) dry_run=yes && shift ;;
    -h | --help)
      sed -n '2,/^set -euo/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    -*) refuse "unknown option $option; --help lists them" ;;
    *) break ;;
  esac
done
if [ $# -lt 1 ]; then refuse "no deck given; --help says how"; fi
deck=$1
shift
if [ ! -f "$deck" ]; then refuse "no deck $deck"; fi
case $mode in
  strong | weak) series_list=$mode ;;
  both) series_list="strong weak" ;;
  *) refuse "--mode $mode: strong, weak and both are allowed" ;;
esac
number() {
  case $2 in
    '' | *[!0-9]* | 0*) refuse "$1 '$2': a number of at least 1 is wanted" ;;
  esac
}
for count in $nodes; do number --nodes "$count"; done
nodes=$(tr ' ' '\n' <<<"$nodes" | { grep . || true; } | sort -nu | tr '\n' ' ')
if [ -z "$nodes" ]; then refuse "--nodes is empty"; fi

site_sbatch=()
site_post_sbatch=()
site_ranks_per_node=1
pjm=
if [ -n "$site" ] && [ ! -f "$site" ]; then refuse "--site $site: no such file"; fi
case $site in
  '') ;;
  *.pjm) pjm=$site ;;
  *)
    # shellcheck source=/dev/null
    source "$site"
    export GPTBENCH_SITE=$site
    ;;
esac
ranks_per_node=${ranks_per_node:-$site_ranks_per_node}
number --ranks-per-node "$ranks_per_node"
folder=
if [ -x ./gptbench ]; then folder=./; fi
# Where no other program is found: that of the prefix which holds this script. The jobs use it too.
installed=$(cd "$here/../../.." && pwd)/bin
if [ -z "${GPTBENCH:-}$folder" ] && ! command -v gptbench >/dev/null && [ -x "$installed/gptbench" ]; then
  export GPTBENCH=$installed/gptbench GPTPOST=${GPTPOST:-$installed/gptpost}
fi
program=${GPTBENCH:-${folder}gptbench}
if [ -n "$check" ] && ! command -v "$program" >/dev/null; then
  refuse "no program $program in $PWD or PATH; build it, or name it in GPTBENCH"
fi
output=${output:-output/$(basename "$deck" .in)-scaling}
fewest=${nodes%% *}

overrides=()
for override in "$@"; do
  case $override in
    batch.global_batch_size=*) batch=${batch:-${override#*=}} ;;
    output.directory=*) refuse "output.directory is set for each point; use --output" ;;
    *) overrides+=("$override") ;;
  esac
done
# The deck's own batch where none is given; the program reads its deck better than sed would.
if [ -z "$batch" ] && [ -n "$check" ]; then
  batch=$("$program" --check "$deck" "${overrides[@]}" | sed -n 's/^ *global_batch_size = \([0-9]*\).*/\1/p') || exit 2
fi
batch=${batch:-0}
if [ "$batch" != 0 ]; then number --batch "$batch"; fi

# overrides_of SERIES NODES: the batch of a point.
overrides_of() {
  if [ "$1" = strong ]; then
    echo "batch.global_batch_size=$batch"
  else
    echo "batch.global_batch_size=$((batch * $2 / fewest))"
  fi
}

# Refuse all or submit all.
for series in $series_list; do
  if [ "$series" = strong ] && [ "$batch" = 0 ]; then
    refuse "strong scaling wants one batch for all points, and global_batch_size = 0 grows with the ranks; give --batch N"
  fi
  for count in $nodes; do
    if [ -z "$check" ]; then continue; fi
    if ! message=$("$program" --plan "$deck" --ranks $((count * ranks_per_node)) "$(overrides_of "$series" "$count")" "${overrides[@]}" 2>&1 >/dev/null); then
      refuse "$series scaling on $count nodes: ${message:-$program --plan failed}"
    fi
  done
done

# submit OPTION ... SCRIPT [ARGUMENT ...]: prints the id of the job.
submit() {
  local id command=(sbatch --parsable)
  if [ -n "$pjm" ]; then command=(pjsub -z jid --step); fi
  if [ -n "$dry_run" ]; then
    echo "${command[0]} $(printf '%q ' "$@")" >&2
    echo 0
    return
  fi
  if ! id=$("${command[@]}" "$@" 2>&1); then
    id=$(tail -n 1 <<<"$id")
    refuse "${command[0]}: ${id#sbatch: error: }"
  fi
  id=$(tail -n 1 <<<"$id")
  echo "${id%%;*}"
}

# pjm_options NAME ...: sets `options`, by which a job gets the variables NAME from the environment and,
# once there is one, becomes the next step of the step job. (-x NAME passes any value; NAME=value would
# end at a comma.)
pjm_options() {
  local name
  options=(-j)
  if [ -n "$jobs" ]; then options+=(--sparam "jid=$(step_job)"); fi
  for name in "$@" FREQ_MHZ TIME_LIMIT_S GPTBENCH GPTPOST GPTBENCH_JOBSCRIPTS GPTBENCH_PUBLISHED; do
    if [ -n "${!name:-}" ]; then options+=(-x "$name"); fi
  done
}
step_job() {
  local last=${jobs##*:}
  echo "${last%_*}"
}

# submit_point SERIES NODES DIRECTORY
submit_point() {
  local options=(--job-name="gptbench-$1-$2" --nodes="$2" --ntasks-per-node="$ranks_per_node" --output="$output/$1-$2.out")
  local words=("$(overrides_of "$1" "$2")" "${overrides[@]}")
  if [ -n "$pjm" ]; then
    export DECK=$deck OVERRIDES RANKS_PER_NODE=$ranks_per_node GPTBENCH_OUTPUT=$3
    OVERRIDES=$(printf '%q ' "${words[@]}")
    pjm_options DECK OVERRIDES RANKS_PER_NODE GPTBENCH_OUTPUT
    if [ -n "${FREQ_MHZ:-}" ]; then options+=(-L "freq=$FREQ_MHZ"); fi
    submit -N "gptbench-$1-$2" -L "node=$2" --mpi "max-proc-per-node=$ranks_per_node" -o "$output/$1-$2.out" \
      "${options[@]}" "${submit_options[@]}" "$pjm"
    return
  fi
  if [ -n "$chain" ] && [ -n "$jobs" ]; then options+=(--dependency="afterany:${jobs##*:}"); fi
  GPTBENCH_OUTPUT=$3 submit "${options[@]}" "${site_sbatch[@]}" "${submit_options[@]}" "$here/gptbench.slurm" "$deck" "${words[@]}"
}

submit_post() {
  if [ -n "$pjm" ]; then
    export STUDY=$output
    pjm_options STUDY
    submit -N gptbench-post -L node=1 -o "$output/post.out" "${options[@]}" "${submit_options[@]}" "$pjm"
    return
  fi
  submit --dependency="afterany$jobs" --kill-on-invalid-dep=yes --output="$output/post.out" \
    "${site_post_sbatch[@]}" "${submit_options[@]}" "$here/post.slurm" "$output"
}

if [ -z "$dry_run" ]; then
  if [ -e "$output/study.txt" ]; then refuse "$output holds a study already; give another --output"; fi
  mkdir -p "$output"
  # Only points that were accepted stand in it.
  echo "# series nodes ranks job directory" >"$output/study.txt.new"
fi
jobs=
for series in $series_list; do
  for count in $nodes; do
    directory=$output/$series-$count
    if ! job=$(submit_point "$series" "$count" "$directory"); then
      # What was submitted before would wait for a post-processing job that never comes.
      if [ -n "$jobs" ] && [ -n "$pjm" ]; then
        pjdel "$(step_job)"
      elif [ -n "$jobs" ]; then
        tr ':' '\n' <<<"${jobs#:}" | xargs scancel
      fi
      rm -f "$output/study.txt.new"
      rmdir "$output" 2>/dev/null || true
      exit 2
    fi
    jobs=$jobs:$job
    if [ -z "$dry_run" ]; then
      echo "$series $count $((count * ranks_per_node)) $job $directory" >>"$output/study.txt.new"
      echo "$series scaling, $count $(if [ "$count" = 1 ]; then echo node; else echo nodes; fi): job $job"
    fi
  done
done
if [ -z "$dry_run" ]; then mv "$output/study.txt.new" "$output/study.txt"; fi
if ! job=$(submit_post); then
  # The points are worth their time without it.
  echo "scaling_study: no job makes table and plot; once all points have ended:$(printf ' %q' bash "$here/post.slurm" "$output")" >&2
elif [ -z "$dry_run" ]; then
  echo "table and plot: job $job, then $output/post.out"
fi
