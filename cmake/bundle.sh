#!/bin/sh
# bundle.sh BUILD FOLDER: FOLDER.tar.xz, gptbench and gptpost of a build folder with all libraries that they
# need, for a machine of the same processor family that has none of them; FOLDER is what it unpacks to:
# bin, lib, input, test/gpu/check.sh, and `launch`, which starts a program on a number of ranks. Tests and
# benchmarks of a GPU that were built come along. Not taken along: the C library (the machine's must not be
# older than this one's) and the libraries of CUDA (found by `launch` in their usual places and in
# LD_LIBRARY_PATH when a run asks for them). Of MPI libraries Open MPI is known.
set -eu

if [ $# -ne 2 ]; then
  echo "usage: bundle.sh BUILD FOLDER" >&2
  exit 2
fi
build=$1
folder=$2
source=$(cd "$(dirname "$0")/.." && pwd)
limit_mib=48

rm -rf "$folder" "$folder.tar.xz"
mkdir -p "$folder/bin" "$folder/lib" "$folder/output"
folder=$(cd "$folder" && pwd)

for program in gptbench gptpost test_gpu test_gpu_kernels test_gpu_equivalence bench_cuda_kernels; do
  case $program in gpt*) ;; *) [ -x "$build/bin/$program" ] || continue ;; esac
  cp "$build/bin/$program" "$folder/bin/"
  strip "$folder/bin/$program"
done
cp -r "$source/input" "$folder/input"
rm -f "$folder/input/machines/local.in" # of the machine that builds
mkdir -p "$folder/test/gpu" "$folder/test/bench"
cp "$source/test/gpu/check.sh" "$source/test/gpu/step_kernels.py" "$folder/test/gpu/"
cp "$source/test/bench/pytorch_step.py" "$folder/test/bench/"

# Open MPI: its launcher and the components that runs on one machine and over TCP use; those of fabrics
# want libraries of their own and are left to the site's MPI.
if ! "$build/bin/gptbench" --version | grep -q 'Open MPI'; then
  echo "bundle: the build is not one of Open MPI; its launcher and plug-ins are left out" >&2
else
  launcher=$(readlink -f "$(command -v orterun || command -v mpirun)")
  cp "$launcher" "$folder/bin/mpirun"
  cp "$(dirname "$launcher")/orted" "$folder/bin/"
  ompi_paths=$(ompi_info --path all)
  path_of() { echo "$ompi_paths" | sed -n "s/^ *$1: //p" | head -n 1; }
  mkdir -p "$folder/lib/openmpi" "$folder/share/openmpi" "$folder/etc"
  cp "$(path_of Pkglibdir)"/mca_*.so "$folder/lib/openmpi/"
  rm -f "$folder/lib/openmpi"/mca_*_ucx.so "$folder/lib/openmpi"/mca_*_ofi.so "$folder/lib/openmpi"/mca_*_psm*.so \
    "$folder/lib/openmpi"/mca_btl_openib.so "$folder/lib/openmpi"/mca_osc_*.so \
    "$folder/lib/openmpi"/mca_scoll_*.so "$folder/lib/openmpi"/mca_memheap_*.so "$folder/lib/openmpi"/mca_sshmem_*.so \
    "$folder/lib/openmpi"/mca_spml_*.so "$folder/lib/openmpi"/mca_atomic_*.so "$folder/lib/openmpi"/mca_io_*.so "$folder/lib/openmpi"/mca_f[bcs]*.so \
    "$folder/lib/openmpi"/mca_sharedfp_*.so "$folder/lib/openmpi"/mca_*_monitoring.so \
    "$folder/lib/openmpi"/mca_topo_treematch.so "$folder/lib/openmpi"/mca_vprotocol_*.so \
    "$folder/lib/openmpi"/mca_*_flux.so \
    "$folder/lib/openmpi"/mca_*_slurm.so "$folder/lib/openmpi"/mca_reachable_netlink.so
  cp "$(path_of Pkgdatadir)"/help-*.txt "$folder/share/openmpi/"
  # PMIx and its components, which Open MPI's own open by name.
  pmix=$(ldd "$folder/lib/openmpi"/mca_pmix_ext*.so 2>/dev/null | sed -n 's/.*libpmix[^ ]* => \([^ ]*\) .*/\1/p' | head -n 1)
  if [ -n "$pmix" ]; then
    mkdir -p "$folder/lib/pmix"
    cp "$(dirname "$(readlink -f "$pmix")")/pmix"/*.so "$folder/lib/pmix/" 2>/dev/null || true
  fi
fi

# Libraries of all of these but the C library, found by the dynamic linker of this machine.
find "$folder/bin" "$folder/lib" -type f -exec ldd {} + 2>/dev/null |
  sed -n 's/^[[:space:]]*\([^ ]*\) => \(\/[^ ]*\) .*/\1 \2/p' | sort -u |
  while read -r name file; do
    case $name in
      libc.so.* | libm.so.* | libdl.so.* | librt.so.* | libpthread.so.* | libresolv.so.* | libutil.so.* | ld-linux*) ;;
      *) cp -L "$file" "$folder/lib/$name" ;;
    esac
  done
