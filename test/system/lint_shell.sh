#!/bin/sh
# lint_shell.sh TREE: shellcheck of every shell script of the project.
set -eu
cd "$1"
if ! command -v shellcheck >/dev/null 2>&1; then
  echo "skipped: shellcheck was not found (apt-get install shellcheck)"
  exit 77
fi
find . -path ./build -prune -o -path ./output -prune -o -path ./.git -prune -o \
  '(' -name '*.sh' -o -name '*.slurm' -o -path './.ci/run' -o -path './jobscripts/*' ')' -type f \
  ! -name '*.md' -print0 | xargs -0 -r shellcheck --external-sources --source-path=SCRIPTDIR
