#!/bin/bash
# Files that a run writes: a full disk ends it with status 7 and leaves no part of a file, and links
# under the names that it uses lead it nowhere else.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
deck=$decks/tiny.in
program=$GPTBENCH
export OMPI_MCA_btl=self,tcp  # shared memory of MPI is a file, which the limit below would cut, too

# A disk that is full after $1 KiB of a file, for the ranks alone.
cat >"$decks/limited" <<'END_OF_SCRIPT'
#!/bin/bash
trap '' XFSZ
ulimit -f "$limit_kib"
exec "$program" "$@"
END_OF_SCRIPT
chmod +x "$decks/limited"
export program limit_kib

on_full_disk() {  # on_full_disk KIB FILE RANKS ARGUMENTS...
  limit_kib=$1
  local file=$2
  shift 2
  GPTBENCH=$decks/limited run "$@"
  [ "$status" -eq 7 ] || fail "$limit_kib KiB: status $status instead of 7"
  grep '^gptbench: ' err | grep -Eq -- "/$file: cannot write: .*large" || fail "$limit_kib KiB: no message about $file"
  # The journal of the steps that were made stays, whole files alone.
  local left
  left=$(find "$work" -type f ! -name steps.csv ! -name planned.h5)
  [ -z "$left" ] || fail "$limit_kib KiB: left $left"
}

limit_kib=1000
GPTBENCH=$decks/limited run 1 "$deck"
if [ "$status" -ne 0 ]; then
  cat err
  echo "skipped: MPI itself fails where files have at most $limit_kib KiB"
  exit 77
fi
# 102,000 weights (12 h^2 + 13 h a layer and vocabulary, positions, last norm of 42 h with h = 64) in
# double precision, thrice: 2.5 MB, within the first array's data at 1 KiB, within the second group
# at 1000 KiB.
dump="model.hidden_size=64 model.num_layers=2 output.dump=weights"
# shellcheck disable=SC2086  # words
on_full_disk 1 dump.h5 1 "$deck" $dump
# shellcheck disable=SC2086  # words
on_full_disk 1000 dump.h5 2 "$deck" $dump
on_full_disk 8 planned.h5 1 "$deck"
# Behind the last step the run has its result.
full_at_the_end() { # full_at_the_end KIB FILE RANKS ARGUMENTS...
  limit_kib=$1
  local file=$2
  shift 2
  GPTBENCH=$decks/limited run "$@"
  [ "$status" -eq 7 ] || fail "$limit_kib KiB: status $status instead of 7"
  check_result "$work/output/tiny/result.h5" FAILED
  grep -Eq "reason .*/$file: cannot write: .*large" values || fail "$limit_kib KiB: $(grep reason values)"
  grep -qx 'steps 4' values || fail "$(grep '^steps' values)"
  [ -z "$(find "$work" -name "$file*")" ] || fail "left $(find "$work" -name "$file*")"
}
# shellcheck disable=SC2086  # words
full_at_the_end 2000 dump.h5 2 "$deck" $dump
full_at_the_end 200 trace.json 1 "$deck" output.trace_step=3 batch.global_batch_size=64
# A journal that cannot grow ends no run; its result then finds the disk full.
on_full_disk 400 result.h5 1 "$deck" run.steps=20000 output.log_every=5000

# What a dump holds. Arrays of more than 2^20 elements are written in pieces, here of 65536 rows: a row
# behind the first piece is none of those before it.
if command -v h5dump >/dev/null; then
  run 1 "$deck" output.dump=gradients output.directory=o
  h5dump -n "$work/o/dump.h5" >names
  grep -q 'group */gradients$' names || fail "no gradients in the dump"
  if grep -q weights_ names; then fail "weights in a dump of gradients"; fi
  run 1 "$deck" output.dump=weights output.directory=o model.vocab_size=70000
  h5dump -n "$work/o/dump.h5" >names
  for group in weights_initial gradients weights_final; do
    grep -Eq "dataset +/$group/wte$" names || fail "no $group in the dump"
  done
  for row in 65536 0 4096; do
    h5dump -y -d /weights_initial/wte -s "$row,0" -c 1,16 "$work/o/dump.h5" | sed -n '/DATA {/,/}/p' >"row.$row"
  done
  [ "$(grep -c '[0-9]' row.65536)" -ge 2 ] || fail "no row 65536"
  for row in 0 4096; do
    if cmp -s row.65536 "row.$row"; then fail "row 65536 of the dump is row $row"; fi
  done
else
  not_tested "the content of dumps (h5dump was not found; Debian: hdf5-tools)"
fi

