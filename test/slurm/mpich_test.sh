#!/bin/bash
# MPICH under Slurm: gptbench built with MPICH, the shipped script on two nodes through PMI-2.
#
# Needs GPTBENCH_SOURCE_DIR, GPTPOST (of any build), BUILD and OTHER (folders of mpich_build.sh), CXX,
# GENERATOR and JOBS.
set -u
here=$GPTBENCH_SOURCE_DIR/test/slurm
# shellcheck source=/dev/null
source "$here/cluster.sh"
# shellcheck source=/dev/null
source "$here/jobs.sh"
cluster_skip_without_slurm
sh "$here/mpich_build.sh" "$GPTBENCH_SOURCE_DIR" "$BUILD" "$OTHER" || exit
"$BUILD/bin/gptbench" --version

# Ubuntu 24.04's MPICH was built for PMIx alone: neither its own launcher nor Slurm can start it.
case $(mpiexec.mpich -n 2 "$BUILD/bin/gptbench" "$GPTBENCH_SOURCE_DIR/input/missing.in" 2>&1) in
  *"made of each a world of 1 rank"*)
    echo "skipped: this MPICH starts single processes by its own mpiexec (Launchpad 2072338)"
    exit 77
    ;;
esac

cluster_start || exit 1
if ! srun --mpi=list 2>&1 | grep -qw pmi2; then
  echo "skipped: this Slurm has no MPI plugin pmi2"
  exit 77
fi
scripts=$GPTBENCH_SOURCE_DIR/jobscripts
export GPTBENCH=$BUILD/bin/gptbench GPTPOST SLURM_MPI_TYPE=pmi2
rm -rf work
mkdir -p work
cd work || exit 1
cat >small.in <<'DECK'
&run name = 'small', steps = 4, warmup_steps = 1 /
&model num_layers = 1, hidden_size = 64, num_attention_heads = 2, seq_length = 64, vocab_size = 256 /
&batch micro_batch_size = 1, global_batch_size = 8 /
&output peak_tflops = 0.1 /
DECK
# MPICH waits by spinning: no more ranks than this host may have cores.
job=$(submit --time=20 --nodes=2 --output=job.out "$scripts/gptbench.slurm" small.in)
wait_for 200 "$job"
ended "$job" 0
contains job.out '^2 ranks on 2 nodes:'
contains job.out 'MPICH'
contains job.out 'GPTBENCH status=OK verdict=VALID .* ranks=2 '
finish
