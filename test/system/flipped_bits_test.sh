#!/bin/bash
# A bit of the weights that flips in the memory of one rank while the program runs: the replicas are
# found to differ; a weight that becomes NaN is found in the step in which it appears.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
command -v python3 >/dev/null || { echo "skipped: no python3 to write into the memory of a process"; exit 77; }
deck=$decks/tiny.in
keys=("$deck" model.hidden_size=256 model.vocab_size=2048 run.steps=2000000 output.log_every=1
  checkpoint.directory=ck checkpoint.async=F)
params=$("$GPTBENCH" --plan "${keys[@]}" --ranks 2 | sed -n 's/^GPTBENCH plan params=\([0-9]*\) .*/\1/p')

# Flips a bit, or writes a NaN, in the weights of a rank: in every array of its memory that is large
# enough for all of them and begins with numbers like those of the token embedding (standard deviation
# 0.02). The process is stopped meanwhile: otherwise it could look for the origin of the NaN in one
# array while the next one is still being searched.
cat >"$decks/flip.py" <<'PY'
import array, os, re, signal, struct, sys, time
program, folder, rank, params, what = sys.argv[1:]
names = [f"{name}={rank}".encode() for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK")]

def is_of_rank(pid):
    try:
        return (os.readlink(f"/proc/{pid}/exe") == os.path.realpath(program)
                and os.readlink(f"/proc/{pid}/cwd") == os.path.realpath(folder)
                and any(name in open(f"/proc/{pid}/environ", "rb").read().split(b"\0") for name in names))
    except OSError:
        return False

def weights_in(memory, begin, end):
    memory.seek(begin)
    numbers = array.array("f", memory.read((end - begin) // 4 * 4))
    for at in range(0, len(numbers) - 128, 16):
        if all(1e-6 < abs(x) < 0.12 for x in numbers[at:at + 64]):
            return begin + 4 * at
    return None

def strike(pid):
    written = 0
    with open(f"/proc/{pid}/maps") as lines, open(f"/proc/{pid}/mem", "r+b") as memory:
        for begin, end in re.findall(r"^([0-9a-f]+)-([0-9a-f]+) rw-p 0+ 00:00 0 *$", lines.read(), re.M):
            begin, end = int(begin, 16), int(end, 16)
            place = weights_in(memory, begin, end) if end - begin >= 4 * int(params) else None
            if place is None:
                continue
            memory.seek(place)
            bits, = struct.unpack("<I", memory.read(4))
            memory.seek(place)
            memory.write(struct.pack("<I", 0x7fc00000 if what == "nan" else bits ^ 1 << 21))
            memory.flush()
            written += 1
    return written

def wait_until_stopped(pid):
    # The state follows the name, which is in parentheses.
    while open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] not in "Tt":
        time.sleep(0.001)

pid = next(filter(is_of_rank, filter(str.isdigit, os.listdir("/proc"))))
os.kill(int(pid), signal.SIGSTOP)
try:
    wait_until_stopped(pid)
    written = strike(pid)
finally:
    os.kill(int(pid), signal.SIGCONT)
print(f"{what} in {written} arrays of process {pid}")
PY

# flipped RANK WHAT ARGUMENTS...: a run on two ranks, in which it happens after the sixth step. With
# `signal` that rank gets a signal then.
signal=
flipped() {
  local rank=$1 what=$2 injector
  shift 2
  (
    for _ in $(seq 600); do
      if grep -qs '^ *6/' out; then break; fi
      sleep 0.1
    done
    python3 "$decks/flip.py" "$GPTBENCH" "$work" "$rank" "$params" "$what" >injected 2>&1
    if [ -n "$signal" ]; then kill "-$signal" "$(sed -n 's/.* of process //p' injected)"; fi
  ) &
  injector=$!
  : >out
  run 2 "${keys[@]}" "$@"
  wait "$injector"
  case="$what on rank $rank, $case"
  if grep -q PermissionError injected; then
    echo "skipped: this user may not write to the memory of a process of its own (kernel.yama.ptrace_scope)"
    exit 77
  fi
  grep -q "^$what in [1-9]" injected || fail "nothing was injected: $(cat injected)"
}

# Found by the comparison that the deck asks for, or by the one before a checkpoint, which is not written.
for found_by in 'check_replicas_every=2 checkpoint.every_steps=4' 'check_replicas_every=0 checkpoint.every_steps=3'; do
  # shellcheck disable=SC2086
  flipped 1 bit run.$found_by
  [ "$status" -eq 4 ] || fail "status $status instead of 4"
  tr -s '\n ' ' ' <out >line
  grep -Eq 'INVALID: replicas differ after step [0-9]+: rank 0 on [^ ]+ differs in [^;]*, rank 1 on [^ ]+ differs in wte[^;]*; steps [0-9]+ to [0-9]+, repeated from ck/step-[0-9]+\.h5, end with equal replicas: the fault does not repeat' line ||
    fail "neither ranks nor tensor"
  grep -q '^replicas differ after step [0-9]*: ' out || fail "not told before steps are repeated"
  "$GPTPOST" show "$work/output/tiny/result.h5" | tr -s '\n ' ' ' | grep -q 'replicas differ after step' || fail "not in the result"
  step=$(sed -n 's/.*replicas differ after step \([0-9]*\):.*/\1/p' line)
  [ ! -e "$(printf '%s/ck/step-%08d.h5' "$work" "$step")" ] || fail "saved"
done
signal=USR1
flipped 1 bit checkpoint.every_steps=1000000
signal=
[ "$status" -eq 4 ] || fail "status $status instead of 4"
tr -s '\n ' ' ' <out | grep -q 'INVALID: replicas differ after step ' || fail "no reason"
[ -z "$(find "$work" -name 'step-*')" ] || fail "saved"

# Arrays that one rank alone reads are struck, too: ranks disagree on whether the step is finite.
flipped 1 nan checkpoint.every_steps=4 run.watchdog_s=60
[ "$status" -eq 5 ] || fail "status $status instead of 5"
tr -s '\n ' ' ' <out >line
grep -Eq 'FAILED: (loss [^ ]+, gradient norm [^ ]+ in step|weights are not finite after step) [0-9]+; .*; first on rank 1 on [^ ]+: tensor wte of the weights' line ||
  fail "neither rank nor tensor"
finish
