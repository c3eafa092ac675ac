#!/bin/bash
# The recipes of doc/architecture.md against the tree. Every path exists. Where a recipe names
# an example, each path has a file that speaks of it; where it is said to be complete, no other file
# of src/ and cuda/ does.
set -u
cd "$GPTBENCH_SOURCE_DIR" || exit 1
shopt -s nullglob
failures=0
followed=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# shellcheck disable=SC2016  # quotes of Markdown
quoted() { grep -oE '`[^`]+`' <<<"$1" | tr -d '`'; }

while IFS='|' read -r _ task example places _; do
  mapfile -t examples < <(quoted "$example")
  mapfile -t paths < <(quoted "$places" | grep -E '^(src|cuda|test)/[^ ]+$')
  allowed=()
  for path in "${paths[@]}"; do
    # shellcheck disable=SC2206  # a pattern
    files=($path)
    [ ${#files[@]} -gt 0 ] || fail "recipe for$task: nothing matches $path"
    allowed+=("${files[@]}")
    [ ${#examples[@]} -gt 0 ] || continue
    grep -rqwF "${examples[@]/#/-e}" -- "${files[@]}" ||
      fail "recipe for$task: $path does not speak of ${examples[*]}"
  done
  if [ ${#examples[@]} -eq 0 ]; then continue; fi
  followed=$((followed + 1))
  [[ $example == *complete* ]] || continue
  while IFS= read -r file; do
    for path in "${allowed[@]}"; do
      if [[ $file == "$path" || $file == "$path"/* ]]; then continue 2; fi
    done
    fail "recipe for$task: it leaves out $file, which speaks of ${examples[*]}"
  done < <(grep -rlwF "${examples[@]/#/-e}" src cuda)
done < <(awk '/^## Recipes/ { here = 1; next } /^## / { here = 0 } here && /^\|/ && ++row > 2' doc/architecture.md)
echo "$followed recipes followed"
[ "$followed" -ge 8 ] || fail "fewer than 8 recipes have an example"
exit $((failures > 0))
