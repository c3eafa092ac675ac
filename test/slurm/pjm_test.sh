#!/bin/bash
# A scaling study, rows and a sweep under PJM, with stand-ins for its commands (pjm_stand_in.sh): step
# jobs, bulk jobs, the clock of the resource list, what the record keeps, bad use.
#
# Needs GPTBENCH, GPTPOST, GPTBENCH_SOURCE_DIR and GPTBENCH_BINARY_DIR.
set -u
here=$GPTBENCH_SOURCE_DIR/test/slurm
# shellcheck source=/dev/null
source "$here/jobs.sh"
rm -rf work
mkdir -p work/bin
cd work || exit 1
for command in pjsub pjstat pjdel; do ln -s "$here/pjm_stand_in.sh" bin/$command; done
# What ranks print goes to a file, that of -std or one of its own, as on Fugaku. Jobs have an environment of their own,
# without the options of a sanitizer. Sub jobs start at the same time: Open MPI 4 would remove the folder of one that
# ends while another is about to write there (its issue 8510).
cat >bin/mpiexec <<MPIEXEC
#!/bin/sh
export ASAN_OPTIONS=${ASAN_OPTIONS:-} OMPI_MCA_orte_tmpdir_base=${OMPI_MCA_orte_tmpdir_base:-/tmp}/\$\$
mkdir -p "\$OMPI_MCA_orte_tmpdir_base"
printed=output.\${PJM_JOBID:-0}
if [ "\$1" = -std ]; then printed=\$2 && shift 2; fi
shift
exec $GPTBENCH_BINARY_DIR/launch "\$@" >>"\$printed" 2>&1
MPIEXEC
printf '#!/bin/sh\n' >bin/llio_transfer
chmod +x bin/mpiexec bin/llio_transfer
export PATH=$PWD/bin:$PATH PJM_STAND_IN=$PWD/spool GPTBENCH GPTPOST
ln -s "$GPTBENCH_SOURCE_DIR/jobscripts" "$GPTBENCH_SOURCE_DIR/input" .
script=jobscripts/sites/fugaku.pjm
trap 'printf "%s\n" 1 2 3 4 5 6 | xargs -n 1 pjdel' EXIT
cat >small.in <<'DECK'
&run name = 'small', steps = 4, warmup_steps = 1 /
&model num_layers = 1, hidden_size = 64, num_attention_heads = 2, seq_length = 64, vocab_size = 256 /
&batch micro_batch_size = 1, global_batch_size = 8 /
DECK

# wait_for_pjm SECONDS JOB: until it and its sub jobs have ended.
wait_for_pjm() {
  for _ in $(seq $(($1 * 4))); do
    if ! pjstat "$2" | grep -Eq ' (QUE|RUN)$'; then return 0; fi
    sleep 0.25
  done
  fail "job $2 has not ended after $1 s: $(pjstat "$2")"
}

# pjm_ended JOB STATUS: its script's exit status.
pjm_ended() {
  [ "$(pjstat "$1" | tail -n 1)" = "$1  EXT $2" ] || fail "job $1 did not end with $2: $(pjstat "$1")"
}

# --- study: a step job ---------------------------------------------------------------------------
jobscripts/scaling_study.sh --site $script --pjsub=-Lrscgrp=nowhere small.in >out 2>&1
[ $? -eq 2 ] || fail "a study in an unknown resource group is not refused"
one_line out 'scaling_study: pjsub: .*no such resource group'
FREQ_MHZ=2200 jobscripts/scaling_study.sh --site $script --ranks-per-node 4 --nodes 2 --dry-run small.in >out 2>&1 || fail "dry run: $(cat out)"
contains out '^pjsub .*-L node=2 --mpi max-proc-per-node=4 -o output/small-scaling/strong-2.out .*-L freq=2200 .*fugaku.pjm'

study=output/small-scaling
FREQ_MHZ=2200 jobscripts/scaling_study.sh --site $script --nodes "1 2" small.in "run.name='ab'" >out 2>&1 || fail "the study: $(cat out)"
contains out '^table and plot: job 1_2,'
contains $study/study.txt '^strong 2 2 1_1 output/small-scaling/strong-2$'
wait_for_pjm 120 1
for step in 0 1 2; do pjm_ended 1_$step 0; done
for nodes in 1 2; do
  contains $study/strong-$nodes.out "^$nodes ranks? on 1 node:"
  contains $study/strong-$nodes.out 'of 6.758 TFLOP/s per rank \(deck\)'
  contains $study/strong-$nodes.out 'GPTBENCH status=OK verdict=VALID'
