#!/bin/sh
# bundle.sh BUILD FOLDER: gptbench of a build folder with all libraries that it needs, to be copied to a
# machine of the same processor family that has none of them: FOLDER/bin, FOLDER/lib, FOLDER/input, and
# FOLDER/launch, which starts a program on a number of ranks. Tests and benchmarks of a GPU that were
# built come along and do not count towards the limit of size. Not taken along: gptpost (results are read
# at home), the C library (the machine's must not be older than this one's) and the libraries of CUDA
# (opened when a run asks for them; set LD_LIBRARY_PATH or CUDA_HOME there). Of MPI libraries Open MPI is
# known. Large libraries are packed, and unpacked where they lie by the first program that is started.
set -eu

if [ $# -ne 2 ]; then
  echo "usage: bundle.sh BUILD FOLDER" >&2
  exit 2
fi
build=$1
folder=$2
source=$(cd "$(dirname "$0")/.." && pwd)
limit_mib=60

rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/lib" "$folder/output"
folder=$(cd "$folder" && pwd)

programs=gptbench
for program in test_gpu test_gpu_kernels test_gpu_equivalence bench_cuda_kernels; do
  if [ -x "$build/bin/$program" ]; then programs="$programs $program"; fi
done
for program in $programs; do
  cp "$build/bin/$program" "$folder/bin/"
  strip "$folder/bin/$program"
done
cp -r "$source/input" "$folder/input"
mkdir -p "$folder/test/gpu" "$folder/test/bench"
cp "$source/test/gpu/check.sh" "$folder/test/gpu/"
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

# Sourced by scripts; with it the programs run from any working directory.
cat >"$folder/environment" <<'END'
# . FOLDER/environment, with GPTBENCH_BUNDLE set to FOLDER
for packed in "$GPTBENCH_BUNDLE"/lib/*.gz; do
  [ -e "$packed" ] && [ ! -e "${packed%.gz}" ] || continue
  gunzip -c "$packed" >"${packed%.gz}.$$" && chmod 755 "${packed%.gz}.$$" && mv "${packed%.gz}.$$" "${packed%.gz}"
done
LD_LIBRARY_PATH=$GPTBENCH_BUNDLE/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
PATH=$GPTBENCH_BUNDLE/bin:$PATH
OPAL_PREFIX=$GPTBENCH_BUNDLE
OPAL_LIBDIR=$GPTBENCH_BUNDLE/lib
OPAL_PKGLIBDIR=$GPTBENCH_BUNDLE/lib/openmpi
OPAL_PKGDATADIR=$GPTBENCH_BUNDLE/share/openmpi
OPAL_BINDIR=$GPTBENCH_BUNDLE/bin
OPAL_SYSCONFDIR=$GPTBENCH_BUNDLE/etc
OMPI_MCA_mca_base_component_path=$GPTBENCH_BUNDLE/lib/openmpi
PMIX_MCA_mca_base_component_path=$GPTBENCH_BUNDLE/lib/pmix
PMIX_INSTALL_PREFIX=$GPTBENCH_BUNDLE
PMIX_MCA_pcompress_base_silence_warning=1
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
OMPI_MCA_btl_vader_single_copy_mechanism=none
export LD_LIBRARY_PATH PATH OPAL_PREFIX OPAL_LIBDIR OPAL_PKGLIBDIR OPAL_PKGDATADIR OPAL_BINDIR OPAL_SYSCONFDIR
export OMPI_MCA_mca_base_component_path PMIX_MCA_mca_base_component_path PMIX_INSTALL_PREFIX
export PMIX_MCA_pcompress_base_silence_warning OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
export OMPI_MCA_btl_vader_single_copy_mechanism
END
cat >"$folder/launch" <<'END'
#!/bin/sh
# launch RANKS PROGRAM [ARGUMENTS]: starts a program of this folder (gptbench, test_gpu, ...), or
# another one, on that many ranks of this machine.
set -eu
GPTBENCH_BUNDLE=$(cd "$(dirname "$0")" && pwd)
. "$GPTBENCH_BUNDLE/environment"
exec mpirun --oversubscribe --bind-to none -n "$@"
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
find "$folder/lib" -maxdepth 1 -name '*.so*' -size +8M -exec gzip -9 {} +
kib=$(du -sk "$folder" | cut -f1)
for program in "$folder"/bin/test_* "$folder"/bin/bench_*; do
  if [ -e "$program" ]; then kib=$((kib - $(du -sk "$program" | cut -f1))); fi
done
echo "bundle: $folder, $((kib / 1024)) MiB"
if [ "$kib" -gt $((limit_mib * 1024)) ]; then
  echo "bundle: more than $limit_mib MiB" >&2
  exit 1
fi
