#!/bin/bash
# The documentation stays short: doc/*.md has at most 24,000 words, as `wc -w` counts them, without
# doc/published.md, which is generated. And it is of this version: CITATION.cff and the first entry of
# doc/changes.md name that of CMakeLists.txt, with one date.
set -u
cd "$GPTBENCH_SOURCE_DIR" || exit 1
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

most=24000
pages=$(find doc -name '*.md' -not -path doc/published.md | sort)
# shellcheck disable=SC2086  # one name per word
words=$(cat $pages | wc -w)
echo "$words words of at most $most"
# shellcheck disable=SC2086
[ "$words" -le "$most" ] || fail "too many words; shorten: $(echo; wc -w $pages | sort -rn | head -n 9)"

version=$(sed -n 's/^project(gptbench VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
grep -qx "version: $version" CITATION.cff || fail "CITATION.cff is not of version $version"
[ "$(sed -n 's/^## \([0-9.]*\).*/\1/p' doc/changes.md | head -n 1)" = "$version" ] ||
  fail "doc/changes.md does not begin with version $version"
released=$(sed -n 's/^date-released: //p' CITATION.cff)
[ "$(sed -n 's/^## .*(\(.*\))$/\1/p' doc/changes.md | head -n 1)" = "$released" ] ||
  fail "doc/changes.md does not have the date of CITATION.cff, $released"
exit $((failures > 0))
