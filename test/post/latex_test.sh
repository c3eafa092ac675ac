#!/bin/bash
# latex_test.sh WRITE_MADE_RECORD: LaTeX makes pages of the tables, with the packages that they name, and nothing stands
# out of a page.
set -u
if [ -z "${GPTPOST:-}" ] || [ ! -x "$GPTPOST" ]; then
  echo "skipped: gptpost was not built"
  exit 77
fi
if ! command -v pdflatex > /dev/null || ! kpsewhich rotating.sty > /dev/null; then
  echo "skipped: pdflatex or its package rotating is not here (Debian: texlive-latex-base)"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" "$folder/a" && "$1" "$folder/b" 'a_name & 50% #1 \x {y} ^2 ~' || exit 1
reference=$(dirname "$0")/../reference
failures=0

# pages NAME ARGUMENT ...: of `gptpost table --format latex ARGUMENT ...`.
pages() {
  local name=$1
  shift
  "$GPTPOST" table --format latex "$@" > "$folder/table.tex" || exit 1
  {
    printf '%s\n' '\documentclass{article}'
    sed -n '1s/^% //p' "$folder/table.tex" | grep -o '\\usepackage{[a-z]*}'
    printf '%s\n' '\begin{document}'
    cat "$folder/table.tex"
    printf '%s\n' '\end{document}'
  } > "$folder/$name.tex"
  if ! (cd "$folder" && pdflatex -halt-on-error -interaction=nonstopmode "$name.tex" > "$name.out" 2>&1) ||
    grep -E 'Overfull|too large|LaTeX Warning: Float' "$folder/$name.log"; then
    echo "$name:"
    tail -n 30 "$folder/$name.log"
    failures=$((failures + 1))
  fi
}

for style in native fugaku mpt zero megatron scaling comm checkpoint; do
  pages $style --style $style "$folder/a/result.h5" "$folder/b/result.h5"
done
pages mpt_published --style mpt --published "$reference/mpt_training.csv" "$folder/a/result.h5"
pages fugaku_published --style fugaku --published "$reference/fugaku_124m.csv"
pages zero_published --style zero --published "$reference/zero_8xa100_40gb.csv"
exit $((failures > 0))
