#!/bin/bash
# shellcheck disable=SC2154,SC2317  # set and called by the files that are read here
# Environment files of machines and the scripts around them, without Slurm: each file sets what
# jobscripts/sites/README.md says, the study submits with it, the run is started with it. Launchers are
# stand-ins that print their arguments.
set -u
here=$GPTBENCH_SOURCE_DIR/test/slurm
# shellcheck source=/dev/null
source "$here/jobs.sh"
scripts=$GPTBENCH_SOURCE_DIR/jobscripts
export GPTBENCH GPTPOST
rm -rf work
mkdir -p work/bin
cd work || exit 1
cat >small.in <<'DECK'
&run name = 'small', steps = 2, warmup_steps = 0, verify = .false. /
&model num_layers = 1, hidden_size = 16, num_attention_heads = 2, seq_length = 8, vocab_size = 32 /
&batch micro_batch_size = 1, global_batch_size = 4096 /
DECK
printf '#!/bin/sh\necho "srun $*"\n' >bin/srun
# mpiexec ends with STATUS, and what ranks print goes to the file of -std. llio_transfer fails, whatever it gets.
cat >bin/mpiexec <<'MPIEXEC'
#!/bin/sh
echo "mpiexec $*"
if [ "$1" = -std ]; then echo "the ranks print; empty files: ${PLE_MPI_STD_EMPTYFILE:-on}" >"$2"; fi
exit "${STATUS:-0}"
MPIEXEC
printf '#!/bin/sh\necho "llio_transfer $*"\nexit 1\n' >bin/llio_transfer
chmod +x bin/*
PATH=$PWD/bin:$PATH

for site in "$scripts"/sites/*.env; do
  name=$(basename "$site")
  contains "$scripts/sites/README.md" "^\| \`$name\` "
  contains "$site" '^# Sources:'
  if [ "$name" != cpu_cluster.env ]; then contains "$site" '^# Not run there\.$'; fi
  (
    module() { echo "module $*" >>modules; }
    # shellcheck source=/dev/null
    source "$site"
    site_setup || exit 1
    declare -p site_sbatch site_post_sbatch site_srun >/dev/null || exit 1
    [ "$site_ranks_per_node" -ge 1 ] || exit 1
  ) >out 2>&1 || fail "$name: $(cat out)"

  "$scripts/scaling_study.sh" --dry-run --site "$site" --nodes "1 2" --mode both small.in >study 2>&1 || fail "study of $name: $(cat study)"
  [ "$(grep -c '^sbatch ' study)" -eq 5 ] || fail "study of $name submits $(grep -c '^sbatch ' study) jobs"
  ranks=$(
    # shellcheck source=/dev/null
    source "$site"
    echo "$site_ranks_per_node"
  )
  contains study "--nodes=2 --ntasks-per-node=$ranks "
  # Else the one processor per task of gptbench.slurm holds.
  [ "$(grep -c '^sbatch .* --cpus-per-task=[1-9][0-9]* .*gptbench.slurm ' study)" -eq 4 ] || fail "study of $name: no processors per task: $(cat study)"
  contains study 'strong-2.out.* small.in batch.global_batch_size=4096'
  contains study 'weak-2.out.* small.in batch.global_batch_size=8192'
  [ ! -e output ] || fail "a dry run of $name wrote $(find output)"

  # The options of srun reach it; modules are a stand-in too.
  cat >with_modules.env <<SITE
module() { echo "module \$*"; }
source $site
SITE
  SLURM_JOB_ID=7 SLURM_NTASKS=2 SLURM_JOB_END_TIME=1 GPTBENCH_SITE=$PWD/with_modules.env \
    bash "$scripts/gptbench.slurm" small.in >run.out 2>&1 || fail "gptbench.slurm with $name: $(cat run.out)"
  options=$(
    # shellcheck source=/dev/null
    source "$site"
    echo "${site_srun[*]}"
  )
  grep -qF -- "srun $options $GPTBENCH small.in output.directory=output/small-7" run.out || fail "srun of $name: $(cat run.out)"
done
[ "$(find "$scripts/sites" -name '*.env' | wc -l)" -ge 6 ] || fail "sites are missing"

# Fugaku: its own script.
contains "$scripts/sites/fugaku.pjm" '^# Not run there\.$'
DECK=small.in PJM_NODE=4 PJM_JOBID=9 RANKS_PER_NODE=4 OVERRIDES="run.steps=3 run.seed=5" \
  bash "$scripts/sites/fugaku.pjm" >pjm 2>&1 || fail "fugaku.pjm: $(cat pjm)"
contains pjm "^mpiexec -std gptbench-9-0.std -n 16 $GPTBENCH small.in run.time_limit_s=1680 output.directory=output/small-9 run.steps=3 run.seed=5$"
contains pjm '^the ranks print; empty files: off$'
[ ! -e gptbench-9-0.std ] || fail "what the ranks print is left in a file"
# The smaller limit of script and deck holds; one among the overrides is the user's.
sed 's/steps = 2,/steps = 2, time_limit_s = 300,/' small.in >limited.in
for limits in "TIME_LIMIT_S=299.5:run.time_limit_s=299.5 " "TIME_LIMIT_S=400:" "OVERRIDES=run.time_limit_s=2000:"; do
  env "${limits%%:*}" DECK=limited.in PJM_JOBID=9 bash "$scripts/sites/fugaku.pjm" >pjm 2>&1 || fail "$limits: $(cat pjm)"
  contains pjm "limited.in ${limits#*:}output.directory=output/limited-9( run.time_limit_s=2000)?$"
done
# A program of PATH is transferred by its path; the status is that of the run.
mkdir installed
ln -s "$GPTBENCH" installed/gptbench
STATUS=8 DECK=small.in PATH=$PWD/installed:$PATH env -u GPTBENCH bash "$scripts/sites/fugaku.pjm" >pjm 2>&1
[ $? -eq 8 ] || fail "fugaku.pjm with a program of PATH: another status than 8: $(cat pjm)"
contains pjm "^llio_transfer $PWD/installed/gptbench$"
contains pjm "^llio_transfer --purge $PWD/installed/gptbench$"
contains pjm "^mpiexec .* $PWD/installed/gptbench small.in "
GPTBENCH=./nothing DECK=small.in bash "$scripts/sites/fugaku.pjm" >pjm 2>&1 && fail "no program"
one_line pjm '^fugaku.pjm: no program ./nothing in '
RANKS_PER_NODE=5 DECK=small.in bash "$scripts/sites/fugaku.pjm" >pjm 2>&1 && fail "five ranks per node"
one_line pjm 'RANKS_PER_NODE=5'
DECK=none.in bash "$scripts/sites/fugaku.pjm" >pjm 2>&1 && fail "no deck"
one_line pjm 'no deck none.in'

# The commands of doc/cluster.md, in a folder that looks like the top of the tree. The stand-in of
# sbatch wants a script that exists and gives out job ids.
mkdir tree
ln -s "$GPTBENCH_SOURCE_DIR/input" "$scripts" "$GPTBENCH" "$GPTPOST" tree/
cat >bin/sbatch <<'SBATCH'
#!/bin/bash
echo "$*" >>submitted
for word in "$@"; do
  case $word in
    *.slurm) [ -f "$word" ] && echo 1234 && exit 0 ;;
  esac
done
echo "sbatch: no script among: $*"
exit 1
SBATCH
chmod +x bin/sbatch
awk '/^```/ { inside = $0 == "```sh"; next } inside && NF > 0' "$GPTBENCH_SOURCE_DIR/doc/cluster.md" >commands
[ "$(wc -l <commands)" -ge 6 ] || fail "$(wc -l <commands) commands in doc/cluster.md"
while IFS= read -r line <&3; do
  (cd tree && bash -c "$line") >out 2>&1 || fail "doc/cluster.md: $line: $(cat out)"
done 3<commands
contains tree/output/124m-scaling/study.txt '^strong 4 192 1234 output/124m-scaling/strong-4$'
contains tree/output/perlmutter/study.txt '^strong 2 8 1234 output/perlmutter/strong-2$'
contains tree/submitted '--nodes=2 --ntasks-per-node=4 .*--constraint=gpu .*--account=me_g jobscripts/gptbench.slurm input/124m.in'
# A study whose last job is refused has its points all the same, and says how its table is made.
sed -i 's|^    \*\.slurm)|    */post.slurm) echo "sbatch: error: no time left" \&\& exit 1 ;;\n&|' bin/sbatch
(cd tree && jobscripts/scaling_study.sh --no-check --nodes 1 --batch 8 --output "its post" input/124m.in) >out 2>&1 || fail "a study without its last job: $(cat out)"
contains out '^scaling_study: sbatch: no time left$'
contains out '^scaling_study: no job makes table and plot; once all points have ended: bash jobscripts/post.slurm its\\ post$'
contains 'tree/its post/study.txt' '^strong 1 1 1234 its post/strong-1$'

