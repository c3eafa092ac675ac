#!/bin/bash
# ecosystem_test.sh install|module|completion|man|mandoc|files|cmake|permissions|reframe|jube: what surrounds the programs.
# A part whose tool is missing is skipped, and says how to get the tool.
set -u
failures=0
top=$GPTBENCH_SOURCE_DIR

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# skip TOOL HOW: ends this part as skipped.
skip() {
  echo "skipped: $1 was not found ($2)"
  exit 77
}

# `make install` into a scratch prefix, and a CMake project that uses what lies there.
test_install() {
  rm -rf prefix consumer
  mkdir consumer
  cmake --install "$GPTBENCH_BINARY_DIR" --prefix "$PWD/prefix" >install.log 2>&1 || fail "cmake --install: $(tail -n 3 install.log)"
  for file in bin/gptbench bin/gptpost share/man/man1/gptbench.1 share/man/man1/gptpost.1 \
    share/bash-completion/completions/gptbench share/bash-completion/completions/gptpost \
    share/gptbench/jobscripts/gptbench.slurm share/gptbench/input/124m_short.in share/gptbench/doc/deck.md \
    share/gptbench/doc/ecosystem/gptbench_check.py \
    share/doc/gptbench/LICENSE; do
    [ -s "prefix/$file" ] || fail "no $file"
  done
  [ -x prefix/share/gptbench/jobscripts/scaling_study.sh ] || fail "scaling_study.sh cannot be executed"
  cat >consumer/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.22)
project(consumer NONE)
find_package(gptbench 0.2 REQUIRED)
add_custom_target(plan ALL COMMAND gptbench::gptbench --plan ${gptbench_DATA_DIR}/input/124m_short.in --ranks 2
  COMMAND gptbench::gptpost --version)
