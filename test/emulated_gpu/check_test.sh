#!/bin/bash
# test/gpu/check.sh, the script for a machine with a GPU, with the emulated GPU in its place: small decks
# of every precision and option on one rank, and decompositions on ranks that share it.
set -eu

folder=$PWD/bundle
rm -rf "$folder" seen
mkdir -p "$folder/bin" "$folder/test/gpu"
cp "$GPTBENCH_SOURCE_DIR/test/gpu/check.sh" "$folder/test/gpu/"
ln -s "$GPTBENCH_SOURCE_DIR/input" "$folder/input"
ln -s "$GPTBENCH_EMULATED" "$folder/bin/gptbench"
ln -s "$GPTBENCH_EMULATED_EQUIVALENCE" "$folder/bin/test_gpu_equivalence"
cat >"$folder/launch" <<END
#!/bin/sh
PATH=$folder/bin:\$PATH
n=\$1 program=\$2
shift 2
exec $GPTBENCH_LAUNCH "\$n" "\$(command -v "\$program")" "\$@"
END

# The decompositions of the test program have a test of their own (emulated_equivalence).
status=0
GTEST_FILTER='-*' PERCENT=500 OUT=$PWD/seen bash "$folder/test/gpu/check.sh" decks ranks || status=$?
if [ "$status" -ne 0 ]; then
  tar -xzf seen/logs.tgz
  sed -n 's/^FAILED  \([^:]*\):.*/\1/p' seen/summary.txt | while read -r failed; do
    echo "---- $failed"
    tail -n 40 "logs/$failed.log" || true
  done
fi
exit "$status"