done
contains $study/post.out 'Speed-up'
for file in strong.csv strong.md strong.html strong/scaling.svg; do [ -s "$study/$file" ] || fail "no $study/$file"; done
if command -v h5dump >/dev/null; then
  h5dump -d /provenance/slurm $study/strong-2/result.h5 >dump.out
  contains dump.out 'PJM_JOBID=1'
  contains dump.out 'PJM_NODE=2'
else
  not_tested "the record's variables of PJM (h5dump was not found; Debian: hdf5-tools)"
fi

# --- rows: a bulk job ----------------------------------------------------------------------------
cat >rows.txt <<'ROWS'
small.in run.name='first_row'
small.in memory.device_memory_gib=1e-5
small.in run.steps=2000000000 run.verify=.false.
small.in run.stepz=1
ROWS
pass=(-x GPTBENCH -x GPTPOST -x ROWS -x STUDY)
ROWS=rows.txt pjsub --bulk --sparam 1-5 "${pass[@]}" -x TIME_LIMIT_S=10 -N row $script >out || fail "bulk job: $(cat out)"
one_line out '^\[INFO.\] PJM 0000 pjsub Job 2 submitted.$'
wait_for_pjm 120 2
number=0
for status in 0 3 8 2 2; do
  number=$((number + 1))
  pjm_ended "2[$number]" $status
done
contains 'row.2[2].out' 'status=OOM'
contains 'row.2[3].out' 'status=TIMEOUT'
contains 'row.2[5].out' 'row 5 of rows.txt: it has 4 rows'
STUDY=output/rows-2 pjsub "${pass[@]}" -N post $script >out || fail "post: $(cat out)"
wait_for_pjm 60 3
pjm_ended 3 0
contains output/rows-2/table.md 'OOM'

# --- sweep: its rows as a bulk job, and row by row inside of a job --------------------------------
{ cat small.in && echo "&sweep vary(1) = 'run.seed = 1, 2', ranks = 2 /"; } >sweep.in
"$GPTBENCH" --sweep sweep.in --write-decks "it's, rows" >out 2>&1 || fail "write: $(cat out)"
sh "./it's, rows/submit.sh" -x GPTBENCH -N sweep >out 2>&1 || fail "submit.sh: $(cat out)"
wait_for_pjm 60 4
for seed in 1 2; do
  contains "sweep.4[$seed].out" 'GPTBENCH status=OK verdict=VALID .* ranks=2 '
  [ -s "output/it's, rows/1x2/$seed/result.h5" ] || fail "no result of row $seed"
done
# As a step job: one row after the other, then tables and report.
GPTBENCH_OUTPUT=output/steps sh "./it's, rows/submit.sh" --step -x GPTBENCH -x GPTPOST -N steps >out 2>&1 || fail "submit.sh --step: $(cat out)"
one_line out '^rows, then tables, plots and report in output/steps: step job 5$'
wait_for_pjm 120 5
for step in 0 1 2; do pjm_ended 5_$step 0; done
[ "$(grep -c '^[^#]' output/steps/table.csv)" -eq 3 ] || fail "not both rows in the table: $(cat steps.5_2.out)"
[ -s output/steps/report.html ] || fail "no report of the steps"
PJM_JOBID=6 "$GPTBENCH" --sweep sweep.in >out 2>&1 || fail "a sweep in a job: $(cat out)"
contains output/small/small-seed_1/output.txt 'GPTBENCH status=OK verdict=VALID .* ranks=2 '

# --- the end of a job, and bad use ----------------------------------------------------------------
DECK=small.in OVERRIDES='run.steps=2000000000 run.verify=.false.' \
  pjsub --step -x DECK -x OVERRIDES -x GPTBENCH -N endless $script >out || fail "endless job: $(cat out)"
pjsub --step --sparam jid=6 -x DECK=small.in -x GPTBENCH -N next $script >out || fail "next step: $(cat out)"
contains <(pjstat) '^6_1  QUE$'
pjdel 6
running() { kill -0 -- "-$(cat spool/6_0/pid)" 2>/dev/null; }
for _ in $(seq 120); do
  if ! running; then break; fi
  sleep 0.25
done
running && fail "the job runs on after pjdel"
[ ! -e next.6_1.out ] || fail "a step ran after pjdel"
for use in "FREQ_MHZ=1800 DECK=small.in" "OVERRIDES='open DECK=small.in" "DECK=none.in" "RANKS_PER_NODE=5 DECK=small.in"; do
  read -r -a words <<<"$use"
  env "${words[@]}" bash $script >out 2>&1
  [ $? -eq 2 ] || fail "$use: not refused"
  one_line out '^fugaku.pjm: '
done
finish