CMAKE
  if ! { cmake -S consumer -B consumer/build -Dgptbench_ROOT="$PWD/prefix" && cmake --build consumer/build; } >consumer.log 2>&1; then
    fail "find_package: $(tail -n 5 consumer.log)"
  fi
  grep -q 'memory per rank' consumer.log || fail "the consumer did not run gptbench"
  # Shipped decks and scripts work from any directory, with the programs of PATH; the deck's data lie beside it.
  local share=$PWD/prefix/share
  mkdir -p elsewhere bin
  cd elsewhere || exit 1
  # shellcheck disable=SC2086
  PATH=$PWD/../prefix/bin:$PATH $GPTBENCH_LAUNCH 1 gptbench "$share/gptbench/input/text_short.in" run.steps=3 \
    run.verify=F output.directory=text >text.log 2>&1 || fail "text_short.in from the prefix: $(tail -n 3 text.log)"
  PATH=$PWD/../prefix/bin:$PATH "$share/gptbench/jobscripts/scaling_study.sh" --dry-run --nodes 1 --batch 2 \
    "$share/gptbench/input/124m_short.in" >study.log 2>&1 || fail "scaling_study.sh from the prefix: $(cat study.log)"
  # Without PATH the script finds the programs beside it.
  (unset GPTBENCH GPTPOST && "$share/gptbench/jobscripts/scaling_study.sh" --dry-run --nodes 1 --batch 2 \
    "$share/gptbench/input/124m_short.in") >study.log 2>&1 || fail "scaling_study.sh without PATH: $(cat study.log)"
  grep -q '^sbatch .*/gptbench.slurm' study.log || fail "nothing is submitted: $(cat study.log)"
  cp -r "$share/gptbench/jobscripts" alone
  (unset GPTBENCH && alone/scaling_study.sh --dry-run "$share/gptbench/input/124m_short.in") >study.log 2>&1 &&
    fail "a study without a program"
  grep -q '^scaling_study: no program gptbench in .*; build it, or name it in GPTBENCH$' study.log ||
    fail "scaling_study.sh without a program: $(cat study.log)"
  PATH=$PWD/../prefix/bin:$PATH bash "$share/gptbench/jobscripts/post.slurm" text >post.log 2>&1
  grep -q 'no program' post.log && fail "post.slurm does not find gptpost: $(cat post.log)"
  cd ..
  test_installed_sweep
  # Links of the installed pages lead somewhere.
  local page target
  for page in "$share"/gptbench/*.md "$share"/gptbench/doc/*.md; do
    while read -r target; do
      [ -e "$(dirname "$page")/$target" ] || fail "$(basename "$page") leads to $target"
    done < <(grep -oE '\]\((\.\./)?[A-Za-z][A-Za-z0-9_./-]*' "$page" | sed 's/^](//' | grep -v '^https\?$' | sort -u)
  done
  GPTBENCH_DATA=$share/gptbench prefix/bin/gptbench no.in 2>&1 | grep -qF "as in $share/gptbench/input/124m_short.in" ||
    fail "a missing deck does not lead to those installed"
  # Libraries of other folders than the system's are found as in the build; ours come from the prefix.
  local library
  while read -r library; do
    case $library in "$GPTBENCH_BINARY_DIR"/*) library=prefix/bin/../lib ;; esac
    ldd prefix/bin/gptbench | grep -qF "$library" || fail "the installed program does not find $library"
  done < <(ldd "$GPTBENCH" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p')
}

# test_installed_sweep SHARE: the rows of a sweep go to Slurm from anywhere, by the scripts of the prefix, and the job
# behind them covers all layouts. A stand-in of sbatch runs what is submitted.
test_installed_sweep() {
  cd elsewhere || exit 1
  cat >../bin/sbatch <<'SBATCH'
#!/bin/bash
echo "$*" >>submitted
while [[ $1 == --* ]]; do
  case $1 in
    --array=1-*) tasks=${1#--array=1-} ;;
    --ntasks-per-node=*) ranks=${1#*=} ;;
  esac
  shift
done
[[ $1 == */share/gptbench/jobscripts/*.slurm && -f $1 ]] || { echo "sbatch: no script $1" >&2; exit 1; }
for ((task = 1; task <= ${tasks:-1}; ++task)); do
  SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_JOB_ID=8 SLURM_JOB_ID=9 SLURM_NTASKS=${ranks:-1} SLURM_JOB_END_TIME=1 bash "$@" >>jobs.log 2>&1 || exit
done
wc -l <submitted
SBATCH
  # shellcheck disable=SC2016
  printf '#!/bin/bash\nwhile [[ $1 == -* ]]; do shift; done\nexec %s "$SLURM_NTASKS" "$@"\n' "$GPTBENCH_LAUNCH" >../bin/srun
  chmod +x ../bin/sbatch ../bin/srun
  rm -rf rows output submitted jobs.log
  cat >rows.in <<'DECK'
&run name = 'tiny', steps = 3, warmup_steps = 1, verify = .false. /
&model num_layers = 1, hidden_size = 32, num_attention_heads = 2, seq_length = 16, vocab_size = 64 /
&parallel data_parallel = 0 /
&output peak_tflops = 0.1 /
&sweep vary(1) = 'run.seed = 1, 2', vary(2) = 'ranks = 1, 2' /
DECK
  if ! PATH=$PWD/../bin:$PWD/../prefix/bin:$PATH sh -c 'gptbench --sweep rows.in --write-decks rows && sh rows/submit.sh --time=5' >sweep.log 2>&1; then
    fail "submit.sh from the prefix: $(cat sweep.log submitted jobs.log)"
  fi
  [ "$(grep -c '^[^#]' output/rows/table.csv)" -eq 5 ] || fail "not all rows in the tables: $(cat jobs.log output/rows/table.csv)"
  [ -s output/rows/report.html ] || fail "no report of the sweep"
  cd ..
}

# The module file sets what it says, as Environment Modules reads it.
test_module() {
  local modulecmd folder=$PWD/prefix/share/modulefiles
  for modulecmd in /usr/lib/x86_64-linux-gnu/modulecmd.tcl /usr/lib/*/modulecmd.tcl /usr/libexec/modulecmd.tcl; do
    [ -e "$modulecmd" ] && break
  done
  [ -e "$modulecmd" ] || skip modulecmd "Debian, Ubuntu: apt-get install environment-modules"
  cmake --install "$GPTBENCH_BINARY_DIR" --prefix "$PWD/prefix" >install.log 2>&1 || fail "cmake --install: $(tail -n 3 install.log)"
  (
    unset MANPATH GPTBENCH_JOBSCRIPTS
    # modulecmd prints what the shell is to do.
    eval "$(MODULEPATH=$folder tclsh "$modulecmd" bash load gptbench)"
    [ "$(command -v gptpost)" = "$PWD/prefix/bin/gptpost" ] || exit 1
    [ -s "$GPTBENCH_DATA/input/124m_short.in" ] && [ -s "$GPTBENCH_JOBSCRIPTS/array.slurm" ] && [ -z "${MANPATH+set}" ]
  ) || fail "the module file does not set PATH, GPTBENCH_DATA or GPTBENCH_JOBSCRIPTS, or sets MANPATH"
}

