#include "made_runs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "deck/deck.h"
#include "deck/validate.h"

namespace gptbench {

Record scaled(int64_t ranks, double sec_per_it, int64_t zero_stage) {
  Record r = made_record();
  Summary& s = r.summary;
  s.world_size = s.ranks_per_node = ranks;
  s.rate.sec_per_it = sec_per_it;
  s.rate.samples_per_s = 8.0 / sec_per_it;
  s.rate.sec_per_it_min = 0.95 * sec_per_it;
  s.rate.sec_per_it_max = 1.1 * sec_per_it;
  s.rate.tokens_per_s = static_cast<double>(s.tokens_per_step) / sec_per_it;
  s.flops.mfu = 16.0 / sec_per_it / static_cast<double>(ranks);
  s.peak_memory_bytes = s.device.memory_used_bytes = 2.5e9 / static_cast<double>(zero_stage + 1);
  s.device.memory_bytes = 6e9;
  set_key(r, "parallel", "data_parallel", ranks);
  set_key(r, "parallel", "zero_stage", zero_stage);
  r.steps.loss = {10.98, 10.5 - 0.01 * static_cast<double>(zero_stage), 10.1, 9.75};
  return r;
}

std::vector<Record> study() {
  std::vector<Record> records = {scaled(1, 32.0, 0), scaled(2, 17.0, 0), scaled(2, 17.5, 0),
                                 scaled(4, 9.5, 0),  scaled(2, 18.0, 3), scaled(4, 9.0, 3),
                                 scaled(8, 0.0, 0)};
  records.back().outcome.status = "OOM";
  records.back().outcome.verdict.clear();
  return records;
}

std::vector<Record> length_batch_sweep() {
  std::vector<Record> records;
  for (const int64_t length : {512, 1024, 2048})
    for (const int64_t batch : {1, 2, 4}) {
      records.push_back(scaled(2, 30.0 - 2.0 * static_cast<double>(batch), 0));
      set_key(records.back(), "model", "seq_length", length);
      set_key(records.back(), "batch", "micro_batch_size", batch);
    }
  records.back().outcome.status = "OOM";
  return records;
}

Record run_of_two_stages() {
  Record r = made_record();
  r.steps.warmup_steps = 0;
  r.provenance.deck_resolved =
      "&model num_layers = 2, hidden_size = 64, num_attention_heads = 2, seq_length = 32,\n"
      "  vocab_size = 100, vocab_multiple = 1 /\n";
  r.timing.push_back({"step", "s", "", {10, 10, 12, 11, 10, 9, 10, 10}, 4, 2, false});
  r.timing.push_back({"communication", "s", "", {4, 1, 4, 2, 3, 1, 4, 2}, 4, 2, false});
  for (const char* kind : {"linear", "attention", "head_loss", "optimizer", "layernorm"})
    r.timing.push_back(
        {std::string("region_") + kind, "s", "", {2, 1, 2, 1, 2, 1, 2, 1}, 4, 2, false});
  r.arena.push_back({"h.0.attn.k", "activations", "bf16", 4096, 1572864, "operations 1-4 9-12"});
  r.arena.push_back({"h.0.ffn", "activations", "bf16", 1576960, 6291456, "operations 5-8"});
  return r;
}

std::string folder_of_trace() {
  const std::string folder = testing::TempDir() + "gptbench_trace";
  std::filesystem::create_directories(folder);
  std::ofstream trace(folder + "/trace.json");
  trace << R"json({"displayTimeUnit":"ms","traceEvents":[
{"ph":"M","name":"process_name","pid":0,"args":{"name":"rank 0 (tensor 0, context 0, pipeline 0, data 0)"}},
{"ph":"M","name":"process_name","pid":1,"args":{"name":"rank 1 (tensor 0, context 0, pipeline 1, data 0)"}},
{"ph":"M","name":"thread_name","pid":0,"tid":5,"args":{"name":"send_forward"}},
{"ph":"M","name":"thread_name","pid":1,"tid":6,"args":{"name":"receive_forward"}},
{"ph":"X","name":"linear","cat":"linear","pid":0,"tid":0,"ts":10,"dur":30,"args":{"program":"forward","micro_batch":0,"bytes":0}},
{"ph":"X","name":"wait","cat":"wait","pid":0,"tid":0,"ts":50,"dur":20,"args":{"program":"forward","micro_batch":0,"bytes":0}},
{"ph":"X","name":"wait","cat":"wait","pid":0,"tid":0,"ts":70,"dur":0.01,"args":{"program":"forward","micro_batch":0,"bytes":0}},
{"ph":"X","name":"linear","cat":"linear","pid":0,"tid":0,"ts":72,"dur":28,"args":{"program":"backward","micro_batch":0,"bytes":0}},
{"ph":"X","name":"adamw","cat":"optimizer","pid":0,"tid":0,"ts":110,"dur":12,"args":{"program":"update","micro_batch":-1,"bytes":0}},
{"ph":"X","name":"pipeline send","cat":"communication","pid":0,"tid":5,"ts":50,"dur":10,"args":{"program":"forward","micro_batch":0,"bytes":64}},
{"ph":"X","name":"pipeline receive","cat":"communication","pid":1,"tid":6,"ts":20,"dur":45,"args":{"program":"forward","micro_batch":0,"bytes":64}},
{"ph":"X","name":"linear","cat":"linear","pid":1,"tid":0,"ts":66,"dur":34,"args":{"program":"forward","micro_batch":0,"bytes":0}},
)json";
  // Ranks beside them along each other axis, which send at other times.
  const char* const others[] = {"tensor 1, context 0, pipeline %, data 0",
                                "tensor 0, context 1, pipeline %, data 0",
                                "tensor 0, context 0, pipeline %, data 1"};
  for (int rank = 2; rank < 8; ++rank) {
    std::string place = others[rank / 2 - 1];
    place.replace(place.find('%'), 1, std::to_string(rank % 2));
    const std::string pid = R"("pid":)" + std::to_string(rank);
    const bool sends = rank % 2 == 0;
    trace << R"({"ph":"M","name":"process_name",)" << pid << R"(,"args":{"name":"rank )" << rank
          << " (" << place << ")\"}},\n"
          << R"({"ph":"M","name":"thread_name",)" << pid << R"(,"tid":)" << (sends ? 5 : 6)
          << R"(,"args":{"name":")" << (sends ? "send_forward" : "receive_forward") << "\"}},\n"
          << R"({"ph":"X","name":"pipeline message","cat":"communication",)" << pid << R"(,"tid":)"
          << (sends ? 5 : 6) << R"(,"ts":)" << 40 + 4 * rank << R"(,"dur":)" << 8 + rank
          << R"(,"args":{"program":"forward","micro_batch":0,"bytes":64}})"
          << (rank < 7 ? ",\n" : "]}");
  }
  return folder;
}

