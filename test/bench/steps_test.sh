#!/bin/sh
# steps_test.sh DRIVER BUILD PYTHON: prints a row for each configuration asked for and the comparison
# with PyTorch (PYTHON: one that imports torch, or "none"), puts them into a document, and refuses what
# it does not understand. That the figures mean something needs a machine at rest: no test asserts them.
set -eu
driver=$1
build=$2
PYTHON=$3
export PYTHON
failures=0

fail() {
  echo "FAILED: $*"
  cat output
  failures=$((failures + 1))
}

printf 'before\n<!-- steps begin -->\nold\n<!-- steps end -->\nbehind\n' >doc.md
sh "$driver" "$build" --quick --ranks 2 --only t1024-mb4-fp32,t1024-mb1-bf16,pytorch --doc doc.md \
  >output 2>&1 || fail "status $?"
for name in t1024-mb4-fp32 t1024-mb1-bf16; do
  grep -Eq "^\| $name( \| [0-9.]+){3} \| [0-9.]+ \([0-9.]+ to [0-9.]+\) \|$" doc.md ||
    fail "no row of $name"
done
if grep -q "t4096" doc.md; then fail "a configuration that was not asked for"; fi
if grep -q "^old" doc.md; then fail "the earlier table is still there"; fi
for line in before behind '<!-- steps end -->'; do
  grep -q "^$line\$" doc.md || fail "the document lost '$line'"
done
if [ "$PYTHON" = none ]; then
  grep -q "not compared with PyTorch" output || fail "says nothing of PyTorch"
else
  for compute in fp32 bf16; do
    grep -Eq "^\| $compute, PyTorch [0-9][^ ]*, eager( \| [0-9.]+){2} \| [0-9.]+ \(.*\)( \| [0-9.]+){3} \|$" \
      doc.md || fail "no comparison in $compute"
  done
fi

# A stand-in for a PyTorch that compiles, which /usr/bin/python3 may not have.
cat >python <<'STANDIN'
#!/bin/sh
case $* in
  *pytorch_step.py*--compile*) echo 'pytorch version=2.0 tokens_per_s=2 peak_mib=1' ;;
  *pytorch_step.py*) echo 'pytorch version=2.0 tokens_per_s=1 peak_mib=1' ;;
  *) echo 2.0 ;;
esac
STANDIN
chmod +x python
PYTHON=$PWD/python sh "$driver" "$build" --quick --ranks 2 --only pytorch-fp32 >output 2>&1 || fail "status $?"
for row in 'eager | [0-9.]* | 1.0' 'compiled | [0-9.]* | 2.0'; do
  grep -q "^| fp32, PyTorch 2.0, $row | " output || fail "no row '$row'"
done

status=0
sh "$driver" "$build" --fast >output 2>&1 || status=$?
[ "$status" = 2 ] || fail "an unknown option: status $status"
exit $((failures > 0))
