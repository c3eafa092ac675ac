#!/bin/bash
# Bad input: one line that says what is wrong and what to do, the right exit status, nothing written.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
deck=$decks/tiny.in

# The file itself.
refused 2 'no such file' 0 "$decks/missing.in"
refused 2 'is a directory' 0 "$decks"
mkfifo "$decks/fifo"
for mode in --check --plan --sweep; do refused 2 'fifo: is not a regular file' 0 "$mode" "$decks/fifo"; done
refused 2 'fifo: is not a regular file' 2 "$decks/fifo"
: >"$decks/empty.in"
refused 2 'empty' 0 "$decks/empty.in"
truncate -s 100M "$decks/large.in"
refused 2 'large.in: .*(large|more than|at most)' 0 "$decks/large.in"
printf '&run\n  name = "a\0b"\n/\n' >"$decks/nul.in"
refused 2 'nul.in:2:[0-9]+: ' 0 "$decks/nul.in"
printf '\0\0\0\0' >"$decks/binary.in"
refused 2 'binary.in:1:1: ' 0 "$decks/binary.in"

# Its grammar: place by line and column.
bad() {  # bad NAME PATTERN TEXT
  printf '%b' "$3" >"$decks/$1.in"
  refused 2 "$1.in:[0-9]+:[0-9]+: .*$2" 0 "$decks/$1.in"
}
bad group_open 'group &run is not ended' '&run\n  steps = 3\n'
bad string_open 'string is not closed' "&run\n  name = 'abc\n/\n"
bad key_unknown "did you mean 'num_layers'" '&model\n  num_layer = 3\n/\n'
bad group_unknown "did you mean.*&model" '&modle\n  num_layers = 3\n/\n'
bad key_twice 'twice|again|already' '&run\n  steps = 3\n  steps = 4\n/\n'
bad group_twice 'twice|again|already' '&run\n/\n&run\n/\n'
bad integer_type 'integer' "&run\n  steps = 'many'\n/\n"
bad real_for_integer 'integer' '&run\n  steps = 1.5\n/\n'
bad logical_type 'true' '&run\n  verify = 3\n/\n'
bad string_type "'3' is not a string: write '3'" '&run\n  name = 3\n/\n'
bad range '1 to' '&run\n  steps = 0\n/\n'
bad integer_overflow 'beyond the range of a 64-bit integer; run.steps takes 1 to 2147483647' '&run\n  steps = 99999999999999999999\n/\n'
bad choice "'fp32'" "&precision\n  compute = 'fp31'\n/\n"
bad too_many "'steps' takes one value" '&run\n  steps = 3, 4\n/\n'
bad outside 'no namelist group found; groups: &run, &model' 'steps = 3\n'

# Keys that do not go together, from deck and command line alike.
refused 2 'not divisible by num_attention_heads = 2.*16 or 18' 0 "$deck" model.hidden_size=17
refused 2 'range of 64-bit integers' 0 "$deck" model.hidden_size=2000000000
refused 2 'range of 64-bit integers' 0 "$deck" batch.micro_batch_size=2147483647 model.seq_length=2147483647
refused 2 'leaves no step to time' 0 "$deck" run.steps=1
refused 2 'more than global_batch_size = 3.*global_batch_size >= 4' 0 "$deck" batch.micro_batch_size=4 batch.global_batch_size=3
refused 2 "needs run.device = 'ref'" 0 "$deck" precision.compute=fp64
refused 2 "loss_scale is of compute = 'fp16'" 0 "$deck" precision.loss_scale=8
refused 2 "run.comm = 'nccl' needs" 0 "$deck" run.comm=nccl run.device=host
refused 2 'context_parallel = 3 cuts each sequence' 0 "$deck" parallel.context_parallel=3
refused 2 'unknown key' 0 "$deck" run.step=3
refused 2 "command line: run.steps=x: " 0 "$deck" run.steps=x
refused 2 "command line: steps=3: 'steps=3' is not of the form group.key=value" 0 "$deck" steps=3
refused 2 "command line: run.steps: 'run.steps' is not of the form group.key=value" 0 "$deck" run.steps

# A launcher that the MPI library does not understand: the first of its processes speaks.
export PMI_SIZE=2 PMI_RANK=0
refused 2 'launcher started 2 processes \(PMI_SIZE\), but .*MPI.* world of 1 rank.*--mpi' 0 "$deck"
PMI_RANK=1
run 0 "$deck"
[ "$status" -eq 2 ] || fail "a second world of its own: status $status"
[ ! -s err ] || fail "a second world of its own spoke"
unset PMI_SIZE PMI_RANK

