# Completion of gptbench and gptpost in bash. `make install` puts it where bash-completion looks; by
# hand: source doc/completion/gptbench.bash
# shellcheck shell=bash

# Deck keys as group.key=, or the values of one key, out of the tables of the program itself.
#   _gptbench_keys PROGRAM              every group.key=
#   _gptbench_keys PROGRAM group.key=   its values, where they are a fixed set
#   _gptbench_keys PROGRAM --machine    names that the option takes, also --software
_gptbench_keys() {
  "$1" --keys --words 2>/dev/null | awk -v wanted="${2:-}" '
    wanted == "" && !/^-/ { print $1 }
    wanted != "" && $1 == wanted { for (i = 2; i <= NF; ++i) print $i }'
}

# Files that end in $2 and begin with $1, and directories on the way to them.
_gptbench_files() {
  compgen -f -X "!*.$2" -- "$1"
  compgen -d -S / -- "$1"
}

_gptbench() {
  local program=$1 word=${COMP_WORDS[COMP_CWORD]} key='' index deck=''
  COMPREPLY=()
  # "=" stands alone among the words that bash has made.
  if [ "$word" = "=" ]; then
    key=${COMP_WORDS[COMP_CWORD - 1]}
    word=
  elif [ "$COMP_CWORD" -ge 2 ] && [ "${COMP_WORDS[COMP_CWORD - 1]}" = "=" ]; then
    key=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  if [ -n "$key" ]; then
    case $key in
      data.path | output.directory | checkpoint.directory | run.resume | run.init_from) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
      *)
        # Elements of a list stand behind commas.
        local before=''
        case $word in *,*) before=${word%,*}, ;; esac
        mapfile -t COMPREPLY < <(compgen -P "$before" -W "$(_gptbench_keys "$program" "$key=")" -- "${word#"$before"}")
        # Machine and software are names, or paths.
        case $key in run.machine | run.software) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(_gptbench_files "$word" in) ;; esac
        ;;
    esac
    return
  fi
  case ${COMP_WORDS[COMP_CWORD - 1]} in --ranks | --ranks-per-node | --top | --tokens) return ;; esac
  if [ "${COMP_WORDS[COMP_CWORD - 1]}" = --format ]; then
    mapfile -t COMPREPLY < <(compgen -W "json" -- "$word")
    return
  fi
  case ${COMP_WORDS[COMP_CWORD - 1]} in
    --machine | --software)
      mapfile -t COMPREPLY < <(
        compgen -W "$(_gptbench_keys "$program" "${COMP_WORDS[COMP_CWORD - 1]}")" -- "$word"
        _gptbench_files "$word" in
      )
      return
      ;;
  esac
  if [ "${COMP_WORDS[COMP_CWORD - 1]}" = --write-decks ] || [ "${COMP_WORDS[COMP_CWORD - 1]}" = --write-result ]; then
    mapfile -t COMPREPLY < <(compgen -d -- "$word")
    return
  fi
  for ((index = 1; index < COMP_CWORD; ++index)); do
    case ${COMP_WORDS[index]} in
      --ranks | --ranks-per-node | --top | --format | --write-decks | --write-result | --machine | --software | --tokens) ((++index)) ;;
      -*) ;;
      *) deck=${COMP_WORDS[index]} && break ;;
    esac
  done
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "--plan --project --calibrate --search --machine --software --tokens --top --write-result --sweep --list --write-decks --check --keys --devices --operations --ranks --ranks-per-node --format --verbose --quiet --version --help" -- "$word")
  elif [ -z "$deck" ]; then
    mapfile -t COMPREPLY < <(_gptbench_files "$word" in)
    compopt -o nospace 2>/dev/null
  else
    mapfile -t COMPREPLY < <(compgen -W "$(_gptbench_keys "$program")" -- "$word")
    compopt -o nospace 2>/dev/null
  fi
}

_gptpost() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words=
  COMPREPLY=()
  case $previous in
    --style) words="native fugaku mpt zero megatron scaling comm checkpoint" ;;
    --format) if [ "${COMP_WORDS[1]}" = table ]; then words="md csv latex json"; else words="text json"; fi ;;
    --kind) words="all throughput utilisation scaling sweep loss steps sensors memory breakdown messages timeline roofline memory_map ranks" ;;
    --convention) words="mpt mpt_star megatron causal exact" ;;
    --over) words="ranks length" ;;
    --status) words="FAILED TIMEOUT" ;;
    --to) words="gptbench safetensors llmc" ;;
    --type) words="f32 f16 bf16" ;;
    --junit | --write-spec)
      mapfile -t COMPREPLY < <(compgen -f -- "$word")
      return
      ;;
    --least | --shard-gib) return ;;
    --profile)
      mapfile -t COMPREPLY < <(_gptbench_files "$word" in)
      return
      ;;
    --peak) words="bf16 fp8 both" ;;
    --published)
      mapfile -t COMPREPLY < <(_gptbench_files "$word" csv)
      return
      ;;
    -o)
      mapfile -t COMPREPLY < <(compgen -f -- "$word")
      return
      ;;
    --where | --sort) return ;;
  esac
  if [ -z "$words" ] && [ "$COMP_CWORD" -eq 1 ]; then
    words="table show compare explain plot report accept recover convert --help --version"
  elif [ -z "$words" ] && [[ $word == -* ]]; then
    case ${COMP_WORDS[1]} in
      table) words="--style --format --published --convention --peak --sort --where -o" ;;
      show) words="--format" ;;
      compare) words="--least" ;;
      explain) words="--profile" ;;
      accept) words="--format --junit --write-spec" ;;
      recover) words="--status" ;;
      convert) words="--to --type --shard-gib" ;;
      report) words="--over --published --convention --peak --sort --where -o" ;;
      plot) words="--kind --over --published --convention --peak --sort --where -o" ;;
    esac
  fi
  if [ -n "$words" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  elif [ "${COMP_WORDS[1]}" = convert ]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    compopt -o nospace 2>/dev/null
  else
    mapfile -t COMPREPLY < <(_gptbench_files "$word" h5)
    # SPEC of accept.
    if [ "${COMP_WORDS[1]}" = accept ]; then mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -X '!*.in' -- "$word"); fi
    compopt -o nospace 2>/dev/null
  fi
}

# Behind a launcher: mpirun -n 2 ./gptbench DECK ... Before the program, what completed the launcher's
# words until now still does.
declare -A _gptbench_launchers=()
_gptbench_launched() {
  local index program
  for ((index = 1; index < COMP_CWORD; ++index)); do
    program=${COMP_WORDS[index]}
    case ${program##*/} in
      gptbench | gptpost)
        COMP_WORDS=("${COMP_WORDS[@]:index}")
        COMP_CWORD=$((COMP_CWORD - index))
        "_${program##*/}" "$program"
        return
        ;;
    esac
  done
  COMPREPLY=()
  local before=${_gptbench_launchers[${1##*/}]:-}
  if [ -n "$before" ]; then "$before" "$@"; fi
}

_gptbench_register() {
  local launcher before
  for launcher in mpirun mpiexec srun; do
    before=$(complete -p "$launcher" 2>/dev/null | sed -n 's/.* -F \([^ ]*\) .*/\1/p')
    if [ "$before" = _gptbench_launched ]; then continue; fi
    _gptbench_launchers[$launcher]=$before
    complete -o bashdefault -o default -F _gptbench_launched "$launcher"
  done
}

_gptbench_register
complete -F _gptbench gptbench
complete -F _gptpost gptpost