find "$folder/lib" -type f -name '*.so*' -exec strip --strip-unneeded {} + 2>/dev/null || true

cat >"$folder/launch" <<'END'
#!/bin/sh
# launch RANKS PROGRAM [ARGUMENTS]: starts a program of this folder (gptbench, test_gpu, ...), or
# another one, on that many ranks of this machine; a single rank without MPI's launcher. Programs find
# CUDA's libraries in LD_LIBRARY_PATH, an installation, or Python packages, in this order.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ -x "$here/bin/gptbench" ] || chmod u+x "$here"/bin/*  # a copy may lose the modes
ranks=$1
shift
LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
for libraries in /usr/local/cuda/lib64 "${VIRTUAL_ENV:-/opt/venv}"/lib/python3*/site-packages/nvidia/*/lib \
  /opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib /opt/*/lib/python3*/site-packages/nvidia/*/lib \
  /usr/local/lib/python3*/*-packages/nvidia/*/lib /usr/lib/python3*/*-packages/nvidia/*/lib; do
  if [ -d "$libraries" ]; then LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$libraries; fi
done
PATH=$here/bin:$PATH
export LD_LIBRARY_PATH PATH
export OPAL_PREFIX="$here" OPAL_LIBDIR="$here/lib" OPAL_PKGLIBDIR="$here/lib/openmpi"
export OPAL_PKGDATADIR="$here/share/openmpi" OPAL_BINDIR="$here/bin" OPAL_SYSCONFDIR="$here/etc"
export OMPI_MCA_mca_base_component_path="$here/lib/openmpi"
export PMIX_MCA_mca_base_component_path="$here/lib/pmix" PMIX_INSTALL_PREFIX="$here"
export PMIX_MCA_pcompress_base_silence_warning=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated  # wants no ssh
if [ "$ranks" = 1 ]; then
  export OMPI_MCA_ess_singleton_isolated=1
  exec "$@"
fi
exec mpirun --oversubscribe --bind-to none -n "$ranks" "$@"
END
chmod +x "$folder/launch"

# Nothing may be missing, and nothing of ours may come from outside.
missing=$(LD_LIBRARY_PATH="$folder/lib" ldd "$folder"/bin/* "$folder"/lib/*.so* "$folder"/lib/openmpi/*.so 2>/dev/null |
  grep 'not found' | sort -u || true)
if [ -n "$missing" ]; then
  echo "bundle: libraries are missing:" >&2
  echo "$missing" >&2
  exit 1
fi
# A window of 64 MiB: programs share much of their code. Preset 2 takes twice as long for 4 % less.
tar -C "$(dirname "$folder")" -cf - "$(basename "$folder")" | xz --lzma2=preset=0,dict=64MiB >"$folder.tar.xz"
kib=$(du -sk "$folder.tar.xz" | cut -f1)
echo "bundle: $folder.tar.xz, $((kib / 1024)) MiB; $(du -sm "$folder" | cut -f1) MiB unpacked by tar -xJf"
if [ "$kib" -gt $((limit_mib * 1024)) ]; then
  echo "bundle: more than $limit_mib MiB" >&2
  exit 1
fi
