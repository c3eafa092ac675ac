#!/bin/bash
# README.md: the sample of a run has the lines and keys that the program prints today, interpreting.md quotes its figures,
# and the Python lines write a token file that the program trains on.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
readme=$GPTBENCH_SOURCE_DIR/README.md

# block LANGUAGE: the first such block of the page.
block() { awk -v fence="\`\`\`$1" '$0 == fence { inside = 1; next } /^```/ && inside { exit } inside' "$readme"; }
# shape: heading of the steps in any unit, first words of the lines behind it, keys of the last line.
shape() {
  awk '/^    step / { inside = 1; sub(/ *time \(m?s\)/, " time (s)"); print; next }
       !inside || /^ / || /^\.\.\.$/ { next }
       /^(GPTBENCH )?[a-z_]+=|^GPTBENCH / { for (i = 1; i <= NF; ++i) { sub(/=.*/, "", $i); print $i } next }
       { print $1 }' | grep -vx '[0-9/]*'
}

block text | shape >sample
run 2 "$GPTBENCH_SOURCE_DIR/input/124m_short.in" model.num_layers=1 model.hidden_size=32 model.num_attention_heads=2 \
  model.seq_length=32 model.vocab_size=256 model.preset= run.steps=8 output.directory=o
shape <out >printed
[ "$(wc -l <sample)" -gt 20 ] || fail "no sample in README.md: $(cat sample)"
cmp -s sample printed || fail "the sample of README.md is not what is printed: $(diff sample printed)"

case="the quotation of interpreting.md"
quoted=$(sed -n 's/^> //p' "$GPTBENCH_SOURCE_DIR/doc/interpreting.md" | tr '\n' ' ')
block text | grep -E '^(VALID|Total) ' | grep -oE '[0-9.]+ ([A-Z]*FLOP|tokens)/s|[0-9.]+ s to [0-9.]+ s' | sed 's/ s to / to /' >figures
[ "$(wc -l <figures)" -eq 3 ] || fail "figures of the sample: $(cat figures)"
while read -r figure; do
  [[ $quoted == *" $figure"* ]] || fail "not $figure, as the README has it: $quoted"
done <figures

for python in python3 /usr/bin/python3; do
  if "$python" -c 'import numpy' 2>/dev/null; then break; fi
  python=
done
if [ -z "$python" ]; then
  echo "not exercised: no python3 imports numpy (Debian: python3-numpy)"
  exit $((failures > 0 ? 1 : 77))
fi
rm -rf tokens
mkdir tokens
cp "$GPTBENCH_SOURCE_DIR/README.md" tokens/my.txt
block python >tokens/write.py
(cd tokens && "$python" write.py) || fail "the Python lines of README.md"
run 0 "$GPTBENCH_SOURCE_DIR/input/text_short.in" data.source=tokens data.path="$PWD/tokens/my.bin" run.steps=3 run.verify=F \
  output.directory=o
[ "$status" -eq 0 ] || fail "exit status $status"
grep -q "my.bin.* $(wc -c <tokens/my.txt | sed ':a; s/\([0-9]\)\([0-9]\{3\}\)\($\|,\)/\1,\2\3/; ta') tokens" out || fail "not all tokens: $(grep my.bin out)"
exit $((failures > 0))
