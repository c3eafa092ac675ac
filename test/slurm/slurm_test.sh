#!/bin/bash
# The shipped job scripts on a Slurm cluster of four nodes on this host: a strong-scaling study with
# its table and plot, an array with rows that fail, and bad use.
#
# Needs GPTBENCH, GPTPOST, GPTBENCH_SOURCE_DIR and MPI_TYPE, how srun starts programs of this build.
set -u
here=$GPTBENCH_SOURCE_DIR/test/slurm
# shellcheck source=/dev/null
source "$here/cluster.sh"
# shellcheck source=/dev/null
source "$here/jobs.sh"
cluster_start || exit 1
if ! srun --mpi=list 2>&1 | grep -qw "$MPI_TYPE"; then
  echo "skipped: this Slurm has no MPI plugin $MPI_TYPE (Debian, Ubuntu: apt-get install libpmix-dev)"
  exit 77
fi
scripts=$GPTBENCH_SOURCE_DIR/jobscripts
export GPTBENCH GPTPOST GPTBENCH_JOBSCRIPTS=$scripts SLURM_MPI_TYPE=$MPI_TYPE
# Nodes on one host reach each other by its loopback; ranks that wait leave the cores to the others.
export OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_mpi_yield_when_idle=1
rm -rf work
mkdir -p work/decks
cd work || exit 1

sed 's/^ *//' >decks/small.in <<'DECK'
&run name = 'small', steps = 6, warmup_steps = 1 /
&model num_layers = 2, hidden_size = 128, num_attention_heads = 4, seq_length = 128, vocab_size = 512 /
&batch micro_batch_size = 1, global_batch_size = 32 /
&output peak_tflops = 0.1 /
DECK
# Ranks that wait for one that died in MPI_Init are ended soon.
export SLURM_WAIT=10
endless=(run.steps=2000000000 run.verify=.false.)
# Jobs of gptbench.slurm get 20 minutes: its signal two minutes before the end must not come by itself.

# --- bad use -----------------------------------------------------------------------------------
sbatch --partition=nowhere "$scripts/gptbench.slurm" decks/small.in >out 2>&1 && fail "an unknown partition is accepted"
contains out 'invalid partition'
"$scripts/scaling_study.sh" --sbatch=--partition=nowhere decks/small.in >out 2>&1
[ $? -eq 2 ] || fail "a study in an unknown partition is not refused"
one_line out 'scaling_study: .*[Ii]nvalid partition'
"$scripts/scaling_study.sh" --nodes "1 2 64" decks/small.in >out 2>&1
[ $? -eq 2 ] || fail "a study with more ranks than sequences is not refused"
one_line out 'scaling_study: strong scaling on 64 nodes: .*global_batch_size'
"$scripts/scaling_study.sh" decks/small.in batch.global_batch_size=0 >out 2>&1
[ $? -eq 2 ] || fail "strong scaling with a batch that grows is not refused"
one_line out 'scaling_study: strong scaling wants one batch'
"$scripts/scaling_study.sh" --nodes 1,2 decks/small.in >out 2>&1
one_line out "scaling_study: --nodes '1,2'"
[ -z "$(squeue -h)" ] || fail "refused studies left jobs behind: $(squeue -h)"
[ ! -e output/small-scaling ] || fail "refused studies wrote $(find output)"

misfit=$(submit --time=20 --nodes=2 --output=misfit.out "$scripts/gptbench.slurm" decks/small.in parallel.data_parallel=3)
missing=$(submit --time=20 --output=missing.out "$scripts/gptbench.slurm" decks/none.in)
misspelt=$(submit --time=20 --output=misspelt.out "$scripts/gptbench.slurm" decks/small.in run.stepz=3)

# --- array -------------------------------------------------------------------------------------
# The job's limit of a minute ends row 3: gptbench stops before it, and Slurm's signal comes first or
# later, as Slurm looks at limits twice a minute.
cat >rows.txt <<ROWS
# deck and overrides of each row
decks/small.in 'run.name=first row'

decks/small.in memory.device_memory_gib=1e-5
decks/small.in ${endless[*]}
decks/small.in run.stepz=1
ROWS
sed -i "s/first row/first_row/" rows.txt
array=$(submit --array=1-5 --time=1 --signal=TERM@5 --output=row-%a.out "$scripts/array.slurm" rows.txt)
array_post=$(submit --time=2 --dependency="afterany:$array" --output=array_post.out "$scripts/post.slurm" "output/rows-$array")

# --- study -------------------------------------------------------------------------------------
study=output/small-scaling