# The command line.
refused 2 'no deck' 0
refused 2 'unknown option --plam, did you mean --plan' 0 --plam "$deck"
refused 2 'model.preset=gpt2-124m: no such file; the path of a deck comes before group.key=value' 0 model.preset=gpt2-124m
refused 2 '--ranks requires a number' 0 --plan "$deck" --ranks
refused 2 '--ranks 0: allowed is a number from 1 to 1000000000' 0 --plan "$deck" --ranks 0
refused 2 '--ranks 3x: allowed is' 0 --plan "$deck" --ranks 3x
refused 2 '--ranks 1000000001: allowed is' 0 --plan "$deck" --ranks 1000000001
refused 2 '--ranks requires --plan' 0 --check "$deck" --ranks 2
refused 2 '--operations requires --plan' 0 --check "$deck" --operations
refused 2 '--markdown requires --keys' 0 --markdown --check "$deck"
refused 2 'only one of' 0 --plan --check "$deck"
refused 2 '--project requires --machine M, --software S and --ranks N' 0 --project "$deck" --machine h100
refused 2 '--machine and --software require --project or --search' 0 --plan "$deck" --machine h100
refused 2 '--machine requires a value' 0 --project "$deck" --machine
refused 2 '--tokens 3x: allowed is a number from 1 to 1e18' 0 --project "$deck" --tokens 3x
refused 2 "unknown machine 'b100'; known: a100-40, " 0 --project "$deck" --machine b100 --software fsdp --ranks 1
refused 2 "unknown software 'jax'; known: deepspeed, " 0 --project "$deck" --machine h100 --software jax --ranks 1
refused 2 'does not fit 4 ranks' 0 --project "$deck" --machine h100 --software fsdp --ranks 4 parallel.data_parallel=3
# Planned rows of the published table that contradict themselves.
rows=$GPTBENCH_SOURCE_DIR/input/fugaku
refused 2 'data_parallel = 64 does not fit 64 ranks' 0 --plan "$rows/fugaku-1024-none-64-tp2-mbs1-6.144-row24.in" --ranks 64
refused 2 'data_parallel = 512 does not fit 1024 ranks' 0 --plan "$rows/fugaku-1024-none-1024-tp1-mbs2-6.144-row28.in" --ranks 1024
refused 2 'more than global_batch_size = 1024' 0 --plan "$rows/fugaku-1024-none-2048-tp2-mbs2-6.144-row30.in" --ranks 2048

refused 2 'no group &sweep' 0 --sweep "$deck"
refused 2 'no deck given' 0 --sweep --list
refused 2 '--list requires --sweep' 0 --list "$deck"
refused 2 '--write-decks requires --sweep' 0 --plan "$deck" --write-decks there
refused 2 'only one of' 0 --sweep "$deck" --list --write-decks there
refused 2 'requires a directory' 0 --sweep "$deck" --write-decks
refused 2 'does not fit a 64-bit integer; use smaller sizes' 0 --plan "$deck" --ranks 2 model.num_layers=2 model.seq_length=2147483647 batch.global_batch_size=100000000 parallel.pipeline_parallel=2 parallel.pipeline_schedule=gpipe
refused 2 'does not fit 4 ranks' 0 --plan "$deck" --ranks 4 parallel.data_parallel=3

# Data and output: before anything is computed.
refused 7 'output directory' 0 "$deck" output.directory="$deck/sub"
refused 7 'missing.txt' 0 "$deck" data.source=text data.path="$decks/missing.txt"
refused 7 'data file .* is a directory; give the path of a file' 0 "$deck" data.source=text data.path="$decks"
refused 7 'empty.in' 0 "$deck" data.source=text data.path="$decks/empty.in"
refused 7 'tiny.in' 0 "$deck" data.source=tokens data.path="$deck"
refused 7 'missing' 0 "$deck" data.source=megatron data.path="$decks/missing"
refused 2 'data.path' 0 "$deck" data.source=tokens

# Where it could hang: the same on two ranks, of which one speaks.
refused 2 'no such file' 2 "$decks/missing.in"
sed 's/^&model/\&batch\n  micro_batch_size = 2\n  global_batch_size = 3\n\/\n&/' "$deck" >"$decks/batch.in"
refused 2 'batch.in:[0-9]+:[0-9]+: micro_batch_size x data_parallel = 2 x 2 is more than' 2 "$decks/batch.in"
refused 2 'data_parallel = 3 does not fit 2 ranks' 2 "$deck" parallel.data_parallel=3
refused 2 'unknown key' 2 "$deck" run.step=3
refused 7 'output directory' 2 "$deck" output.directory="$deck/sub"
refused 7 'missing.txt' 2 "$deck" data.source=text data.path="$decks/missing.txt"

# Nodes whose disks hold other files under the same name.
cat >"$decks/on_nodes" <<'END_OF_SCRIPT'
#!/bin/sh
cd "$nodes/${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" && exec "$program" "$@"
END_OF_SCRIPT
chmod +x "$decks/on_nodes"
export program=$GPTBENCH nodes=$PWD/nodes
mkdir -p nodes/0 nodes/1
for rank in 0 1; do printf '%*s' $((100 + rank)) '' >"nodes/$rank/text.txt"; done
GPTBENCH=$decks/on_nodes refused 7 'rank 1 on .* finds text file text.txt, 101 bytes.*, rank 0 finds text file text.txt, 100 bytes' 2 \
  "$deck" data.source=text data.path=text.txt model.vocab_size=256

# Rank 0 alone reads an index of Megatron-LM whole: of three sequences of 8 tokens, where one of two nodes has
# the second in another place.
number() { # number VALUE BYTES: little-endian, below 256
  printf '%b' "\\0$(printf '%o' "$1")"
  head -c $(($2 - 1)) /dev/zero
}
index() { # index PLACE
  printf 'MMIDIDX'
  head -c 2 /dev/zero
  number 1 8 # version
  number 1 1 # uint8
  number 3 8
  number 2 8
  for _ in 1 2 3; do number 8 4; done
  for place in 0 "$1" 16; do number "$place" 8; done
  for boundary in 0 3; do number "$boundary" 8; done
}
for ((token = 1; token <= 24; ++token)); do number "$token" 1; done >nodes/0/megatron.bin
cp nodes/0/megatron.bin nodes/1
index 9 >nodes/0/megatron.idx
index 8 >nodes/1/megatron.idx
GPTBENCH=$decks/on_nodes refused 7 "megatron.idx' is damaged: sequence 1 has length 8 at byte 9" 2 \
  "$deck" data.source=megatron data.path=megatron
index 8 >nodes/0/megatron.idx
index 9 >nodes/1/megatron.idx
GPTBENCH=$decks/on_nodes run 2 "$deck" data.source=megatron data.path=megatron output.directory="$work/output"
[ "$status" -eq 0 ] || fail "status $status: rank 1 reads all of an index"
finish
