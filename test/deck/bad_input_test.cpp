// Everything a user can get wrong, one by one: one line that says where, what, and what is allowed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "deck/deck.h"
#include "deck/validate.h"

namespace gptbench {
namespace {

// All checks of a run on `ranks` ranks; "accepted" where none fails.
std::string message_of(const std::string& text, const std::vector<std::string>& overrides = {},
                       int64_t ranks = 1) {
  try {
    const Deck deck = parse_deck("a.in", text, overrides);
    validate(deck);
    check_ranks(deck, ranks);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    const std::string message = error.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << "one line: " << message;
    return message;
  }
  return "accepted";
}

void expect_parts(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' in: " << message;
  }
  EXPECT_EQ(message.rfind(parts.at(0), 0), 0u) << "place first: " << message;
}

TEST(BadDeck, NamesKeysAndGroups) {
  expect_parts(message_of("&run\n  step = 5\n/"),
               {"a.in:2:3: ", "unknown key 'step' in &run", "did you mean 'steps'"});
  expect_parts(message_of("&run hidden_size = 5 /"),
               {"a.in:1:6: ", "unknown key 'hidden_size' in &run", "belongs to &model"});
  expect_parts(message_of("&run qwertz = 5 /"), {"a.in:1:6: ", "unknown key", "keys: name, steps"});
  expect_parts(message_of("&modle num_layers=2 /"),
               {"a.in:1:1: ", "unknown group 'modle'", "did you mean 'model'", "&optimizer"});
  expect_parts(message_of("&run steps=5, STEPS=6 /"),
               {"a.in:1:15: ", "run.steps is given twice", "first at a.in:1:6"});
  expect_parts(message_of("&run steps= , steps=6 /"), {"a.in:1:15: ", "given twice"});
  expect_parts(message_of("&parallel offload(2)='optimizer' offload='none','parameters' /"),
               {"a.in:1:34: ", "parallel.offload is given twice", "first at a.in:1:11"});
  expect_parts(message_of("&run / &run /"), {"a.in:1:8: ", "group &run is given twice"});
  expect_parts(message_of("steps = 5"), {"a.in:1:1: ", "no namelist group", "&run, &model"});
}

TEST(BadDeck, Types) {
  expect_parts(message_of("&run steps = 5.5 /"),
               {"a.in:1:14: ", "'5.5' is not an integer", "run.steps takes 1 to 2147483647"});
  expect_parts(message_of("&run steps = 'x' /"), {"a.in:1:14: ", "'x' is not an integer"});
  expect_parts(message_of("&run verify = 1 /"),
               {"a.in:1:15: ", "'1' is not a logical value", ".true. or .false."});
  expect_parts(message_of("&optimizer lr = small /"),
               {"a.in:1:17: ", "'small' is not a real number", "at least 0.0"});
  expect_parts(message_of("&run device = host /"),
               {"a.in:1:15: ", "write 'host'", "'auto', 'host', 'cuda', 'ref'"});
  expect_parts(message_of("&run steps = 5, 6 /"), {"a.in:1:17: ", "'steps' takes one value"});
  expect_parts(message_of("&run steps = 2*5 /"), {"a.in:1:14: ", "takes one value"});
  expect_parts(message_of("&run steps(1) = 5 /"), {"a.in:1:11: ", "no subscript"});
  expect_parts(message_of("&run seed = 99999999999999999999 /"),
               {"a.in:1:13: ", "beyond the range of a 64-bit integer"});
}

TEST(BadDeck, Ranges) {
  expect_parts(message_of("&run steps = 0 /"),
               {"a.in:1:14: ", "run.steps = 0 is not allowed", "allowed: 1 to 2147483647"});
  expect_parts(message_of("&parallel zero_stage = 4 /"), {"a.in:1:24: ", "allowed: 0 to 3"});
  expect_parts(message_of("&model dropout = 1. /"),
               {"a.in:1:18: ", "model.dropout = 1.0 is not allowed", "0.0 to less than 1.0"});
  expect_parts(message_of("&model dropout = -0.1 /"), {"a.in:1:18: ", "allowed: "});
  expect_parts(message_of("&model init_std = 0 /"), {"a.in:1:19: ", "more than 0.0"});
  for (const char* value : {"nan", "inf", "1e999"}) {
    expect_parts(message_of(std::string("&optimizer lr = ") + value + " /"),
                 {"a.in:1:17: ",
                  std::string(value) == "nan" ? "is not allowed (not a number)"
                                              : "is not allowed (too large for a number)",
                  "at least 0.0"});
  }
  expect_parts(message_of("&run device = 'hots' /"),
               {"a.in:1:15: ", "run.device = 'hots' is not allowed", "did you mean 'host'",
                "allowed: 'auto', 'host', 'cuda', 'ref'"});
  expect_parts(message_of("&model preset = 'gpt2-124' /"),
               {"a.in:1:17: ", "did you mean 'gpt2-124m'", "allowed: '', "});
  expect_parts(message_of("&parallel offload = 'optimiser' /"),
               {"a.in:1:21: ", "did you mean 'optimizer'", "allowed: 'none', "});
  expect_parts(message_of("&parallel offload = 'none', 'optimizer' /"),
               {"a.in:1:21: ", "'none' stands alone"});
  expect_parts(message_of("&parallel offload = 'optimizer', 'optimizer' /"),
               {"a.in:1:21: ", "given twice"});
}

TEST(BadDeck, KeysThatDoNotGoTogether) {
  expect_parts(message_of("&run steps = 2 /"),
               {"a.in:1:6: ", "run.warmup_steps = 2", "less than run.steps = 2"});
  expect_parts(message_of("&model\n hidden_size = 100\n num_attention_heads = 12 /"),
               {"a.in:", "model.hidden_size = 100 is not divisible by num_attention_heads = 12",
                "nearest sizes: 96 or 108"});
  expect_parts(message_of("&model hidden_size=4 num_attention_heads=8 /"),
               {"a.in:1:8: ", "nearest sizes: 8"});
  expect_parts(message_of("&model num_kv_heads = 5 /"),
               {"a.in:1:8: ", "does not divide num_attention_heads = 12"});
  expect_parts(message_of("&batch micro_batch_size=4 global_batch_size=3 /"),
               {"a.in:1:8: ", "4 x 1 is more than global_batch_size = 3", "global_batch_size >= 4",
                "micro_batch_size <= 3"});
  expect_parts(message_of("&batch global_batch_size=3 / &parallel data_parallel=4 /"),
               {"a.in:1:8: ", "1 x 4 is more than", "data_parallel <= 3"});
  expect_parts(message_of("&data source='text' /"), {"a.in:1:7: ", "data.path"});
  expect_parts(message_of("&data path='x' /"),
               {"a.in:1:7: ", "without data.source", "'text', 'tokens' or 'megatron'"});
  expect_parts(message_of("&precision compute='fp64' /"), {"a.in:1:12: ", "run.device = 'ref'"});
  expect_parts(message_of("&precision compute='bf16' tf32=T /"),
               {"a.in:1:27: ", "precision.tf32 is of compute = 'fp32'", "tf32 = .false."});
  expect_parts(message_of("&run attention='cudnn' device='ref' /"),
               {"a.in:1:6: ", "run.attention = 'cudnn' needs", "'ref'"});
  expect_parts(message_of("&run comm='nccl' device='host' /"),
               {"a.in:1:6: ", "run.comm = 'nccl' needs", "'host'"});
  expect_parts(message_of("&run device='ref' / &precision compute='bf16' /"),
               {"a.in:1:", "'fp32', 'fp64' or 'fp8'"});
  EXPECT_EQ(message_of("&run device='ref' / &precision compute='fp8' /"), "accepted");
  EXPECT_EQ(message_of("&precision compute='fp8' parameters='fp32' reduce='bf16' /"), "accepted");
  expect_parts(message_of("&precision compute='fp8' reduce='fp16' /"),
               {"a.in:1:26: ", "'fp32' or 'bf16'"});
  expect_parts(message_of("&precision fp8_amax_history=0 /"), {"a.in:1:", "1 to"});
  expect_parts(message_of("&precision fp8_margin=17 /"), {"a.in:1:", "0 to 16"});
  expect_parts(message_of("&precision reduce='fp64' /"),
               {"a.in:1:12: ",
                "has no kernels with precision.compute = 'fp32'; use 'fp32', or compute = 'fp64'"});
  expect_parts(message_of("&run steps=3 / &output trace_step=4 /"),
               {"a.in:1:24: ", "steps 1 to 3"});
  for (const char* key : {"parameters", "reduce", "optimizer_state"}) {
    const std::string bf16 = std::string("&precision ") + key + "='bf16' ";
    expect_parts(message_of(bf16 + "/"),
                 {"a.in:1:12: ", "has no kernels with precision.compute = 'fp32'", "use "});
    EXPECT_EQ(message_of(bf16 + "compute='bf16' /"), "accepted");
  }
  expect_parts(message_of("&precision compute='bf16' reduce='fp16' /"),
               {"a.in:1:27: ", "'fp32' or 'bf16'"});
  expect_parts(message_of("&precision compute='fp64' parameters='fp32' / &run device='ref' /"),
               {"a.in:1:27: ", "'auto' or 'fp64'"});
  EXPECT_EQ(message_of("&precision compute='bf16' parameters='fp32' /"), "accepted");
  EXPECT_EQ(message_of("&precision compute='bf16' parameters='fp32' gather='fp32' /"), "accepted");
  EXPECT_EQ(message_of("&precision compute='fp8' parameters='fp32' gather='bf16' / "
                       "&parallel zero_stage=3 /"),
            "accepted");
  expect_parts(message_of("&precision compute='bf16' parameters='fp32' gather='bf16' / "
                          "&parallel zero_stage=2 /"),
               {"a.in:1:45: ", "'bf16' with precision.parameters = 'fp32' requires",
                "zero_stage = 3 (found 2)", "use parameters = 'bf16'", "or gather = 'auto'"});
  expect_parts(message_of("&precision compute='bf16' gather='fp32' /"),
               {"a.in:1:27: ", "stored parameters ('bf16')", "activations ('bf16')", "use 'auto'"});
  EXPECT_EQ(message_of("&precision compute='bf16' master_weights=F /"), "accepted");
  EXPECT_EQ(message_of("&precision compute='fp16' reduce='fp16' loss_scale=128 /"), "accepted");
  EXPECT_EQ(message_of("&precision compute='fp16' min_loss_scale=0.5 /"), "accepted");
  EXPECT_EQ(message_of("&precision compute='fp16' initial_loss_scale=16 min_loss_scale=16 /"),
            "accepted");
  EXPECT_EQ(message_of("&precision initial_loss_scale=65536 /"), "accepted");  // as in an echo
  expect_parts(message_of("&precision compute='fp16' optimizer_state='bf16' /"),
               {"a.in:1:27: ", "use 'fp32'"});
  expect_parts(
      message_of("&precision compute='bf16' optimizer_state='bf16' / &optimizer beta2=0.999 /"),
      {"a.in:1:63: ", "beta2 = 0.999 changes", "use beta2 <= 0.996"});
  EXPECT_EQ(
      message_of("&precision compute='bf16' optimizer_state='bf16' / &optimizer beta2=0.996 /"),
      "accepted");
  expect_parts(message_of("&precision compute='bf16' loss_scale_window=5 /"),
               {"a.in:1:27: ", "loss_scale_window is of compute = 'fp16'", "leave it out"});
  EXPECT_EQ(message_of("&precision compute='fp16' loss_scale=4 initial_loss_scale=8 "
                       "min_loss_scale=16 /"),
            "accepted");  // a fixed scale starts nowhere else
  expect_parts(message_of("&precision compute='fp16' initial_loss_scale=8 min_loss_scale=16 /"),
               {"a.in:1:", "initial_loss_scale = 8", "is less than precision.min_loss_scale = 16"});
  for (const char* wrong :
       {"loss_scale=-1", "initial_loss_scale=0", "min_loss_scale=0", "loss_scale_growth=0.5",
        "loss_scale_backoff=1", "loss_scale_window=0", "loss_scale_hysteresis=0"})
    expect_parts(message_of(std::string("&precision compute='fp16' ") + wrong + " /"),
                 {"a.in:1:", "allowed: "});
  expect_parts(message_of("&memory checkpoint_every=13 /"),
               {"a.in:1:9: ", "more than model.num_layers = 12"});
  for (const char* name : {"", "a/b", "..", ".x", "-x", "a b", "caf\u00e9"}) {
    expect_parts(message_of(std::string("&run name='") + name + "' /"),
                 {"a.in:1:6: ", "cannot name a directory", "letters, digits"});
  }
  EXPECT_EQ(message_of("&run name='A-1_b.c' /"), "accepted");
  expect_parts(message_of("&parallel offload='none','optimizer' /"),
               {"a.in:1:19: ", "'none' stands alone"});
}

// The last values that are allowed.
TEST(BadDeck, BoundsThemselvesAreAllowed) {
  for (const std::string& text :
       {std::string("&run steps=2147483647 /"), "&run name='" + std::string(100, 'x') + "' /",
        std::string("&run steps=3 / &output trace_step=3 /"),
        std::string("&run steps=3, warmup_steps=2 /"), std::string("&memory checkpoint_every=12 /"),
        std::string("&model hidden_size=16777200 vocab_size=2147483647 /")})
    EXPECT_EQ(message_of(text), "accepted") << text;
  const std::string batch = "&batch micro_batch_size=4, global_batch_size=8 / ";
  EXPECT_EQ(message_of(batch + "&parallel data_parallel=2 /", {}, 2), "accepted");
  expect_parts(message_of("&run name='" + std::string(101, 'x') + "' /"),
               {"a.in:1:6: ", "1 to 100 letters"});
}

TEST(BadDeck, OverflowOfProducts) {
  expect_parts(message_of("&model hidden_size=2147483640 /"),
               {"a.in:1:8: ", "the number of parameters", "64-bit"});
  expect_parts(message_of("&model num_layers=100000 hidden_size=12000000 /"),
               {"a.in:1:8: ", "the number of parameters"});
  // With the padding of the vocabulary only.
  expect_parts(message_of("&model hidden_size=16777200 vocab_size=2147483647 "
                          "vocab_multiple=2147483647 /"),
               {"a.in:1:8: ", "the number of parameters"});
  expect_parts(message_of("&batch micro_batch_size=2147483647 / &model seq_length=2000000000 /"),
               {"a.in:1:8: ", "the memory of activations"});
  expect_parts(message_of("&batch global_batch_size=2147483647 / &run steps=2147483647 /"),
               {"a.in:1:8: ", "the number of tokens"});
  expect_parts(message_of("&parallel data_parallel=2147483647 tensor_parallel=2147483647 "
                          "pipeline_parallel=2147483647 /"),
               {"a.in:1:", "the number of ranks"});
}

TEST(BadDeck, DecompositionsThatCannotWork) {
  const auto refused = [](const std::string& keys, int64_t ranks, std::vector<std::string> parts) {
    parts.insert(parts.begin(), "a.in:1:");
    expect_parts(message_of(keys, {}, ranks), parts);
  };
  refused("&parallel tensor_parallel=5 /", 5,
          {"does not divide model.num_attention_heads = 12", "use 4 or 6"});
  refused("&parallel sequence_parallel=T /", 1, {"tensor_parallel >= 2"});
  refused("&model seq_length=6 / &parallel tensor_parallel=4 sequence_parallel=T /", 4,
          {"does not divide model.seq_length = 6"});
  // What the advice names is accepted, too: it divides heads and what positions are left.
  refused(
      "&model seq_length=36 / &parallel tensor_parallel=4 context_parallel=2 sequence_parallel=T /",
      8, {"the 18 positions", "use 3 or 6, or"});
  refused(
      "&model seq_length=20 / &parallel tensor_parallel=4 context_parallel=2 sequence_parallel=T /",
      8, {"the 10 positions", "use 2, or"});
  refused("&parallel context_parallel=3 /", 3,
          {"6 pieces", "model.seq_length = 1024", "context_parallel = 2 or 4",
           "seq_length = 1020 or 1026"});
  refused("&model seq_length=5 / &parallel context_parallel=4 /", 4,
          {"8 pieces", "context_parallel = 1, or seq_length = 8"});
  refused(
      "&model seq_length=12 / &parallel context_parallel=2 tensor_parallel=4 "
      "sequence_parallel=T /",
      8, {"the 6 positions", "use 3 or 6", ".false."});
  const std::string parts = "&memory partition_checkpoints=T activation_checkpointing=";
  refused(parts + "'full' /", 1, {"divides activations", "tensor_parallel >= 2"});
  refused(parts + "'selective' / &parallel tensor_parallel=2 /", 2,
          {"activation_checkpointing = 'full'", "found 'selective'"});
  refused(parts + "'full' / &parallel tensor_parallel=2 sequence_parallel=T /", 2,
          {"sequence_parallel already divides", "partition_checkpoints = .false."});
  refused(parts + "'full' / &parallel tensor_parallel=4 / &model seq_length=6 /", 4,
          {"does not divide model.seq_length = 6"});
  refused("&parallel offload_update='host' /", 1,
          {"requires parallel.offload = 'optimizer'", "offload_update = 'device'"});
  refused("&parallel offload='optimizer' offload_target='file' offload_update='host' /", 1,
          {"in host memory", "found offload_target = 'file'"});
  refused("&parallel pipeline_parallel=13 /", 13,
          {"more than model.num_layers = 12", "at most 12"});
  refused("&parallel pipeline_parallel=4 stage_layers=3,3,3 /", 4,
          {"has 3 values for pipeline_parallel x virtual_stages = 4", "use 3, 3, 3, 3"});
  refused(
      "&parallel pipeline_parallel=2 virtual_stages=2 pipeline_schedule='interleaved' "
      "stage_layers=6,6 /",
      2, {"has 2 values for pipeline_parallel x virtual_stages = 4", "use 3, 3, 3, 3"});
  refused("&parallel pipeline_parallel=4 stage_layers=3,3,3,2 /", 4,
          {"adds up to 11 of model.num_layers = 12", "use 3, 3, 3, 3"});
  refused("&parallel pipeline_parallel=4 stage_layers=6,0,6,0 /", 4,
          {"leaves virtual stage 1 without layers", "use 3, 3, 3, 3"});
  refused("&parallel pipeline_parallel=2 stage_layers=12 /", 2, {"has 1 value for"});
  refused("&parallel stage_layers=6,6 /", 1, {"has 2 values", "use 12, or none"});
  refused("&parallel pipeline_parallel=2 stage_layers(2)=12 /", 2,
          {"stage_layers(1) is not given, while a later element is"});
  refused("&parallel pipeline_parallel=2 stage_layers=13,-1 /", 2,
          {"stage_layers = -1 is not allowed", "up to 256 values, 0 to"});
  EXPECT_EQ(message_of("&parallel pipeline_parallel=4 stage_layers=0,6,6,0 /", {}, 4), "accepted");
  refused("&run cuda_graph='true' / &parallel pipeline_parallel=2 /", 2,
          {"run.cuda_graph = 'true' does not go with parallel.pipeline_parallel = 2"});
  refused("&parallel virtual_stages=2 /", 1, {"needs pipeline_schedule = 'interleaved'"});
  refused("&parallel pipeline_parallel=2 pipeline_schedule='interleaved' /", 2,
          {"virtual_stages >= 2"});
  refused("&parallel pipeline_parallel=4 virtual_stages=4 pipeline_schedule='interleaved' /", 4,
          {"4 x 4 is more than model.num_layers = 12", "virtual_stages <= 3"});
  refused("&parallel pipeline_parallel=8 virtual_stages=2 pipeline_schedule='interleaved' /", 8,
          {"8 x 2 is more than", "use pipeline_schedule = '1f1b' and virtual_stages = 1"});
  refused("&parallel pipeline_parallel=2 pipeline_schedule='zero_bubble' zero_stage=2 /", 2,
          {"zero_stage <= 1 with run.deterministic = .false., or '1f1b'"});
  refused(
      "&parallel pipeline_parallel=2 pipeline_schedule='zero_bubble' /"
      " &memory activation_checkpointing='full' /",
      2, {"'full' does not keep", "use 'selective' or 'none', or '1f1b'"});
  refused("&parallel zero_stage=1 zero_group=3 / &batch global_batch_size=4 /", 4,
          {"zero_group = 3 does not divide data x context = 4", "use 2 or 4"});
  // Ranks of the context axis hold shards as those of the data axis do.
  refused("&parallel context_parallel=2 zero_stage=1 zero_group=3 / &batch global_batch_size=4 /",
          8, {"zero_group = 3 does not divide data x context = 8", "use 2 or 4"});
  EXPECT_EQ(message_of("&parallel context_parallel=2 zero_stage=1 zero_group=8 /"
                       " &batch global_batch_size=4 /",
                       {}, 8),
            "accepted");
  refused("&parallel offload='parameters' zero_stage=2 /", 2, {"zero_stage = 3 or 0"});
}

TEST(BadDeck, KeysThatAFamilyDoesNotHave) {
  const auto refused = [](const std::string& keys, std::vector<std::string> parts) {
    parts.insert(parts.begin(), "a.in:1:");
    expect_parts(message_of("&model " + keys + " /"), parts);
  };
  refused("position_embedding='alibi'", {"'alibi' is not one of family = 'gpt'; use 'learned'"});
  refused("family='mpt' position_embedding='rotary'", {"use 'learned' or 'alibi'"});
  refused("family='llama' position_embedding='learned'", {"use 'rotary'"});
  refused("no_bias=T", {"no_bias = .true. is not one of family = 'gpt'", "use family = 'mpt'"});
  refused("rotary_theta=500", {"no meaning with position_embedding = 'learned'"});
  refused("family='llama' rotary_theta=0", {"model.rotary_theta"});
  refused("family='llama' hidden_size=12 num_attention_heads=4",
          {"the head size", "= 3 must be even"});
  refused("family='bert' seq_length=7", {"too short", "at least 8"});
  refused("family='bert' vocab_size=5", {"no room", "at least 8"});
  refused("family='bert' no_bias=T", {"not one of family = 'bert'"});
  expect_parts(message_of("&model family='bert' / &parallel context_parallel=2 /", {}, 2),
               {"a.in:1:", "context_parallel > 1 is not for family = 'bert'", "sequence_parallel"});
  expect_parts(message_of("&data short_seq_prob=0.1 /"),
               {"a.in:1:", "short_seq_prob = 0.1 is of family = 'bert', the family is 'gpt'",
                "need no padding; use 0"});
  for (const char* outside : {"-0.1", "1.5"})
    expect_parts(
        message_of("&model family='bert' / &data short_seq_prob=" + std::string(outside) + " /"),
        {"a.in:1:", "data.short_seq_prob", "0.0 to 1.0"});
  EXPECT_EQ(message_of("&model family='bert' / &data short_seq_prob=1 /"), "accepted");
  EXPECT_EQ(message_of("&model preset='llama-8b' rotary_theta=1e6 /"), "accepted");
  EXPECT_EQ(message_of("&model family='mpt' position_embedding='alibi' no_bias=T /"), "accepted");
}

// Tensor parallelism divides key/value heads; more ranks than heads are refused as well.
TEST(BadDeck, GroupedHeadsAndTensorParallelism) {
  const auto message = [](int64_t tp) {
    return message_of(
        "&model preset='llama-70b' / &parallel tensor_parallel=" + std::to_string(tp) + " /", {},
        tp);
  };
  EXPECT_EQ(message(8), "accepted");
  expect_parts(
      message(16),
      {"a.in:1:39: ", "tensor_parallel = 16 does not divide model.num_kv_heads = 8", "use 8"});
  expect_parts(message(5), {"a.in:1:39: ", "does not divide"});
  // The advice holds for heads and for key/value heads.
  expect_parts(message_of("&model family='llama' num_attention_heads=6 num_kv_heads=2 / "
                          "&parallel tensor_parallel=4 /",
                          {}, 4),
               {"a.in:1:72: ", "does not divide model.num_attention_heads = 6; use 2"});
}

TEST(BadDeck, RanksThatDoNotFit) {
  expect_parts(message_of("&parallel data_parallel=3 /", {}, 4),
               {"a.in:1:11: ", "data_parallel = 3 does not fit 4 ranks", "start 3 ranks",
                "data_parallel = 4 or 0"});
  expect_parts(message_of("&batch global_batch_size=6 micro_batch_size=2 /", {}, 4),
               {"a.in:1:28: ", "2 x 4 is more than global_batch_size = 6", "global_batch_size >= 8",
                "micro_batch_size <= 1", "at most 3 ranks"});
  expect_parts(message_of("&batch global_batch_size=2 /", {}, 4),
               {"a.in:1:8: ", "1 x 4 is more than global_batch_size = 2",
                "use global_batch_size >= 4, or at most 2 ranks"});
  const Deck deck = parse_deck("a.in", "&parallel tensor_parallel=2 pipeline_parallel=2 /", {});
  EXPECT_NO_THROW(check_ranks(deck, 8));
  EXPECT_EQ(resolve(deck, 8).parallel.data_parallel, 2);
  try {
    check_ranks(deck, 6);
    FAIL();
  } catch (const Error& error) {
    expect_parts(error.what(), {"a.in:1:11: ", "6 ranks cannot hold replicas",
                                "2 x 2 x 1 = 4 ranks", "start 4 or 8 ranks"});
  }
}

TEST(BadCommandLine, NamesTheSetting) {
  const auto refused = [](const std::string& setting, std::vector<std::string> parts) {
    parts.insert(parts.begin(), "command line: " + setting + ": ");
    expect_parts(message_of("&run /", {"run.seed=3", setting}), parts);
  };
  refused("run.steps", {"group.key=value"});
  refused("steps=5", {"group.key=value"});
  refused("--steps=5", {"group.key=value"});
  refused("run.step=5", {"did you mean 'steps'"});
  refused("rnu.steps=5", {"unknown group 'rnu'", "did you mean 'run'"});
  refused("run.steps=five", {"'five' is not an integer"});
  refused("run.steps=", {"has no value", "1 to 2147483647"});
  refused("run.steps=5 6", {"takes one value"});
  refused("run.steps=5 /", {"unexpected '/'"});
  refused("run.seed=4", {"run.seed is given twice", "command line: run.seed=3"});
  refused("run.device=gpu", {"allowed: 'auto'"});
  refused("run.warmup_steps=10", {"run.steps = 10"});
  refused("precision.loss_scale=8", {"is of compute = 'fp16'"});
  refused("data.path='a", {"not closed"});
  // As far as it is one line, and short.
  expect_parts(message_of("&run /", {"data.path=a\nb"}),
               {"command line: data.path=a...: ", "line end"});
  expect_parts(message_of("&run /", {std::string("data.path=a\0b", 13)}),
               {"command line: data.path=a...: ", "NUL"});
  expect_parts(message_of("&run /", {"data.paht=" + std::string(1000, 'a')}),
               {"command line: data.paht=" + std::string(50, 'a') + "...: unknown key"});
}

class BadFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("gptbench_bad_file_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string message(const std::string& file) const {
    try {
      read_deck_text(file);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::usage);
      return error.what();
    }
    return "accepted";
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(BadFile, MissingDirectoryEmptyLarge) {
  const std::string missing = path("missing.in");
  expect_parts(message(missing), {missing + ": ", "no such file"});
  expect_parts(message(path("")), {path("") + ": ", "is a directory"});

  std::ofstream(path("empty.in"));
  expect_parts(message(path("empty.in")), {path("empty.in") + ": ", "is empty", "&run"});
  std::ofstream(path("blank.in")) << " \n\n";
  expect_parts(message(path("blank.in")), {path("blank.in") + ": ", "is empty"});

  // 100 MB with no blocks behind them.
  std::ofstream(path("large.in")) << "&run /\n";
  std::filesystem::resize_file(path("large.in"), 100 * 1000 * 1000);
  expect_parts(message(path("large.in")),
               {path("large.in") + ": ", "too large", "at most 1.0 MiB"});
  for (const std::string device : {"/dev/zero", "/dev/null"})
    expect_parts(message(device), {device + ": ", "is not a regular file", "/dev/stdin"});
}

TEST_F(BadFile, LargestAllowed) {
  const std::string file = path("just.in");
  std::ofstream(file) << "&run /" << std::string(max_deck_bytes - 6, '\n');
  EXPECT_EQ(message(file), "accepted");
  std::ofstream(file, std::ios::app) << "\n";
  expect_parts(message(file), {file + ": ", "too large"});
}

TEST_F(BadFile, ReadDeckDoesEveryCheck) {
  const std::string file = path("a.in");
  std::ofstream(file) << "&run\n  steps = 20\n/\n";
  EXPECT_EQ(read_deck(file, {"run.seed=5"}).config.run.seed, 5);
  EXPECT_THROW(read_deck(file, {"run.warmup_steps=20"}), Error);
  EXPECT_THROW(read_deck(file, {"precision.loss_scale=8"}), Error);
}

}  // namespace
}  // namespace gptbench