# complete_words WORD ...: sets COMPREPLY as bash would with the cursor behind the last word.
complete_words() {
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  COMPREPLY=()
  local function
  function=$(complete -p "${1##*/}" | sed 's/.* -F \([^ ]*\) .*/\1/')
  "$function" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
}

# offers EXPECTED WORD ...: the completions, sorted, in one line.
offers() {
  local expected=$1 got
  shift
  complete_words "$@"
  got=$(printf '%s\n' "${COMPREPLY[@]}" | sort | tr '\n' ' ')
  [ "$got" = "$expected " ] || fail "completion of '$*' is '$got', not '$expected'"
}

test_completion() {
  bash -n "$top/doc/completion/gptbench.bash" || fail "syntax"
  # shellcheck disable=SC2317
  _own_words_of_srun() { COMPREPLY=(own-word); }
  complete -F _own_words_of_srun srun
  # shellcheck source=/dev/null
  source "$top/doc/completion/gptbench.bash"
  rm -rf complete
  mkdir -p complete/more
  cd complete || exit 1
  touch a.in b.in b.txt r.h5
  offers '--help' "$GPTBENCH" --h
  offers 'a.in b.in more/' "$GPTBENCH" ''
  offers 'b.in' "$GPTBENCH" --plan b
  offers 'run.steps=' "$GPTBENCH" a.in run.ste
  offers 'run.steps=' "$GPTBENCH" --ranks 4 --plan a.in run.ste
  offers '.false. .true.' "$GPTBENCH" a.in run.verify = ''
  offers '.false. .true.' "$GPTBENCH" a.in run.verify =
  offers 'bf16' "$GPTBENCH" a.in precision.compute = b
  offers '' "$GPTBENCH" a.in run.steps = ''
  offers 'gpt2-124m' "$GPTBENCH" a.in model.preset = gpt2-12
  offers 'demo' "$GPTBENCH" a.in run.class = de
  offers '0 1 2 3' "$GPTBENCH" a.in parallel.zero_stage = ''
  offers 'optimizer,parameters' "$GPTBENCH" a.in parallel.offload = optimizer,p
  offers 'a100-40' "$GPTBENCH" a.in run.machine = a100-4
  offers 'a100-40' "$GPTBENCH" --project a.in --machine a100-4
  # Whatever the deck reader names as allowed is offered: the values of its own message.
  local key value
  while read -r key; do
    "$GPTBENCH" --check "$top/input/text_short.in" "$key=no-such-word" 2>&1 | sed -n 's/.*; allowed: //p' |
      grep -oE "'[^']*'" | tr -d "'" | grep . | sort -u >allowed
    [ -s allowed ] || continue
    complete_words "$GPTBENCH" a.in "$key" = ''
    printf '%s\n' "${COMPREPLY[@]}" | sort -u >offered
    cmp -s offered allowed || fail "values of $key: $(diff offered allowed)"
    value=$((${value:-0} + 1))
  done < <(_gptbench_keys "$GPTBENCH" | grep -v '^sweep' | tr -d =)
  [ "${value:-0}" -ge 20 ] || fail "only ${value:-0} keys with a fixed set were compared"
  offers 'a100-40' "$GPTBENCH" --project a.in --machine = a100-4
  offers 'json' "$GPTBENCH" --plan a.in --format =
  offers 'run.steps=' "$GPTBENCH" --format = json --plan a.in run.ste
  offers 'table' "$GPTPOST" ta
  offers 'more/ r.h5' "$GPTPOST" table ''
  offers '--style' "$GPTPOST" table --st
  offers 'scaling' "$GPTPOST" plot --kind sc
  offers 'scaling' "$GPTPOST" plot --kind = sc
  offers 'mpt mpt_star' "$GPTPOST" report --convention mpt
  offers 'more/ r.h5' "$GPTPOST" compare r.h5 -- ''
  # Figures by name, and what the condition of one is about.
  offers 'tokens_per_s tokens_per_step' "$GPTPOST" table --sort tokens_per_s
  offers '-batch.global_batch_size' "$GPTPOST" plot --sort -batch.glob
  offers 'status=' "$GPTPOST" table --where stat
  offers 'fp16 fp32 fp64 fp8' "$GPTPOST" table --where precision.compute = fp
  offers 'safetensors' "$GPTPOST" convert r.h5 x --to s
  offers 'model.preset=' "$GPTPOST" convert r.h5 x model.pre
  offers 'gpt2-124m' "$GPTPOST" convert r.h5 x model.preset = gpt2-12
  offers 'more' "$GPTPOST" recover ''
  offers 'a100-40 a100-80' "$GPTPOST" explain --profile a1
  offers 'b.in' "$GPTPOST" explain --profile b
  # Whatever gptpost names as allowed is offered.
  local command option rest
  value=0
  while read -r command option rest; do
    if [[ $option != -* ]]; then continue; fi
    "$GPTPOST" "$command" "$option" no-such-word 2>&1 |
      sed -nE '/(is none|or one) of /{ s/.*(is none|or one) of //; s/ \(did.*|; try .*//; s/, /\n/g; p }' | sort -u >allowed
    grep -q . allowed || continue
    complete_words "$GPTPOST" "$command" "$option" ''
    printf '%s\n' "${COMPREPLY[@]}" | sort -u >offered
    cmp -s offered allowed || fail "values of $command $option: $(diff offered allowed)"
    value=$((value + 1))
  done < <("$GPTPOST" --words)
  [ "$value" -ge 16 ] || fail "only $value options of gptpost with a fixed set were compared"
  # Behind a launcher; before the program, what completed the launcher's own words still does.
  offers 'b.in' mpirun -n 2 "$GPTBENCH" --plan b
  offers 'bf16' srun --ntasks 4 "$GPTBENCH" a.in precision.compute = b
  offers 'latex' srun --ntasks 1 "$GPTPOST" table --format l
  offers 'causal' mpiexec -n 1 "$GPTPOST" table --convention = c
  offers 'own-word' srun own
  offers 'json' "$GPTBENCH" --plan a.in --format ''
  offers 'json text' "$GPTPOST" accept --format ''
  offers 'csv json latex md' "$GPTPOST" table --format ''
  offers 'a.in b.in more/ r.h5' "$GPTPOST" accept ''
  offers 'b.in b.txt' "$GPTPOST" accept --write-spec b
  # Every key of the program and every word of gptpost's help is offered.
  complete_words "$GPTBENCH" a.in ''
  [ "${#COMPREPLY[@]}" -eq "$("$GPTBENCH" --keys | grep -c '^  [a-z]')" ] || fail "${#COMPREPLY[@]} keys are offered"
  for option in table plot accept convert; do
    complete_words "$GPTPOST" "$option" -
    printf '%s\n' "${COMPREPLY[@]}"
  done | sort -u >offered
  "$GPTPOST" --help | sed -n 's/^  \(--*[a-z-]*\) .*/\1/p' | sort -u >documented
  cmp -s offered documented || fail "options of gptpost: $(diff offered documented)"
  for option in style kind; do
    command=table
    if [ "$option" = kind ]; then command=plot; fi
    complete_words "$GPTPOST" "$command" "--$option" ''
    printf '%s\n' "${COMPREPLY[@]}" | grep -vx all | sort >offered
    "$GPTPOST" --help | awk -v option="--$option" '/^  -/ { inside = $1 == option; next } inside { print $1 }' | sort >documented
    cmp -s offered documented || fail "--$option of gptpost: $(diff offered documented)"
  done
  cd ..
}