# Rows that --write-decks wrote, from directories with odd names: their submit.sh through a stand-in of
# sbatch that runs the tasks of the array at once. The job behind them covers all layouts.
cat >bin/sbatch <<'SBATCH'
#!/bin/bash
for word in "$@"; do
  case $word in
    --array=1-*) tasks=${word#--array=1-} ;;
    --ntasks-per-node=*) ranks=${word#*=} ;;
  esac
done
[[ " $* " == *" --parsable "* ]] || exit 1
echo "$*" >>submitted
echo "$(wc -l <submitted);cluster"
if [[ $* == *jobscripts/post.slurm* ]]; then exit; fi
while [ "$1" != jobscripts/array.slurm ]; do shift; done
for ((task = 1; task <= tasks; ++task)); do
  SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_JOB_ID=8 SLURM_JOB_ID=9 SLURM_NTASKS=$ranks SLURM_JOB_END_TIME=1 bash "$@" >>tasks || exit
done
SBATCH
cat >bin/scontrol <<'SCONTROL'
#!/bin/sh
echo "MaxArraySize            = ${MAX_ARRAY_SIZE:-1001}"
SCONTROL
chmod +x bin/scontrol
{ cat small.in && echo "&sweep vary(1) = 'run.seed = 1, 2', vary(2) = 'ranks = 1, 2' /"; } >tree/rows.in
for directory in plain -w "it's; \$(a) b"; do
  rm -f tree/submitted tree/tasks
  (cd tree && "$GPTBENCH" --sweep rows.in --write-decks "$directory" && sh "./$directory/submit.sh" --account=x) >out 2>&1 ||
    fail "rows in '$directory': $(cat out)"
  [ "$(tail -n 1 tree/submitted)" = "--parsable --account=x --dependency=afterany:1:2 --kill-on-invalid-dep=yes jobscripts/post.slurm output/$directory" ] ||
    fail "rows in '$directory': the last job is $(tail -n 1 tree/submitted)"
  path=$directory
  [ "$directory" != -w ] || path=./-w
  for seed in 1 2; do
    for ranks in 1 2; do
      grep -qxF "srun  $GPTBENCH $path/small-seed_$seed-ranks_$ranks.in output.directory=output/$directory/1x$ranks/$seed" <(sed 's/^srun  */srun  /' tree/tasks) ||
        fail "rows in '$directory': $(cat tree/tasks)"
    done
  done
done
# Rows of a layout that are more than an array may have tasks go into several.
rm -f tree/submitted tree/tasks
(cd tree && MAX_ARRAY_SIZE=2 sh plain/submit.sh) >out 2>&1 || fail "rows in small arrays: $(cat out)"
[ "$(grep -c -- '--array=1-1 .* plain/1x[12].rows [01]$' tree/submitted)" -eq 4 ] || fail "arrays of one task: $(cat tree/submitted)"
contains tree/submitted '--dependency=afterany:1:2:3:4 '
for ranks in 1 2; do
  for seed in 1 2; do contains tree/tasks " plain/small-seed_$seed-ranks_$ranks.in output.directory=output/plain/1x$ranks/$seed$"; done
done
for directory in $'w\nnl' $'w\033esc' $'w\177'; do
  (cd tree && "$GPTBENCH" --sweep rows.in --write-decks "$directory") >out 2>&1
  [ $? -eq 2 ] || fail "decks in a directory with a control character"
  one_line out '^gptbench: --write-decks: the name of the directory holds a line end or another control character'
done

# A directory of decks with odd names as rows, and a list with an open quote.
mkdir -- -d
odd=("\$(a)" $'a\nb' $'c\033d' "e'\" f") # sorted by name
for deck in "${odd[@]}"; do cp small.in "./-d/$deck.in"; done
number=0
for deck in "${odd[@]}"; do
  number=$((number + 1))
  SLURM_ARRAY_TASK_ID=$number SLURM_JOB_ID=9 SLURM_NTASKS=2 SLURM_JOB_END_TIME=1 GPTBENCH_JOBSCRIPTS=$scripts \
    LC_ALL=C bash "$scripts/array.slurm" -d >out 2>&1 || fail "deck $deck: $(cat out)"
  case $(cat out) in
    *"srun "*"$GPTBENCH ./-d/$deck.in output.directory=output/-d-0/$number") ;;
    *) fail "deck $deck: $(cat out)" ;;
  esac
