#!/bin/bash
# soak.sh: a short run of eight ranks on few cores is flat and comes to its end; growth is seen.
set -u
soak=$GPTBENCH_SOURCE_DIR/test/system/soak.sh
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# samples KIB_PER_SAMPLE FILES_PER_SAMPLE: of 40 samples and 100 steps between two, with peaks.
samples() {
  awk -v kib="$1" -v files="$2" 'BEGIN { for (i = 0; i < 40; ++i) print i, 0, 50000 + int(i * kib) + (i % 7 == 3 ? 9000 : 0), 20 + int(i * files) + i % 2, 100 * i }'
}
judged() { # judged STATUS KIB FILES
  samples "$2" "$3" >made
  status=0
  bash "$soak" --judge made >judgement || status=$?
  [ "$status" -eq "$1" ] || fail "$2 KiB and $3 descriptors per sample: status $status: $(cat judgement)"
}
judged 0 0 0
judged 0 20 0    # 200 bytes per step, which are kept
judged 1 100 0   # 1 KiB per step
judged 1 0 0.1   # four descriptors in all
samples 0 0 | head -n 7 >made
bash "$soak" --judge made >/dev/null && fail "too few samples are accepted"
bash "$soak" --judge /dev/null && fail "no samples are accepted"

bash "$soak" 10 --ranks 8 >out 2>&1 || fail "soak: $(cat out)"
cat out
grep -q '^GPTBENCH status=OK verdict=VALID ' out || fail "no last line"
[ "$(grep -c '^rank [0-7]: ' out)" -eq 8 ] || fail "not of eight ranks"
[ "$(find soak/checkpoints -name '*.manifest' | wc -l)" -gt 0 ] || fail "no checkpoints"
status=0
bash "$soak" ten >out 2>&1 || status=$?
[ "$status" -eq 2 ] || fail "status $status instead of 2"
exit $((failures > 0))