# A folder that cannot be written, from the start or from some moment on: status 7, and what is there stays.
# Permissions do not bind root, who takes a file system of its own.
unset OMPI_MCA_btl
folder=$PWD/read_only
set_writable() { # set_writable yes|no; fails where a file of it is being written
  if [ "$(id -u)" -ne 0 ]; then
    find "$folder" -type d -exec chmod "$([ "$1" = yes ] && echo u+w || echo a-w)" {} +
  else
    mount -o "remount,$([ "$1" = yes ] && echo rw || echo ro)" "$folder" 2>/dev/null
  fi
}
rm -rf "$folder"
mkdir "$folder"
if [ "$(id -u)" -ne 0 ] || mount -t tmpfs -o size=64m tmpfs "$folder" 2>/dev/null; then
  saving=(checkpoint.directory="$folder/ck" checkpoint.every_steps=2 run.resume=auto)
  run 2 "$deck" "${saving[@]}" output.directory="$folder/out"
  [ "$status" -eq 0 ] || fail "status $status"
  contents() { find "$folder" -type f -exec cksum {} + | sort; }
  contents >before
  set_writable no || fail "the folder stays writable"
  for arguments in "output.directory=$folder/out" "output.directory=$folder/other" "checkpoint.directory=$folder/ck2"; do
    refused 7 "$folder/.*(Read-only file system|Permission denied)" 2 "$deck" "$arguments" run.steps=8
  done
  refused 7 "$folder/ck.*(Read-only file system|Permission denied)" 2 "$deck" "${saving[@]}" run.steps=8
  contents | cmp -s - before || fail "files have changed: $(contents | diff - before)"
  set_writable yes

  # From a checkpoint of the run itself on.
  rm -rf "$work" out
  mkdir -p "$work"
  case="a folder that becomes read-only"
  (cd "$work" && exec "$GPTBENCH" "$deck" checkpoint.directory="$folder/ck" checkpoint.every_s=0.5 run.resume=auto \
    run.steps=2000000000 output.log_every=1000000 run.time_limit_s=40) >out 2>err &
  job=$!
  until [ "$(find "$folder/ck" -name '*.manifest' -newer before | wc -l)" -ge 2 ] || ! kill -0 "$job" 2>/dev/null; do sleep 0.1; done
  until set_writable no || ! kill -0 "$job" 2>/dev/null; do sleep 0.01; done
  contents >before
  await_end "$job"
  [ "$status" -eq 7 ] || fail "status $status instead of 7"
  check_result "$work/output/tiny/result.h5" FAILED
  grep -Eq "reason .*$folder/ck/step-[0-9]*.h5: cannot create: (Read-only file system|Permission denied)" values || fail "$(grep reason values)"
  contents | cmp -s - before || fail "files have changed: $(contents | diff - before)"
  set_writable yes
  run 1 "$deck" checkpoint.directory="$folder/ck" run.resume=auto run.duration_s=1
  [ "$status" -eq 0 ] || fail "does not go on: status $status"
  [ "$(id -u)" -ne 0 ] || umount "$folder"
else
  not_tested "read-only folders (root may not mount a file system here)"
fi

# run() of outcomes.sh empties $work, so the links are in a folder of their own.
rm -rf links
mkdir links
echo precious >links/victim
for name in trace.json result.h5.probe dump.h5 result.h5; do ln -s victim "links/$name"; done
run 0 "$deck" output.directory="$PWD/links" output.trace_step=3 output.dump=gradients
[ "$status" -eq 0 ] || fail "status $status"
for name in trace.json dump.h5 result.h5; do
  if [ -L "links/$name" ] || [ ! -s "links/$name" ]; then fail "links/$name is not a new file"; fi
done
[ "$(cat links/victim)" = precious ] || fail "a link was followed"
[ -L links/result.h5.probe ] || fail "a file of the user is gone"
printf "&sweep\n  vary = 'run.seed = 1'\n/\n" | cat "$deck" - >"$decks/sweep.in"
rm -rf swept
mkdir -p swept/tiny
echo precious >swept/victim
ln -s ../victim swept/tiny/output.txt
run 0 --sweep "$decks/sweep.in" output.directory="$PWD/swept"
[ "$status" -eq 0 ] || fail "status $status"
[ "$(cat swept/victim)" = precious ] || fail "a link was followed"
if [ -L swept/tiny/output.txt ] || ! grep -q '^GPTBENCH status=OK' swept/tiny/output.txt; then fail "no output of the row"; fi
# The driver's own file: a link is refused, and named.
rm -f swept/sweep.lock
ln -s victim swept/sweep.lock
run 0 --sweep "$decks/sweep.in" output.directory="$PWD/swept"
[ "$status" -eq 7 ] || fail "status $status"
grep -q 'swept/sweep.lock: cannot be written: a symbolic link' err || fail "$(cat err)"
[ "$(cat swept/victim)" = precious ] || fail "a link was followed"

# What others have written into a shared folder is quoted without what a terminal obeys: the holder of a lock, the
# name of a leftover, a key of a manifest.
harmless() {
  if grep -q "$escape" out err; then fail "a terminal would obey: $(cat -v out err | grep '\^\[')"; fi
}
escape=$(printf '\033')
rm -f swept/sweep.lock
printf 'process 1 on %s[31mhost' "$escape" >swept/sweep.lock
exec 9<swept/sweep.lock
if flock --nonblock 9 2>/dev/null; then
  run 0 --sweep "$decks/sweep.in" output.directory="$PWD/swept"
  [ "$status" -eq 2 ] || fail "status $status"
  grep -q 'another sweep runs here (process 1 on .x1b\[31mhost)' err || fail "$(cat err)"
  harmless
else
  not_tested "a sweep whose lock another process has (no command flock, or no locks here)"
fi
exec 9<&-
rm -rf shared
mkdir shared
: >"shared/step-00000001.h5.partial-${escape}[31m"
run 0 "$deck" checkpoint.directory="$PWD/shared" run.resume=auto
[ "$status" -eq 0 ] || fail "status $status"
grep -q '^Checkpoint passed over: .*/step-00000001.h5.partial-.x1b\[31m is incomplete' out || fail "the leftover is not named"
harmless
printf 'gptbench checkpoint 1\nstep 9\nwritten_s 9999999999\nkey model.family %s[31m\n' "$escape" >shared/step-00000009.manifest
checksum=$(cksum <shared/step-00000009.manifest)
echo "checksum ${checksum%% *}" >>shared/step-00000009.manifest
run 0 "$deck" checkpoint.directory="$PWD/shared" run.resume=auto
[ "$status" -eq 7 ] || fail "status $status"
grep -q 'was saved with model.family = .x1b\[31m (the deck: ' err || fail "$(cat err)"
harmless
finish
