# Sourced: submitting jobs to the cluster of cluster.sh and judging their ends. Counts in `failures`.
# shellcheck shell=bash

failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# show FILE ...: what jobs said, for a reader of the test's output.
show() {
  local file
  for file in "$@"; do
    if [ -f "$file" ]; then sed 's/^/    | /' "$file" | tail -n 15; fi
  done
}

# submit ARGUMENTS ...: prints the job id.
submit() {
  local id
  id=$(sbatch --parsable "$@") || return 1
  echo "${id%%;*}"
}

# field_of JOB NAME: a field of `scontrol show job`.
field_of() {
  scontrol show job --oneliner "$1" | tr ' ' '\n' | sed -n "s/^$2=//p" | head -n 1
}

# wait_for SECONDS JOB ...: until all have ended, or fails.
wait_for() {
  local limit=$1 job
  shift
  for _ in $(seq $((limit * 4))); do
    for job in "$@"; do
      case $(field_of "$job" JobState) in
        PENDING | CONFIGURING | RUNNING | COMPLETING | SUSPENDED) sleep 0.25 && continue 2 ;;
      esac
    done
    return 0
  done
  fail "jobs $* have not ended after $limit s: $(squeue -h -o '%i %T %r' | tr '\n' ';')"
  return 1
}

# await_line PATTERN FILE: until the output of a job has such a line, or fails.
await_line() {
  for _ in $(seq 960); do
    if grep -q -- "$1" "$2" 2>/dev/null; then return; fi
    sleep 0.25
  done
  fail "no '$1' in $2"
  show "$2"
  return 1
}

# start_again JOB: waits until a job that is being requeued runs again. Slurm would let it wait for two
# minutes. Nodes refuse a job whose credential is as old, in seconds, as the end of its first run
# ("Job credential revoked"), and the job then ends with status 1.
start_again() {
  local job=$1
  for _ in $(seq 480); do
    if [ "$(field_of "$job" Restarts)" -gt 0 ] && [ "$(field_of "$job" JobState)" = PENDING ]; then
      sleep 3
      scontrol update "JobId=$job" StartTime=now && return
    fi
    sleep 0.25
  done
  fail "job $job does not wait for its second start: $(scontrol show job --oneliner "$job")"
  return 1
}

# ended JOB STATUS: its script's exit status.
ended() {
  local code
  code=$(field_of "$1" ExitCode)
  [ "$code" = "$2:0" ] || fail "job $1 ($(field_of "$1" JobName)) ended with $code instead of $2:0"
}

# one_line FILE PATTERN: the output of a job is a single line that matches.
one_line() {
  if [ "$(wc -l <"$1")" -ne 1 ] || ! grep -Eq "$2" "$1"; then
    fail "$1 is not one line that matches '$2'"
    show "$1"
  fi
}

# contains FILE PATTERN
contains() {
  if ! grep -Eq -- "$2" "$1"; then
    fail "$1 does not say '$2'"
    show "$1"
  fi
}

# not_tested REASON: a part of the test that a missing tool left out.
left_out=
not_tested() {
  left_out="$left_out$1; "
}

# Failed, or skipped where a part was left out, or passed.
finish() {
  if [ "$failures" -gt 0 ]; then
    echo "$failures failures"
    if [ -n "${cluster_scratch:-}" ]; then tail -n 5 "$cluster_scratch"/slurmctld.log; fi
    exit 1
  fi
  if [ -n "$left_out" ]; then
    echo "skipped in part: ${left_out%; }"
    exit 77
  fi
  echo "all as expected"
}