done

# --- a job that is stopped early goes on where its deck says so ---------------------------------
printf '#!/bin/sh\nexec "$@"\n' >bin/srun
printf '#!/bin/sh\necho "$*" >>requeued\n' >bin/scontrol
chmod +x bin/scontrol
stopped() { # stopped STATUS ARGUMENTS...
  local expected=$1
  shift
  rm -f requeued
  SLURM_JOB_ID=7 SLURM_NTASKS=1 SLURM_JOB_END_TIME=$(($(date +%s) + 5)) GPTBENCH_OUTPUT=stopped \
    bash "$scripts/gptbench.slurm" small.in batch.global_batch_size=4 run.steps=2000000000 "$@" >out 2>&1
  [ $? -eq "$expected" ] || fail "$*: another status than $expected: $(tail -3 out)"
}
resumes=(checkpoint.directory="$PWD/saved checkpoints" run.resume=auto)
for _ in 1 2; do
  stopped 0 "${resumes[@]}"
  contains requeued '^requeue 7$'
  contains out 'queued again to go on from its checkpoint'
done
contains out '^Resumed from .*/saved checkpoints/step-[0-9]*.h5 after step'
stopped 8 checkpoint.directory=other
[ ! -e requeued ] || fail "requeued without run.resume"
# A directory in quotes, as in a deck, is found.
SLURM_JOB_ID=7 SLURM_NTASKS=1 SLURM_JOB_END_TIME=1 \
  bash "$scripts/gptbench.slurm" small.in batch.global_batch_size=4 "output.directory='res dir'" >out 2>&1 || fail "a directory in quotes: $(cat out)"