# Options of the help texts stand in the man pages, and the other way round.
test_man() {
  local program page
  for program in "$GPTBENCH" "$GPTPOST"; do
    page=$top/doc/man/$(basename "$program").1
    # --markdown is for the documentation of the project itself, --words for completion.
    "$program" --help | grep -oE -- '--[a-z]+' | sort -u >documented
    grep -oE 'Fl -[a-z]+' "$page" | sed 's/^Fl /-/' | grep -vxE -- '--(markdown|words)' | sort -u >described
    cmp -s documented described || fail "$page: $(diff documented described)"
  done
  for status in 0 2 3 4 5 6 7 8; do
    grep -qx ".It $status" "$top/doc/man/gptbench.1" || fail "exit status $status is not in the man page"
  done
  local signals signal
  signals=$(sed -n 's/^ *constexpr int watched\[\] = {\(.*\)};/\1/p' "$top/src/run/signals.cpp" | tr -d ,)
  [ -n "$signals" ] || fail "src/run/signals.cpp names no signals"
  for signal in $signals; do
    grep -q "^.Dv $signal\b" "$top/doc/man/gptbench.1" || fail "$signal is not in the man page"
  done
}

test_mandoc() {
  local page
  command -v mandoc >/dev/null || skip mandoc "Debian, Ubuntu: apt-get install mandoc"
  for page in "$top"/doc/man/*.1; do
    mandoc -Tlint -Wwarning "$page" >lint 2>&1 || fail "$page: $(cat lint)"
    mandoc -Tutf8 "$page" >"$(basename "$page").txt" 2>&1
    [ "$(wc -l <"$(basename "$page").txt")" -gt 40 ] || fail "$page renders to nothing"
  done
}

# Files for other tools compile, and name options that the build has. Spack, EasyBuild and Apptainer
# themselves are not run (doc/ecosystem says so).
test_files() {
  local file option version
  python3 -c 'import sys, xml.etree.ElementTree as x; x.parse(sys.argv[1])' "$top/doc/ecosystem/jube.xml" || fail "jube.xml"
  while read -r option; do
    "$GPTPOST" --help | grep -q -- "$option" || fail "jube.xml: gptpost has no option $option"
  done < <(grep -oE 'gptpost [^<]*' "$top/doc/ecosystem/jube.xml" | grep -oE -- '--[a-z]+' | sort -u)
  for file in "$top"/doc/ecosystem/spack/packages/gptbench/package.py "$top"/doc/ecosystem/easybuild/*.eb \
    "$top"/doc/ecosystem/gptbench_check.py; do
    python3 -c 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")' "$file" || fail "$file"
  done
  test_spack_package
  if grep -n '^software_license' "$top"/doc/ecosystem/easybuild/*.eb; then fail "an easyconfig names a licence: EasyBuild's list has not this one"; fi
  # shellcheck disable=SC2016  # expanded by EasyBuild's shell
  grep -q -- '-DHDF5_ROOT=$EBROOTHDF5' "$top"/doc/ecosystem/easybuild/gptbench-*.eb || fail "the easyconfig does not name its HDF5"
  while read -r option; do
    grep -qE "(option|set)\($option " "$top/CMakeLists.txt" || fail "the build has no option $option"
  done < <(grep -ohE 'GPTBENCH_[A-Z_]+' "$top/doc/ecosystem/spack/packages/gptbench/package.py" "$top"/doc/ecosystem/easybuild/gptbench*.eb \
    "$top/doc/ecosystem/gptbench.def" | grep -vx 'GPTBENCH_DATA\|GPTBENCH_JOBSCRIPTS' | sort -u)
  version=$("$GPTBENCH" --version | sed -n '1s/^gptbench \([0-9.]*\).*/\1/p')
  [ -e "$top/doc/ecosystem/easybuild/gptbench-$version-foss-2023b.eb" ] || fail "the easyconfig is not of version $version"
}

