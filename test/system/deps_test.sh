#!/bin/sh
# cmake/deps.sh with a package system of our own making: what it asks for, when, and how it fails.
set -eu
script=$GPTBENCH_SOURCE_DIR/cmake/deps.sh
failures=0

fail() {
  echo "FAILED: $*"
  cat output log
  failures=$((failures + 1))
}

# The commands that the script may find: PATH holds nothing but these and the tools of the shell.
fresh() {
  rm -rf bin
  mkdir bin
  : >installed
  : >log
  for tool in sh tr sed cat echo env grep id apt-cache apt-get dpkg-query; do
    found=$(command -v "$tool" 2>/dev/null) || continue
    case $found in /*) ln -s "$found" "bin/$tool" ;; esac
  done
  rm -f bin/apt-get bin/apt-cache bin/dpkg-query bin/id
  cat >bin/dpkg-query <<'END'
#!/bin/sh
for package in "$@"; do :; done
if grep -qx "$package" installed; then printf installed; else exit 1; fi
END
  cat >bin/apt-cache <<'END'
#!/bin/sh
# Knows the names of packages that it has no version of, as apt does where others mention them.
if [ "$1" = madison ] && ! grep -qx "$2" unknown; then echo "$2 | 1.0-1 | archive main amd64 Packages"; fi
END
  cat >bin/apt-get <<'END'
#!/bin/sh
echo "apt-get $* [${DEBIAN_FRONTEND:-}]" >>log
END
  printf '#!/bin/sh\necho %s\n' "${1:-0}" >bin/id
  : >unknown
  chmod +x bin/*
}

run() {
  status=0
  PATH=$PWD/bin sh "$script" "$1" >output 2>&1 </dev/null || status=$?
}

fresh
run run
if [ "$status" != 0 ]; then fail "root, nothing installed: status $status"; fi
if ! head -n 1 log | grep -q "^apt-get update -qq"; then fail "no update first"; fi
for package in g++ cmake ninja-build libopenmpi-dev openmpi-bin libhdf5-openmpi-dev libtrilinos-kokkos-dev libdnnl-dev nlohmann-json3-dev; do
  if ! grep -q "install .*--no-install-recommends.* $package.*\[noninteractive\]" log; then fail "$package is not installed"; fi
done
if grep -q libgtest-dev log; then fail "running needs no GoogleTest"; fi

fresh
run test
for package in libclang-rt-dev clang fio valgrind libsimgrid-dev; do
  if ! grep -q "install .* $package" log; then fail "$package is not installed"; fi
done
if ! grep -q "install.* libgtest-dev.* python3-torch" log; then fail "packages of the tests are not installed"; fi

fresh
echo libtrilinos-kokkos-dev >unknown
run run
if ! grep -q " libkokkos-dev" log; then fail "the alternative is not taken where apt does not know the first"; fi

# PyTorch is taken where there is one, and its absence asks for nothing a second time.
fresh
echo python3-torch >unknown
run test
if [ "$status" != 0 ] || ! grep -q "install.* libgtest-dev" log || grep -q python3-torch log; then fail "no PyTorch to be had"; fi
sed -n 's/^apt-get install.*Timeout=300 \(.*\) \[.*/\1/p' log | tr ' ' '\n' >installed
: >log
run test
if [ "$status" != 0 ] || [ -s log ]; then fail "no PyTorch to be had: apt-get was called again"; fi

fresh
printf 'libtrilinos-kokkos-dev\nlibkokkos-dev\n' >unknown
run run
if [ "$status" = 0 ] || grep -q install log; then fail "an unknown package does not stop the script"; fi

fresh
printf '%s\n' g++ cmake ninja-build libopenmpi-dev openmpi-bin libhdf5-openmpi-dev libkokkos-dev libdnnl-dev nlohmann-json3-dev >installed
run run
if [ "$status" != 0 ] || [ -s log ]; then fail "everything installed: status $status, and apt-get was called"; fi

fresh
printf 'libmpich-dev\n' >installed
run run
if ! grep -q ' mpich .*libhdf5-mpich-dev' log || grep -q openmpi log; then fail "MPICH is not respected"; fi

fresh 1000
run run
if [ "$status" != 1 ] || [ -s log ]; then fail "no root, no sudo: status $status, or apt-get was called"; fi
if ! grep -q 'apt-get install .*libdnnl-dev' output || ! grep -q 'spack install' output; then fail "no list to act on"; fi

# sudo_of RIGHTS: a stand-in for sudo that grants everything without a password (free), with one (password) or nothing (none).
sudo_of() {
  fresh 1000
  echo "$1" >rights
  cat >bin/sudo <<'END'
#!/bin/sh
rights=$(cat rights)
case $1 in
  -n) [ "$rights" = free ] ;;
  -v) [ "$rights" = password ] ;;
  *) [ "$rights" != none ] && exec "$@" ;;
esac
END
  chmod +x bin/sudo
}

for rights in none password; do
  sudo_of $rights
  run run
  if [ "$status" != 1 ] || [ -s log ]; then fail "sudo ($rights) without a terminal: status $status, or apt-get was called"; fi
  if ! grep -q 'spack install' output; then fail "sudo ($rights) without a terminal: no list to act on"; fi
done
sudo_of free
run run
if [ "$status" != 0 ] || ! grep -q "install .* libdnnl-dev" log; then fail "sudo without a password: status $status"; fi

# At a terminal.
skipped=
if command -v script >/dev/null; then
  run_at_terminal() {
    status=0
    script -qec "PATH='$PWD/bin' sh '$script' $1" /dev/null >output 2>&1 </dev/null || status=$?
  }
  sudo_of none
  run_at_terminal run
  if [ "$status" != 1 ] || [ -s log ] || ! grep -q 'spack install' output; then fail "no right to sudo: status $status, or no list to act on"; fi
  sudo_of password
  run_at_terminal run
  if [ "$status" != 0 ] || ! grep -q "install .* libdnnl-dev" log; then fail "sudo with a password: status $status"; fi
else
  skipped="sudo at a terminal (script was not found; Debian: bsdutils)"
fi

fresh
rm bin/dpkg-query
run run
if [ "$status" != 0 ] || [ -s log ]; then fail "another distribution: status $status"; fi

run something
if [ "$status" != 2 ]; then fail "bad usage: status $status"; fi
if [ "$failures" -eq 0 ] && [ -n "$skipped" ]; then
  echo "skipped in part: $skipped"
  exit 77
fi
exit $((failures > 0))
