#!/bin/bash
# report_test.sh WRITE_MADE_RECORD [browser]: reports of one run, of three, one of them with a
# hostile name and a trace, and of ten, of which that is the last; checked by report_test.py.
set -eu
here=$(dirname "$0")
if [ -z "${GPTPOST:-}" ] || [ ! -x "$GPTPOST" ]; then
  echo "skipped: gptpost was not built"
  exit 77
fi
# shellcheck disable=SC2016
name='<img src=x onerror=alert(1)> "a" '\''b'\'' -- ]]> \input{x} & $(touch x) é'
"$1" one
"$1" two "$name"$'\033[2J'
"$1" three
cat >two/trace.json <<'END'
{"displayTimeUnit":"ms","traceEvents":[
{"ph":"M","name":"process_name","pid":0,"args":{"name":"rank 0 (tensor 0, context 0, pipeline 0, data 0)"}},
{"ph":"X","name":"linear","cat":"linear","pid":0,"tid":0,"ts":10,"dur":30,"args":{"program":"forward</svg>","micro_batch":0}},
{"ph":"X","name":"<script>","cat":"linear","pid":0,"tid":3,"ts":50,"dur":30,"args":{"program":"x","micro_batch":0,"bytes":9}}
]}
END
"$GPTPOST" report -o one.html one/result.h5
"$GPTPOST" report -o two.html two/result.h5
"$GPTPOST" report -o three.html one/result.h5 two/result.h5 three/result.h5
"$GPTPOST" report -o ten.html {one,three}/result.h5{,,,} three/result.h5 two/result.h5
if "$GPTPOST" report -o none/one.html one/result.h5 2>err; then
  echo "a report that could not be written went unnoticed"
  exit 1
fi
GPTBENCH_TEST_NAME=$name python3 "$here/report_test.py" "${2:-static}" one.html two.html three.html ten.html