# The package of Spack loads with what spack.package offered before Spack 1.0 and with what it offers since, and names
# the HDF5 that it depends on. Stand-ins for Spack.
test_spack_package() {
  python3 - "$top/doc/ecosystem/spack/packages/gptbench/package.py" <<'PYTHON' || fail "package.py does not load"
import sys
import types


class CMakePackage:
    run_tests = False
    spec = {"hdf5": types.SimpleNamespace(prefix="/opt/hdf5")}

    def define(self, name, value):
        return f"-D{name}={value}"

    define_from_variant = define


build_system = types.ModuleType("cmake")
build_system.CMakePackage = CMakePackage
for build_systems_apart in (False, True):
    package = types.ModuleType("package")
    for directive in ("license", "version", "variant", "depends_on"):
        setattr(package, directive, lambda *words, **options: None)
    if not build_systems_apart:
        package.CMakePackage = CMakePackage
    sys.modules["spack.package"] = package
    sys.modules["spack_repo.builtin.build_systems.cmake"] = build_system if build_systems_apart else None
    names = {"__file__": sys.argv[1]}
    exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), names)
    assert "-DHDF5_ROOT=/opt/hdf5" in names["Gptbench"]().cmake_args()
PYTHON
}

# finds_hdf5 EXPECTED VARIABLE=VALUE ...: which HDF5 is taken in this environment. A stand-in for CMake's own search
# says `parallel`; Debian's libraries have other words.
finds_hdf5() {
  local expected=$1
  shift
  env -u HDF5_ROOT -u HDF5_DIR -u CMAKE_PREFIX_PATH "$@" cmake -S hdf5 -B hdf5/build >hdf5.log 2>&1 || fail "HDF5 with '$*': $(tail -n 5 hdf5.log)"
  grep -qxF -- "-- HDF5 $expected" hdf5.log || fail "HDF5 with '$*' is not '$expected': $(grep '^-- HDF5' hdf5.log)"
}

