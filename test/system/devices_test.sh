#!/bin/bash
# Data sheets of devices: those that the programs know, and those of the user's file.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
deck=$decks/tiny.in
own=$decks/devices.in
processor=$(sed -n 's/^\(model name\|cpu\|Model\)[[:space:]]*: *//p' /proc/cpuinfo | head -1)

run 0 --devices
for row in '^h100_pcie +80 +2000 +600 +128 +1.62 +51 +51 +378 +756 +756 +1513$' '^a64fx +32 +1024 +82 +- +2 +3.072 +6.144 +- ' '^ +2.2 +3.379 +6.758 +- '; do
  grep -Eq "$row" out || fail "no $row in the output"
done

# A processor without data sheet: the measured ceiling, and why.
ends 0 OK 2 "$deck" --verbose output.peak_tflops=0
if ! grep -q '(known device)$' out; then
  grep -q '^Peak per rank .* TFLOP/s (measured GEMM ceiling)$' out || fail "$(grep '^Peak' out)"
  tr -s ' \n' ' ' <out | grep -Eq "(no data sheet of '|the data sheet of )" || fail "does not say why"
fi

# The user's file adds this processor, whose sockets two ranks share, and replaces a device.
if [ -n "$processor" ]; then
  sockets=$(cat /sys/devices/system/cpu/cpu*/topology/physical_package_id | sort -u | wc -l)
  printf "&mine\n  names = '%s'\n  clock_ghz = 100\n  fp32_tflops = 3\n/\n&b200\n  names = 'X'\n  memory_gb = 7\n/\n" "$processor" >"$own"
  export GPTBENCH_DEVICES=$own
  ends 0 OK 2 "$deck" --verbose output.peak_tflops=0
  grep -Eq "^Peak per rank +$(awk -v n="$sockets" 'BEGIN { printf "%.4f", 1.5 * n }') TFLOP/s \(known device\)$" out || fail "$(grep '^Peak' out)"
  if grep -q '^model name' /proc/cpuinfo && grep -q '^cpu MHz' /proc/cpuinfo; then
    grep -q '^  the peak is stated at 100 GHz, measured are ' out || fail "does not warn of the clock"
  fi
  ends 0 OK 0 "$deck" --verbose
  grep -q '(deck)$' out || fail "the deck's peak is not first: $(grep '^Peak' out)"
  run 0 --devices
  grep -Eq '^b200 +7 +- +- ' out || fail "b200 is not replaced"
  [ "$(grep -c '^b200' out)" -eq 1 ] || fail "b200 twice"
fi

# Mistakes in it are found before anything is written.
export GPTBENCH_DEVICES=$own
printf "&mine\n  names = 'X'\n  fp32_tflop = 3\n/\n" >"$own"
refused 2 "devices.in:3:3: unknown key 'fp32_tflop' of a device; did you mean 'fp32_tflops'\?" 2 "$deck"
refused 2 'devices.in:3:3: ' 0 --devices
export GPTBENCH_DEVICES=$decks/none.in
refused 2 'GPTBENCH_DEVICES must name a file of devices: .*none.in: no such file' 0 "$deck"
refused 2 'GPTBENCH_DEVICES must name a file of devices: .*none.in: no such file' 2 --calibrate "$deck" run.device=host run.time_limit_s=1
finish