contains out '^\| small '

# --- what surrounds srun --------------------------------------------------------------------------
# The end of the job where Slurm does not set it, as squeue says it.
# shellcheck disable=SC2016  # expanded by the stand-in
printf '#!/bin/sh\necho "ends at ${SLURM_JOB_END_TIME:-no time}"\n' >bin/srun
ends_at() { # ends_at TIME COMMAND: what a job says with COMMAND in place of squeue
  printf '#!/bin/sh\n%s\n' "$2" >bin/squeue
  chmod +x bin/squeue
  SLURM_JOB_ID=7 env -u SLURM_JOB_END_TIME bash "$scripts/gptbench.slurm" small.in >out 2>&1 || fail "squeue: $2: $(cat out)"
  contains out "^ends at $1$"
}
ends_at "$(date --date=2030-01-02T03:04:05 +%s)" 'echo 2030-01-02T03:04:05'
ends_at 'no time' 'echo N/A'
ends_at 'no time' 'exit 1'
printf '#!/bin/sh\necho "srun $*"\n' >bin/srun
# Programs that the modules of the site bring.
ln -s "$GPTPOST" installed/gptpost
echo "site_setup() { PATH=$PWD/installed:\$PATH; }" >installed.env
SLURM_JOB_ID=7 SLURM_NTASKS=2 SLURM_JOB_END_TIME=1 GPTBENCH_SITE=installed.env \
  env -u GPTBENCH -u GPTPOST bash "$scripts/gptbench.slurm" small.in >out 2>&1 || fail "programs of the site: $(cat out)"
