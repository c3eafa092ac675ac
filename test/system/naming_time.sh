# Sourced by the tests that stop a rank: how long the others take to name it. Every rank has written the
# number of its process to "$seats/RANK"; "$seats/watched" is there until the run has ended.
# shellcheck shell=bash
# shellcheck disable=SC2154  # seats is set by the test

# state_of RANK: R, S, T, ... of /proc; empty where the process has ended.
state_of() {
  local pid key state
  read -r pid <"$seats/$1" || return
  while read -r key state _; do
    [ "$key" != State: ] || break
  done <"/proc/$pid/status"
  case ${state:-} in [RSDTt]) echo "$state" ;; esac
} 2>/dev/null
# now_ms: of the clock, in ms.
now_ms() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }
# time_naming RANK RANKS: writes the time in ms from the SIGSTOP of RANK to the end of the last other rank,
# each of which ends behind its message. Where this script itself is not run for longer than half a second,
# only that counts: a watchdog does not count either what a busy machine withholds from it.
time_naming() {
  local rank=$1 ranks=$2 passed=0 there last now
  until [ "$(state_of "$rank")" = T ]; do
    sleep 0.05
    [ -e "$seats/watched" ] || return
  done
  last=$(now_ms)
  while :; do
    there=0
    for ((other = 0; other < ranks; ++other)); do
      if [ "$other" -ne "$rank" ] && [ -n "$(state_of "$other")" ]; then there=1; fi
    done
    now=$(now_ms)
    passed=$((passed + (now - last < 500 ? now - last : 500)))
    last=$now
    [ "$there" -eq 1 ] || break
    sleep 0.1
  done
  echo "$passed" >"$seats/passed"
}
