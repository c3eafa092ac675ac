#!/bin/sh
# sysroot.sh DIRECTORY: Debian's arm64 packages that gptbench links, unpacked in DIRECTORY for the cross
# compiler (toolchain.cmake) and qemu. apt resolves them with a state of its own: nothing is installed,
# and no package of this machine changes. Does nothing when DIRECTORY is complete.
set -eu

if [ $# -ne 1 ]; then
  echo "usage: sysroot.sh DIRECTORY" >&2
  exit 2
fi
sysroot=$1
packages="libopenmpi-dev libhdf5-openmpi-dev libtrilinos-kokkos-dev libdnnl-dev libopenblas-dev libgtest-dev nlohmann-json3-dev"
complete=$(cksum <"$0")
if [ "$(cat "$sysroot/complete" 2>/dev/null || true)" = "$complete" ]; then exit 0; fi

rm -rf "$sysroot"
mkdir -p "$sysroot/apt/state/lists/partial" "$sysroot/apt/cache/archives/partial"
apt=$(cd "$sysroot/apt" && pwd)
: >"$apt/status"
cat >"$apt/apt.conf" <<END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Dir::State "$apt/state";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
END
export APT_CONFIG="$apt/apt.conf"
apt-get update -qq
# shellcheck disable=SC2086  # a list of words
apt-get install --download-only -y -qq $packages >/dev/null

# Programs of arm64 are of no use here: compilers, Perl and others that development packages ask for.
for package in "$apt"/cache/archives/*.deb; do
  case ${package##*/} in
    gcc-[0-9]* | cpp-[0-9]* | gfortran-[0-9]* | binutils* | *perl* | openssh* | automake* | dpkg_* | passwd_*) ;;
    *) dpkg-deb --extract "$package" "$sysroot" ;;
  esac
done
# What was written for the root directory means this one: CMake's packages, and links.
libraries=$(cd "$sysroot" && pwd)/usr/lib/aarch64-linux-gnu
grep -rlZ /usr/lib/aarch64-linux-gnu/lib "$libraries/cmake" | xargs -0 sed -i "s|/usr/lib/aarch64-linux-gnu/lib|$libraries/lib|g"
find "$sysroot" -type l -lname '/*' | while read -r link; do
  ln -sfn "$(realpath -m --relative-to "$(dirname "$link")" "$sysroot$(readlink "$link")")" "$link"
done
# As update-alternatives would choose.
ln -s openblas-pthread/libopenblas.so openblas-pthread/libopenblas.so.0 "$libraries"
rm -rf "$apt"
echo "$complete" >"$sysroot/complete"