# What CMake takes and refuses: the HDF5 that modules and Spack have loaded, before those of Debian; no compiler that is
# too old.
test_cmake() {
  rm -rf hdf5
  mkdir -p hdf5/loaded/include
  : >hdf5/loaded/include/hdf5.h
  cat >hdf5/FindHDF5.cmake <<'CMAKE'
set(HDF5_FOUND TRUE)
set(HDF5_IS_PARALLEL TRUE)
CMAKE
  cat >hdf5/CMakeLists.txt <<CMAKE
cmake_minimum_required(VERSION 3.22)
project(hdf5 C)
set(CMAKE_MODULE_PATH \${PROJECT_SOURCE_DIR})
set(GPTBENCH_MPI "Open MPI")
include($top/cmake/ImportHDF5.cmake)
message(STATUS "HDF5 \${GPTBENCH_HDF5_FLAVOUR} \${HDF5_ROOT}")
CMAKE
  finds_hdf5 'parallel ' CMAKE_PREFIX_PATH="$PWD/hdf5/loaded"
  finds_hdf5 "parallel $PWD/hdf5/loaded" HDF5_DIR="$PWD/hdf5/loaded"
  finds_hdf5 'parallel ' HDF5_DIR="$PWD/hdf5/loaded/lib/cmake/hdf5"
  finds_hdf5 'parallel ' HDF5_ROOT="$PWD/hdf5/loaded"
  if [ -e /usr/include/hdf5/openmpi/hdf5.h ]; then finds_hdf5 'openmpi ' CMAKE_PREFIX_PATH=/usr; fi

  local version
  for version in 9.1.0 12.2.0; do
    cmake -DCMAKE_CXX_COMPILER_ID=GNU -DCMAKE_CXX_COMPILER_VERSION=$version -P "$top/cmake/GptbenchCompiler.cmake" >compiler.log 2>&1 ||
      fail "GCC $version is refused: $(cat compiler.log)"
  done
  cmake -DCMAKE_CXX_COMPILER_ID=GNU -DCMAKE_CXX_COMPILER_VERSION=8.5.0 -P "$top/cmake/GptbenchCompiler.cmake" >compiler.log 2>&1 &&
    fail "GCC 8 is not refused"
  grep -q 'GCC 9 or later is needed' compiler.log || fail "GCC 8: $(cat compiler.log)"
  grep -q '^include(GptbenchCompiler)$' "$top/CMakeLists.txt" || fail "the build does not look at its compiler"
}

# What is installed from a clone that only its owner may read can be read by everyone.
test_permissions() {
  rm -rf clone prefix
  mkdir clone
  (
    umask 077
    cp -r "$top"/{input,jobscripts,doc,README.md,CONTRIBUTING.md,CITATION.cff,LICENSE} clone
    mkdir -p clone/cmake clone/cuda clone/test/bench clone/test/fuzz
    cp "$top/cmake/modulefile.in" clone/cmake
    cp "$top/cuda/README.md" clone/cuda
    cp -r "$top"/test/{README.md,reference} clone/test
    cp "$top/test/bench/README.md" clone/test/bench
    cp "$top/test/fuzz/README.md" clone/test/fuzz
  )
  cat >clone/CMakeLists.txt <<CMAKE
cmake_minimum_required(VERSION 3.22)
project(gptbench VERSION 1.0 LANGUAGES C)
include($top/cmake/GptbenchInstall.cmake)
CMAKE
  (umask 022 && cmake -S clone -B clone/build && cmake --install clone/build --prefix "$PWD/prefix") >install.log 2>&1 ||
    fail "cmake --install: $(tail -n 3 install.log)"
  [ -s prefix/share/gptbench/input/124m_short.in ] || fail "no decks"
  [ -z "$(find prefix ! -perm -444)" ] || fail "not for everyone: $(find prefix ! -perm -444 | head -n 3)"
  [ -z "$(find prefix -type d ! -perm -555)" ] || fail "not for everyone: $(find prefix -type d ! -perm -555 | head -n 3)"
  [ -x prefix/share/gptbench/jobscripts/scaling_study.sh ] || fail "scaling_study.sh cannot be executed"
}

