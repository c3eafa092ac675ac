#!/bin/bash
# Relative links of every Markdown page: the file exists, and the heading where one is named.
set -u
cd "$GPTBENCH_SOURCE_DIR" || exit 1
pages=$(find . -name '*.md' -not -path './build*' -not -path './output/*' -not -path './.*' | sort)
failures=0
links=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# Headings as anchors: lower case, punctuation dropped, blanks to hyphens.
anchors() {
  awk '/^```/ { code = !code } !code && /^#+ / { sub(/^#+ +/, ""); print }' "$1" |
    tr '[:upper:]' '[:lower:]' | sed -e 's/[^a-z0-9 _-]//g' -e 's/ /-/g'
}

for page in $pages; do
  while IFS= read -r link; do
    case $link in
      '' | *://* | mailto:*) continue ;;
    esac
    links=$((links + 1))
    file=${link%%#*}
    target=$page
    if [ -n "$file" ]; then target=$(dirname "$page")/$file; fi
    if [ ! -e "$target" ]; then
      fail "$page: ($link) does not exist"
      continue
    fi
    case $link in
      *'#'*) anchors "$target" | grep -qxF -- "${link#*#}" || fail "$page: ($link): no such heading" ;;
    esac
  done < <(awk '/^```/ { code = !code } !code' "$page" | grep -oE '\]\([^) ]+\)' | sed -e 's/^](//' -e 's/)$//')
done
echo "$links links"
[ "$links" -gt 0 ] || fail "no links found"
exit $((failures > 0))
