#!/bin/sh
# cmake/run.sh with programs of our own making: how many ranks it takes, and that a failed run shows.
set -eu
script=$GPTBENCH_SOURCE_DIR/cmake/run.sh
failures=0

rm -rf build tools
mkdir -p build/bin tools output/d
: >output/d/result.h5
cat >build/launch <<'END'
#!/bin/sh
echo "launched $1 ranks, $OMP_NUM_THREADS threads: $3 $4"
if [ -n "${STOPPED:-}" ]; then
  trap 'echo "the ranks end"; : >output/d/new; mv output/d/new output/d/result.h5; exit 8' USR1
  kill -INT "$PPID"
  for _ in 1 2 3 4 5 6 7 8 9 10; do sleep 1; done
fi
# A result is a new file in the place of the one before.
if [ -z "${NO_RESULT:-}" ]; then : >output/d/new && mv output/d/new output/d/result.h5; fi
exit "${RUN_STATUS:-0}"
END
cat >build/bin/gptbench <<'END'
#!/bin/sh
[ "$4" != "${REFUSED:-}" ] || exit 2
echo "  memory per rank: ${BYTES} bytes"
END
cat >build/bin/gptpost <<'END'
#!/bin/sh
echo "post $*"
END
# A machine of eight processors and four cores.
cat >tools/nproc <<'END'
#!/bin/sh
echo 8
END
cat >tools/lscpu <<'END'
#!/bin/sh
for core in 0 0 1 1 2 2 3 3; do echo "0,$core,0"; done
END
chmod +x build/launch build/bin/* tools/*

run() {
  status=0
  PATH=$PWD/tools:$PATH sh "$script" build some/d.in "$@" >output_of_run 2>&1 || status=$?
}
fail() {
  echo "FAILED: $*"
  cat output_of_run
  failures=$((failures + 1))
}

unset OMP_NUM_THREADS
most=4
if read -r quota period 2>/dev/null </sys/fs/cgroup/cpu.max && [ "$quota" != max ]; then
  whole=$(((quota + period / 2) / period))
  if [ "$whole" -lt 1 ]; then whole=1; fi
  if [ "$whole" -lt "$most" ]; then most=$whole; fi
fi

BYTES=1000
export BYTES
run
if ! grep -q "^launched $most ranks, 1 threads: some/d.in output.directory=output/d$" output_of_run; then fail "not $most ranks"; fi
if [ "$(tail -n 1 output_of_run)" != "post report -o output/d/report.html output/d/result.h5" ]; then fail "no report"; fi
if [ "$status" != 0 ]; then fail "status $status"; fi

BYTES=1000000000000000
run
if ! grep -q "^launched 1 ranks, $most threads" output_of_run; then fail "more ranks than memory holds"; fi

BYTES=1000
if [ "$most" -gt 1 ]; then
  REFUSED=$most
  export REFUSED
  run
  if ! grep -q "^launched $((most - 1)) ranks" output_of_run; then fail "a number of ranks that the deck refuses was taken"; fi
  unset REFUSED
fi

run 7
if ! grep -q "^launched 7 ranks, 1 threads" output_of_run; then fail "the number of ranks asked for was not taken"; fi

RUN_STATUS=4
export RUN_STATUS
run
if [ "$status" != 4 ] || ! grep -q "^post report" output_of_run; then fail "a failed run: status $status"; fi

NO_RESULT=yes
export NO_RESULT
run
if [ "$status" != 4 ] || grep -q "^post report" output_of_run; then fail "a run without a result has the report of an earlier one"; fi
unset NO_RESULT

# make passes a deck with a blank in its name on as one word.
if command -v make >/dev/null; then
  env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -n -C "$GPTBENCH_SOURCE_DIR" run DEPS=no DECK='my deck.in' >output_of_run 2>&1 || true
  if ! grep -q "^sh cmake/run.sh build/[^ ]* 'my deck.in'" output_of_run; then fail "make run does not quote DECK"; fi
fi

# Ctrl-C.
STOPPED=yes
export STOPPED
run
if [ "$status" != 8 ] || ! grep -q "^the ranks end" output_of_run || ! grep -q "^post report" output_of_run; then
  fail "a run that was stopped: status $status"
fi
exit $((failures > 0))
