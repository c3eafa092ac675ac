#!/bin/sh
# gently.sh COMMAND...: runs COMMAND at a quarter of the weight of other work. Linux weighs sessions before it
# weighs processes (autogroup): a nice value alone counts for nothing beside programs in sessions of their own,
# such as those of mpiexec. COMMAND therefore gets a session too, and must end by itself.
set -eu
if [ -z "${GPTBENCH_GENTLY:-}" ] && command -v setsid >/dev/null; then
  GPTBENCH_GENTLY=1 exec setsid --wait sh "$0" "$@"
fi
if [ -w /proc/self/autogroup ]; then echo 6 2>/dev/null >/proc/self/autogroup || :; fi
exec nice -n 6 "$@"