test_reframe() {
  command -v reframe >/dev/null || skip ReFrame "pip install reframe-hpc"
  mkdir -p installed
  ln -sf "$GPTBENCH" "$GPTPOST" installed/
  cat >settings.py <<'PYTHON'
site_configuration = {
    "systems": [{"name": "here", "hostnames": [".*"], "partitions": [
        {"name": "local", "scheduler": "local", "launcher": "mpirun", "environs": ["builtin"]}]}],
    "environments": [{"name": "builtin"}],
}
PYTHON
  cat >tiny.in <<'DECK'
&run name = 'tiny', steps = 3, warmup_steps = 1 /
&model num_layers = 1, hidden_size = 32, num_attention_heads = 2, seq_length = 16, vocab_size = 64 /
&output peak_tflops = 0.1 /
DECK
  echo "&fast figure = 'tokens_per_s', reference = 1 / &slow figure = 'sec_per_it', reference = 1000 /" >accept.in
  # As installed: the check finds the programs of its prefix.
  rm -rf prefix
  mkdir -p prefix/share/gptbench/doc/ecosystem
  cp "$top/doc/ecosystem/gptbench_check.py" prefix/share/gptbench/doc/ecosystem
  ln -s ../installed prefix/bin
  reframe -C settings.py --prefix "$PWD/reframe" -c prefix/share/gptbench/doc/ecosystem/gptbench_check.py \
    -S deck="$PWD/tiny.in" -S spec="$PWD/accept.in" -r >reframe.log 2>&1 || fail "ReFrame: $(tail -n 20 reframe.log)"
  grep -q 'tokens/s' reframe.log || fail "ReFrame shows no throughput"
}

# jube.xml for the class 'demo' on this machine, which is one node to every run.
test_jube() {
  command -v jube >/dev/null || skip JUBE github.com/FZJ-JSC/JUBE
  mkdir -p installed
  ln -sf "$GPTBENCH" "$GPTPOST" installed/
  rm -rf jube
  mkdir -p jube/doc/ecosystem jube/input
  cp "$top/input/rules.in" jube/input
  sed -e 's/gpt_124m_weak/demo/; s/>1,2,4</>1,2</; s/\(ranks_per_node" type="int">\)4/\11/' \
    -e "s|srun -N .nodes -n|$GPTBENCH_LAUNCH|" "$top/doc/ecosystem/jube.xml" >jube/doc/ecosystem/jube.xml
  cd jube/doc/ecosystem || exit 1
  echo "&fast figure = 'tokens_per_s', reference = 1 /" >accept_1.in
  echo "&slow figure = 'tokens_per_s', reference = 1e9 /" >accept_2.in
  PATH=$PWD/../../../installed:$PATH jube run jube.xml >jube.log 2>&1 || fail "jube run: $(tail -n 20 jube.log)"
  jube result -a gptbench_runs >result.log 2>&1
  grep -Eq '^\| *1 \|.* [0-9.]+ \| +0 \| +ACCEPTED: ' result.log || fail "JUBE, 1 node: $(cat result.log)"
  grep -Eq '^\| *2 \|.* [0-9.]+ \| +9 \| +NOT ACCEPTED: 0 of 1 ' result.log || fail "JUBE, 2 nodes: $(cat result.log)"
  # What failed is a failed step, not only a row of the table.
  [ "$(find gptbench_runs -name error | wc -l)" -eq 1 ] || fail "JUBE: $(find gptbench_runs -name error | wc -l) steps failed, not one"
  cd ../../..
}

case ${1:-} in
  install) test_install ;;
  module) test_module ;;
  completion) test_completion ;;
  man) test_man ;;
  mandoc) test_mandoc ;;
  files) test_files ;;
  cmake) test_cmake ;;
  permissions) test_permissions ;;
  reframe) test_reframe ;;
  jube) test_jube ;;
  *) fail "no part '${1:-}'" ;;
esac
exit $((failures > 0))
