# Sourced by the tests that run the program as users do: what it ends with, says and writes.
# Needs GPTBENCH and GPTBENCH_LAUNCH; counts in `failures`.
# shellcheck shell=bash

failures=0
work=$PWD/work
decks=$PWD/decks

fresh_folders() {
  rm -rf "$work" "$decks"
  mkdir -p "$work" "$decks"
  cat >"$decks/tiny.in" <<'END'
! A model small enough that a step takes microseconds.
&run
  name = 'tiny'
  steps = 4
  warmup_steps = 1
  verify = .false.
/
&model
  num_layers = 1
  hidden_size = 16
  num_attention_heads = 2
  seq_length = 8
  vocab_size = 32
/
&output
  peak_tflops = 1.0
  log_every = 1
/
END
}

fail() {
  echo "FAILED: $case: $*"
  sed 's/^/    out: /' "$PWD/out" | tail -5
  sed 's/^/    err: /' "$PWD/err" | tail -5
  failures=$((failures + 1))
}

# A command of three minutes and more hangs (on a busy machine some take one): it is asked to end, and
# killed where it does not.
limited=(timeout --kill-after=10 "${GPTBENCH_COMMAND_S:-180}")

# run RANKS ARGUMENTS...: in the empty folder $work, 0 ranks meaning without a launcher. A hang ends
# with status 124 or 137. Leaves status, out and err.
run() {
  local ranks=$1
  shift
  case="$ranks ranks: $*"
  rm -rf "$work"
  mkdir -p "$work"
  local launch=()
  if [ "$ranks" -gt 0 ]; then read -r -a launch <<<"$GPTBENCH_LAUNCH $ranks"; fi
  status=0
  (cd "$work" && exec "${limited[@]}" "${launch[@]}" "$GPTBENCH" "$@") >out 2>err || status=$?
}

# refused STATUS PATTERN RANKS ARGUMENTS...: ends with STATUS, says one line that matches PATTERN on
# standard error (launchers add lines of their own) and writes nothing.
refused() {
  local expected=$1 pattern=$2
  shift 2
  run "$@"
  [ "$status" -eq "$expected" ] || fail "status $status instead of $expected"
  [ "$(grep -c '^gptbench: ' err)" -eq 1 ] || fail "not one line on standard error"
  if [ "$1" -eq 0 ] && [ "$(wc -l <err)" -ne 1 ]; then fail "more than the message on standard error"; fi
  grep '^gptbench: ' err | grep -Eq -- "$pattern" || fail "no '$pattern' in the message"
  [ -z "$(find "$work" -mindepth 1)" ] || fail "wrote $(find "$work" -mindepth 1 | head -1)"
}

# ends STATUS WORD RANKS ARGUMENTS...: a run with a result file of status WORD and a last line.
ends() {
  local expected=$1 word=$2
  shift 2
  run "$@"
  [ "$status" -eq "$expected" ] || fail "status $status instead of $expected"
  check_result "$work/output/tiny/result.h5" "$word"
  grep -qx "exit_status $expected" values || fail "the file says $(grep '^exit_status' values)"
  tail -1 out | grep -q "^GPTBENCH status=$word " || fail "the last line is not GPTBENCH status=$word"
}

# check_result FILE WORD: a result file of status WORD and the verdict that goes with it.
check_result() {
  local verdict=INVALID exit='[567]'
  case $2 in
    OK) verdict=VALID exit=0 ;;
    INVALID) exit=4 ;;
    OOM) verdict='NOT VERIFIED' exit=3 ;;
    TIMEOUT) verdict='NOT VERIFIED' exit=8 ;;
  esac
  if ! "$RESULT_VALUES" "$1" >values 2>&1; then
    fail "$(cat values)"
    return
  fi
  grep -qx "status $2" values || fail "the file says $(grep '^status' values)"
  grep -qx "verdict $verdict" values || fail "the file says $(grep '^verdict' values)"
  grep -Eqx "exit_status $exit" values || fail "the file says $(grep '^exit_status' values)"
}

# await PATTERN FILE PROCESS: until a line matches, as long as the process that is to write it runs
# and for GPTBENCH_COMMAND_S seconds at most.
await() {
  local end=$((SECONDS + ${GPTBENCH_COMMAND_S:-180}))
  until grep -Eq -- "$1" "$2" 2>/dev/null; do
    if ! kill -0 "$3" 2>/dev/null; then
      fail "ended without '$1' in $2"
      return 1
    fi
    if [ "$SECONDS" -ge "$end" ]; then
      hung "$3" "no '$1' in $2"
      return 1
    fi
    sleep 0.05
  done
}

# await_end PROCESS: sets status to that of a background process. One that does not end within
# GPTBENCH_COMMAND_S seconds hangs: status 137.
await_end() {
  local end=$((SECONDS + ${GPTBENCH_COMMAND_S:-180}))
  while kill -0 "$1" 2>/dev/null; do
    if [ "$SECONDS" -ge "$end" ]; then
      hung "$1" "does not end"
      break
    fi
    sleep 0.05
  done
  status=0
  wait "$1" 2>/dev/null || status=$?
}

# hung PROCESS WORDS: fails, says where PROCESS and its descendants stand, and kills them.
hung() {
  fail "$2 after ${GPTBENCH_COMMAND_S:-180} s; processes (state, where in the kernel, command):"
  local pids=("$1") index children
  for ((index = 0; index < ${#pids[@]}; ++index)); do
    local folder=/proc/${pids[index]}
    echo "    ${pids[index]} $(sed -n 's/^State:\t//p' "$folder/status") $(cat "$folder/wchan" 2>/dev/null) $(tr '\0' ' ' <"$folder/cmdline" | cut -c 1-100)"
    read -r -a children <<<"$(cat "$folder"/task/*/children 2>/dev/null | tr '\n' ' ')"
    pids+=("${children[@]}")
  done
  kill -KILL "${pids[@]}" 2>/dev/null
}

# not_tested REASON: a part of the test that a missing tool left out.
left_out=
not_tested() {
  left_out="$left_out$1; "
}

# Failed, or skipped where a part was left out, or passed.
finish() {
  if [ "$failures" -ne 0 ]; then
    echo "$failures failures"
    exit 1
  fi
  if [ -n "$left_out" ]; then
    echo "skipped in part: ${left_out%; }"
    exit 77
  fi
  echo "all as expected"
}