# submit_study: sets `jobs` to the jobs of the study and its table.
submit_study() {
  "$scripts/scaling_study.sh" --nodes "1 2 4" --chain --sbatch=--time=20 decks/small.in >study.out 2>&1 || fail "the study is not submitted"
  show study.out
  mapfile -t jobs < <(sed -n 's/.*job \([0-9]*\).*/\1/p' study.out)
  if [ ${#jobs[@]} -ne 4 ]; then fail "${#jobs[@]} jobs of the study instead of 4"; fi
}

# Open MPI 4.1.4 under srun: a task that is sent a message before its own MPI_Init has come to an end
# jumps to address 0. On a loaded machine a program of MPI_Init and MPI_Finalize alone does it, too.
died_in_mpi_init() {
  local file
  for file in "$study"/strong-[124].out; do
    if grep -q 'Signal: Segmentation fault' "$file" && ! grep -q '^gptbench ' "$file"; then return 0; fi
  done
  return 1
}

submit_study
"$scripts/scaling_study.sh" decks/small.in >out 2>&1
one_line out 'scaling_study: output/small-scaling holds a study already'

# A requeued job counts its starts.
again=$(submit --time=20 --output=again.out --open-mode=append "$scripts/gptbench.slurm" decks/small.in "${endless[@]}" run.time_limit_s=8)
await_line '2000000000 ' again.out
scontrol requeue "$again" || fail "requeue"
start_again "$again"

# One that is told to stop, as before its time limit, queues itself again and goes on.
goes_on=$(submit --time=20 --nodes=2 --requeue --output=goes_on.out "$scripts/gptbench.slurm" decks/small.in "${endless[@]}" \
  checkpoint.directory=saved run.resume=auto)
await_line '2000000000 ' goes_on.out
scancel --signal=TERM "$goes_on"
await_line 'queued again to go on from its checkpoint' goes_on.out
start_again "$goes_on"
await_line '^Resumed from saved/step-[0-9]*.h5 after step' goes_on.out
scancel "$goes_on"

for attempt in 1 2 3 4 5; do
  wait_for 180 "$misfit" "$missing" "$misspelt" "${jobs[@]}" || show "$study"/*.out
  if [ "$attempt" = 5 ] || ! died_in_mpi_init; then break; fi
  echo "Open MPI ended a task of the study by SIGSEGV in MPI_Init: the study is submitted again"
  rm -rf "$study"
  submit_study
done
ended "$misfit" 2
one_line misfit.out '^gptbench: .*data_parallel = 3 does not fit 2 ranks'
ended "$missing" 2
one_line missing.out 'no deck decks/none.in'
ended "$misspelt" 2
one_line misspelt.out '^gptbench: .*steps'

for job in "${jobs[@]}"; do ended "$job" 0; done
for nodes in 1 2 4; do
  contains "$study/strong-$nodes.out" "^$nodes ranks? on $nodes nodes?:"
  contains "$study/strong-$nodes.out" 'GPTBENCH status=OK verdict=VALID'
  contains "$study/strong.md" "^\| +$nodes \| +$nodes \|.* 32 \|"
done
contains "$study/strong.md" 'Speed-up'
contains "$study/strong.md" '\| +1.00 \| +100.0 %'
for file in strong.csv strong.html strong/scaling.svg post.out; do
  [ -s "$study/$file" ] || fail "no $study/$file"
done
if command -v rsvg-convert >/dev/null; then [ -s "$study/strong/scaling.png" ] || fail "no PNG"; fi
cat "$study/strong.md"

wait_for 150 "$array" "$array_post" || show row-*.out
ended "${array}_1" 0
ended "${array}_2" 3
ended "${array}_3" 8
ended "${array}_4" 2
ended "${array}_5" 2
contains row-2.out 'status=OOM'
contains row-3.out 'status=TIMEOUT'
contains row-4.out '^gptbench: .*steps'
contains row-5.out 'row 5 of rows.txt: it has 4 rows'
ended "$array_post" 0
table=output/rows-$array/table.md
[ -s "output/rows-$array/report.html" ] || fail "no report of the array"
contains "$table" '^\| small .*OOM'
contains "$table" '^\| small .*TIMEOUT'
[ "$(grep -Ec '^\| (first_row|small) ' "$table")" -eq 3 ] || fail "the table of the array has not 3 rows"
cat "$table"

# --- what Slurm offered stands in the record ---------------------------------------------------
wait_for 120 "$again" || show again.out
ended "$again" 8
"$GPTPOST" show "output/small-$again/result.h5" >show.out || fail "gptpost show"
if command -v h5dump >/dev/null; then
  h5dump -d /provenance/slurm "output/small-$again/result.h5" >dump.out
  contains dump.out "SLURM_JOB_ID=$again"
  contains dump.out 'SLURM_JOB_NODELIST=n'
  contains dump.out 'SLURM_JOB_END_TIME=[0-9]+'
  contains dump.out 'SLURM_RESTART_COUNT=1'
else
  not_tested "the record's Slurm variables (h5dump was not found; Debian: hdf5-tools)"
fi
finish