contains out '^srun +gptbench small.in output.directory=output/small-7$'

# Bad use of each script, outside of any job.
refused() {
  local pattern=$1
  shift
  env -u SLURM_JOB_ID "$@" >out 2>&1
  [ $? -eq 2 ] || fail "$*: another status than 2"
  one_line out "$pattern"
}
refused 'no deck given' bash "$scripts/gptbench.slurm"
refused 'not inside of a job' bash "$scripts/gptbench.slurm" small.in
refused 'no program ./nothing' SLURM_JOB_ID=1 GPTBENCH=./nothing bash "$scripts/gptbench.slurm" small.in
refused 'GPTBENCH_SITE=none.env' SLURM_JOB_ID=1 GPTBENCH_SITE=none.env bash "$scripts/gptbench.slurm" small.in
refused 'one directory or list' bash "$scripts/array.slurm"
refused "'two' behind the rows" bash "$scripts/array.slurm" rows.txt two
refused 'not a task of an array' bash "$scripts/array.slurm" rows.txt
echo "small.in 'open" >open.txt
refused 'row 1 of open.txt: quotes are not closed' SLURM_ARRAY_TASK_ID=1 bash "$scripts/array.slurm" open.txt
refused 'no directory or file rows.txt' SLURM_ARRAY_TASK_ID=1 bash "$scripts/array.slurm" rows.txt
refused "no directory 'nowhere'" bash "$scripts/post.slurm" nowhere
refused 'neither study.txt nor a result' bash "$scripts/post.slurm" bin
refused 'neither study.txt nor a result' -u GPTPOST GPTBENCH_SITE=installed.env bash "$scripts/post.slurm" bin
refused '^scaling_study: --nodes is empty$' bash "$scripts/scaling_study.sh" --dry-run --nodes "" small.in
for arguments in "" "--mode sideways small.in" "--nodes 0 small.in" "--batch x small.in" "--nodes" "--quick small.in" \
  "--site none.env small.in" "none.in" "small.in output.directory=x"; do
  # shellcheck disable=SC2086
  refused '^scaling_study: ' bash "$scripts/scaling_study.sh" --dry-run $arguments
done

# --- what the program makes of a job, without one ----------------------------------------------
# It stops before the end of the job, and warns of two ranks on one core.
tiny=(small.in batch.global_batch_size=4 run.steps=2000000000)
SLURM_JOB_END_TIME=$(($(date +%s) + 10)) timeout 60 "$GPTBENCH" "${tiny[@]}" output.directory=end >end.out 2>&1
[ $? -eq 8 ] || fail "the end of the job does not end the run"
contains end.out "stopped: the job's time limit leaves no room for another step"
contains end.out 'status=TIMEOUT'
if command -v taskset >/dev/null; then
  processor=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)
  read -r -a launch <<<"$GPTBENCH_LAUNCH 2"
  PATH=${PATH#*:} "${launch[@]}" taskset -c "$processor" "$GPTBENCH" small.in batch.global_batch_size=4 output.directory=bound >bound.out 2>&1
  contains bound.out "ranks 0-1: processors $processor"
  contains bound.out 'Warning: node 0: 2 threads of ranks 0-1 on 1 core \('
else
  not_tested "two ranks on one core (taskset was not found; Debian: util-linux)"
fi
finish