Record one_layer_run(const std::vector<double>& linear_s, double step_s) {
  const auto ranks = static_cast<int64_t>(linear_s.size());
  const Deck deck = parse_deck("tiny.in",
                               "&run name = 'tiny' device = 'host' comm = 'mpi' /\n"
                               "&model num_layers = 1 hidden_size = 8 num_attention_heads = 1\n"
                               "  ffn_hidden_size = 32 seq_length = 4 vocab_size = 16\n"
                               "  vocab_multiple = 16 /\n"
                               "&batch micro_batch_size = 1 global_batch_size = " +
                                   std::to_string(ranks) + " /\n&precision compute = 'fp32' /\n",
                               {});
  Record r;
  r.config = {{"run", "device", std::string("host"), "1", ""},
              {"precision", "compute", std::string("fp32"), "1", ""}};
  r.provenance.deck_name = "tiny.in";
  r.provenance.deck_resolved = echo(deck, resolve(deck, ranks));
  for (int64_t rank = 0; rank < ranks; ++rank)
    r.provenance.hostnames.push_back("node" + std::to_string(rank));
  r.summary.world_size = ranks;
  r.summary.ranks_per_node = ranks;
  r.summary.timed_steps = 2;
  r.summary.rate.sec_per_it = step_s;
  r.summary.gemm_ceiling.tflops = 184320.0 / 1e12;
  r.steps.warmup_steps = 1;
  r.steps.time_s = {9.0, step_s, step_s};
  RankSeries linear{"region_linear", "s", "", {}, 3, ranks, false};
  RankSeries norm = linear, waiting = linear;
  norm.name = "region_layernorm";
  waiting.name = "communication";
  for (int64_t step = 0; step < 3; ++step)
    for (const double each : linear_s) {
      linear.values.push_back(step == 0 ? 7.0 : each);
      norm.values.push_back(0.05);
      waiting.values.push_back(0.95 - each);
    }
  r.timing = {norm, linear, waiting};
  // Per rank and step 2e9 bytes in one second, half of it exposed.
  CommEntry reduced{"data", "all_reduce", {}, {}, {}, {}, {}, false};
  for (int64_t rank = 0; rank < ranks; ++rank) {
    reduced.bytes.push_back(4'000'000'000);
    reduced.count.push_back(4);
    reduced.least_s.push_back(2.0);
    reduced.time_s.push_back(2.0);
    reduced.exposed_s.push_back(1.0);
  }
  r.comm = {reduced};
  return r;
}

Runs runs_of(const std::vector<Record>& records) {
  Runs runs;
  for (const Record& record : records) runs.emplace_back(record);
  return runs;
}

}  // namespace gptbench
