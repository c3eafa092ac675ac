#!/bin/bash
# Runs the commands of README.md and of the pages below: every line of a ```sh block, in their order,
# in a folder that looks like the top of the tree. `# exit N` behind a command states its exit
# status, else it is 0. Training runs are made small by keys added behind those that the command
# gives, unless they are to fail. What no test should run (clusters, package managers) stands in
# ```bash blocks that begin with "# not run by the test".
set -u
unset OMPI_MCA_pml OMPI_MCA_ess_singleton_isolated OMPI_MCA_mpi_yield_when_idle  # as users start programs
top=$GPTBENCH_SOURCE_DIR
rm -rf tree tools commands
mkdir -p tree tools
ln -s "$top/input" "$top/jobscripts" "$top/LICENSE" tree/
mkdir tree/test
ln -s "$top/test/reference" tree/test/

cat >tree/gptbench <<END
#!/bin/bash
if [ -z "\${SHRINK:-}" ]; then exec "$GPTBENCH" "\$@"; fi
case "\$1" in --*) exec "$GPTBENCH" "\$@" ;; esac
small=()
for setting in run.steps=4 model.num_layers=2 model.hidden_size=32 model.num_attention_heads=2 \\
  model.seq_length=32 model.vocab_size=256 model.vocab_multiple=1 output.peak_tflops=1; do
  case " \$* " in
    *" \${setting%%=*}="*) ;;
    *) small+=("\$setting") ;;
  esac
done
exec "$GPTBENCH" "\$@" "\${small[@]}"
END
ln -s "$GPTPOST" tree/gptpost
# mpirun -n RANKS PROGRAM ... by the launcher of this build.
cat >tools/mpirun <<END
#!/bin/bash
[ "\$1" = -n ] || { echo "mpirun: -n RANKS comes first"; exit 1; }
shift
PATH=\${PATH#*:}
exec $GPTBENCH_LAUNCH "\$@"
END
chmod +x tree/gptbench tools/mpirun

# commands_of PAGE: its ```sh blocks, continued lines joined.
commands_of() {
  awk '/^```/ { inside = $0 == "```sh"; next }
       inside && NF > 0 && !/^#/ { if (sub(/\\$/, "")) printf "%s", $0; else print }' "$top/$1"
}

failures=0
number=0
for page in README.md doc/user_guide.md doc/run_rules.md doc/weights.md; do
  commands_of "$page" >commands
  [ -s commands ] || { echo "FAILED: no commands found in $page"; failures=$((failures + 1)); }
  while IFS= read -r line <&3; do
    number=$((number + 1))
    expected=$(sed -n 's/.*# exit \([0-9]*\)$/\1/p' <<<"$line")
    shrink=yes
    if [ -n "$expected" ]; then shrink=; else expected=0; fi
    tool=${line%% *}
    if ! (cd tree && PATH=$PWD/../tools:$PATH command -v "$tool" >/dev/null); then
      echo "not run, $tool is not installed: $line"
      continue
    fi
    status=0
    (cd tree && PATH=$PWD/../tools:$PATH SHRINK=$shrink timeout "${GPTBENCH_COMMAND_S:-180}" bash -c "$line" </dev/null) >out 2>err || status=$?
    if [ "$status" != "$expected" ]; then
      echo "FAILED: $page: $line: exit status $status, not $expected"
      cat out err | tail -n 5 | sed 's/^/    /'
      failures=$((failures + 1))
    fi
  done 3<commands
  # A block that is neither run nor marked would go stale unseen.
  awk '/^```(bash|console|shell)?$/ && !inside { inside = 1; kind = $0; first = 1; next }
       /^```/ { inside = 0; next }
       inside && first { first = 0; if (kind == "```bash" && $0 != "# not run by the test") bad = 1
                         if (kind == "```console" || kind == "```shell") bad = 1 }
       END { exit bad }' "$top/$page" || {
    echo "FAILED: $page: a block of commands is neither \`\`\`sh nor \`\`\`bash with '# not run by the test'"
    failures=$((failures + 1))
  }
done
echo "$number commands"
exit $((failures > 0))
