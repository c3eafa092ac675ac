#!/bin/sh
# where_cpu_has.sh FLAG COMMAND...: runs COMMAND on a processor that has FLAG (of /proc/cpuinfo).
set -eu
flag=$1
shift
grep -qw "$flag" /proc/cpuinfo || {
  echo "skipped: this processor has no $flag, so that kernels_host is the same test"
  exit 77
}
exec "$@"
