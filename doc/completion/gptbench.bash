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

# The word that is completed, and the option or key whose value it is, into `word` and `option` of the
# caller: behind "=", which stands alone among the words that bash has made, or behind the last word.
_gptbench_current() {
  word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}
  if [ "$word" = "=" ]; then
    word=
  elif [ "$option" = "=" ]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  else
    return 1
  fi
}

# _gptbench_offer WORDS [PREFIX]: those that begin like `word` of the caller, behind PREFIX.
_gptbench_offer() {
  mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -P "${2:-}" -W "$1" -- "${word#"${2:-}"}")
}

# _gptbench_offer_files ACTION ...: files by the actions of compgen.
_gptbench_offer_files() {
  mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen "$@" -- "$word")
}

# Elements of a list stand behind commas.
_gptbench_offer_key() {
  local before=''
  case $word in *,*) before=${word%,*}, ;; esac
  case $2 in
    data.path | convergence.held_out_path | output.directory | checkpoint.directory | run.algorithms | run.resume | run.init_from)
      _gptbench_offer_files -f
      ;;
    *) _gptbench_offer "$(_gptbench_keys "$1" "$2=")" "$before" ;;
  esac
  # A machine is a name, or a path.
  if [ "$2" = run.machine ]; then _gptbench_offer_deck; fi
}

_gptbench_offer_deck() {
  mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(_gptbench_files "$word" in)
}

_gptbench() {
  local program=$1 word option index deck=''
  COMPREPLY=()
  if _gptbench_current && [[ $option != -* ]]; then
    _gptbench_offer_key "$program" "$option"
    return
  fi
  case $option in
    --ranks | --ranks-per-node | --top | --tokens) return ;;
    --format) _gptbench_offer json && return ;;
    --machine | --software)
      _gptbench_offer "$(_gptbench_keys "$program" "$option")"
      _gptbench_offer_deck
      return
      ;;
    --write-decks | --write-result) _gptbench_offer_files -d && return ;;
  esac
  for ((index = 1; index < COMP_CWORD; ++index)); do
    case ${COMP_WORDS[index]} in
      --ranks | --ranks-per-node | --top | --format | --write-decks | --write-result | --machine | --software | --tokens)
        ((++index))
        if [ "${COMP_WORDS[index]}" = "=" ]; then ((++index)); fi
        ;;
      -*) ;;
      *) deck=${COMP_WORDS[index]} && break ;;
    esac
  done
  if [[ $word == -* ]]; then
    _gptbench_offer "--plan --project --calibrate --search --machine --software --tokens --top --write-result --sweep --list --write-decks --check --keys --devices --operations --ranks --ranks-per-node --format --verbose --quiet --version --help"
  elif [ -z "$deck" ]; then
    _gptbench_offer_deck
    compopt -o nospace 2>/dev/null
  else
    _gptbench_offer "$(_gptbench_keys "$program")"
    compopt -o nospace 2>/dev/null
  fi
}

# What gptpost takes, out of the tables of the program itself.
#   _gptpost_words PROGRAM                   its commands
#   _gptpost_words PROGRAM COMMAND           the options of one
#   _gptpost_words PROGRAM COMMAND OPTION    the values of one, where they are known
#   _gptpost_words PROGRAM GROUP.KEY=        the values of a deck key
_gptpost_words() {
  "$1" --words 2>/dev/null | awk -v command="${2:-}" -v option="${3:-}" '
    command == "" && NF == 1 && !/=$/ { print $1 }
    command != "" && option == "" && $1 == command && command !~ /=$/ { print $2 }
    command ~ /=$/ && $1 == command { for (i = 2; i <= NF; ++i) print $i }
    option != "" && $1 == command && $2 == option { for (i = 3; i <= NF; ++i) print $i }'
}

# Values of an option of gptpost: those that are known, or files.
_gptpost_offer_value() {
  local minus=''
  # A figure, behind a minus to sort downwards.
  case $option$word in --sort-*) minus=- ;; esac
  _gptbench_offer "$(_gptpost_words "$1" "$2" "$option")" "$minus"
  case $option in
    --junit | --write-spec | -o) _gptbench_offer_files -f ;;
    --profile) _gptbench_offer_deck ;;
    --published) mapfile -t COMPREPLY < <(_gptbench_files "$word" csv) ;;
    --where) compopt -o nospace 2>/dev/null ;;
  esac
}

# What gptpost COMMAND works on.
_gptpost_offer_operand() {
  case $2 in
    recover) _gptbench_offer_files -d ;;
    convert)
      _gptbench_offer_files -f
      if [ -n "$word" ]; then _gptbench_offer "$("$1" --words 2>/dev/null | grep -o '^model[.][^ ]*=')"; fi
      ;;
    accept)
      mapfile -t COMPREPLY < <(_gptbench_files "$word" h5)
      _gptbench_offer_files -f -X '!*.in'
      ;;
    *) mapfile -t COMPREPLY < <(_gptbench_files "$word" h5) ;;
  esac
  compopt -o nospace 2>/dev/null
}

_gptpost() {
  local program=$1 word option command=${COMP_WORDS[1]}
  COMPREPLY=()
  if _gptbench_current && [[ $option != -* ]]; then
    # A key of convert's model, or a condition of --where.
    _gptbench_offer "$(_gptpost_words "$program" "$option=")"
  elif [ "$COMP_CWORD" -eq 1 ]; then
    _gptbench_offer "$(_gptpost_words "$program") --help --version"
  elif _gptpost_words "$program" "$command" | grep -qxF -e "$option"; then
    _gptpost_offer_value "$program" "$command"
  elif [[ $word == -* ]]; then
    _gptbench_offer "$(_gptpost_words "$program" "$command")"
  else
    _gptpost_offer_operand "$program" "$command"
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
