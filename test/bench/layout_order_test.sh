#!/bin/sh
# layout_order_test.sh DRIVER BUILD: runs a few layouts of tiny models and prints how well their order was
# projected; what the figures are means nothing, but tau and regret follow from the printed rows.
set -eu
driver=$1
build=$2
sh "$driver" "$build" --quick --seconds 1 --count 3 --passes 2 >output 2>&1 || { cat output; exit 1; }
fail() { echo "FAILED: $1"; cat output; exit 1; }
[ "$(grep -Ec '^(gpt|llama|small) +dp[12],.* [0-9.e+-]+ +[0-9.e+-]+$' output || true)" = 9 ] || fail "rows"
[ "$(grep -c ' 3 layouts, Kendall tau ' output || true)" = 3 ] || fail "summaries"
# Three rows: tau is (pairs in order - pairs not in order) / 3, regret that of the first row.
awk '/ dp[12],/ { p[++n] = $3; m[n] = $4 }
     n == 3 { for (i = 1; i < 3; ++i) for (j = i + 1; j <= 3; ++j) s += (p[i] - p[j]) * (m[i] - m[j]) > 0 ? 1 : -1
              best = m[1]; for (i = 2; i <= 3; ++i) if (m[i] < best) best = m[i]
              printf "tau %.2f, regret %.1f %%\n", s / 3, 100 * (m[1] / best - 1); n = s = 0 }' output >expected
grep -Eo 'tau [0-9.-]+, regret [0-9.]+ %' output >printed
diff expected printed || fail "tau or regret"
status=0
sh "$driver" "$build" --fast >output 2>&1 || status=$?
[ "$status" = 2 ] || fail "an unknown option: status $status"
