// Every kind of picture but the roofline, which follows from a plan, as a whole, byte by byte
// beside test/post/pictures/NAME.svg, which a browser shows. To write them anew after a change that
// is meant, and look at them: GPTBENCH_UPDATE=1 test_post_pictures.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "made_record.h"
#include "post/plot.h"
#include "post/svg.h"

namespace gptbench {
namespace {

namespace fs = std::filesystem;

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void expect_as_kept(const Picture& picture) {
  const std::string path =
      std::string(GPTBENCH_SOURCE_DIR "/test/post/pictures/") + picture.name + ".svg";
  const std::string text = svg_of(picture, picture_style());
  if (std::getenv("GPTBENCH_UPDATE") != nullptr) std::ofstream(path, std::ios::binary) << text;
  if (text == text_of(path)) return;
  const std::string drawn = testing::TempDir() + picture.name + ".svg";
  std::ofstream(drawn, std::ios::binary) << text;
  ADD_FAILURE() << drawn << " is not " << path << "; GPTBENCH_UPDATE=1 keeps it";
}

// A run of a scaling study with ZeRO: at more ranks faster, but not in proportion.
Record scaled(int64_t ranks, double sec_per_it, int64_t zero_stage) {
  Record r = made_record();
  Summary& s = r.summary;
  s.world_size = ranks;
  s.sec_per_it = sec_per_it;
  s.sec_per_it_min = 0.95 * sec_per_it;
  s.sec_per_it_max = 1.1 * sec_per_it;
  s.tokens_per_s = static_cast<double>(s.tokens_per_step) / sec_per_it;
  s.mfu = 16.0 / sec_per_it / static_cast<double>(ranks);
  s.peak_memory_bytes = 2.5e9 / static_cast<double>(zero_stage + 1);
  set_key(r, "parallel", "data_parallel", ranks);
  set_key(r, "parallel", "zero_stage", zero_stage);
  r.loss = {10.98, 10.5 - 0.01 * static_cast<double>(zero_stage), 10.1, 9.75};
  return r;
}

std::vector<Record> study() {
  std::vector<Record> records = {scaled(1, 32.0, 0), scaled(2, 17.0, 0), scaled(2, 17.5, 0),
                                 scaled(4, 9.5, 0),  scaled(2, 18.0, 3), scaled(4, 9.0, 3),
                                 scaled(8, 0.0, 0)};
  records.back().status = "OOM";
  records.back().verdict.clear();
  return records;
}

Runs runs_of(const std::vector<Record>& records) {
  Runs runs;
  for (const Record& record : records) runs.emplace_back(record);
  return runs;
}

TEST(Pictures, OfAStudy) {
  const std::vector<Record> records = study();
  for (const auto make : {throughput_picture, utilisation_picture, scaling_picture, memory_picture,
                          breakdown_picture, messages_picture, loss_picture, steps_picture})
    expect_as_kept(make(runs_of(records), {}));
}

TEST(Pictures, OfSensors) {
  Record a = made_record(), b = made_record();
  for (int i = 0; i < 30; ++i) {
    a.sensors.power_w.push_back(65.0 + 0.2 * i);
    b.sensors.clock_ghz.push_back(i == 10 ? NAN : 2.25 - 0.01 * (i % 3));
  }
  b.summary.world_size = 4;
  expect_as_kept(sensors_picture(runs_of({a, b})));
}

TEST(Pictures, OfASweep) {
  std::vector<Record> records;
  for (const int64_t length : {512, 1024, 2048})
    for (const int64_t batch : {1, 2, 4}) {
      records.push_back(scaled(2, 30.0 - 2.0 * static_cast<double>(batch), 0));
      set_key(records.back(), "model", "seq_length", length);
      set_key(records.back(), "batch", "micro_batch_size", batch);
    }
  records.back().status = "OOM";
  expect_as_kept(sweep_picture(runs_of(records)));
}

// One run of two ranks, with what only a run of its own has.
TEST(Pictures, OfARun) {
  Record r = made_record();
  r.warmup_steps = 0;
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

  const fs::path folder = testing::TempDir() + "gptbench_pictures";
  fs::create_directories(folder);
  std::ofstream(folder / "trace.json") << R"json({"displayTimeUnit":"ms","traceEvents":[
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
{"ph":"X","name":"linear","cat":"linear","pid":1,"tid":0,"ts":66,"dur":34,"args":{"program":"forward","micro_batch":0,"bytes":0}}
]})json";
  const RunView run(r, {}, nullptr, (folder / "result.h5").string());
  for (const auto make : {timeline_picture, memory_map_picture, ranks_picture})
    expect_as_kept(make({run}, {}));
}

// Many steps are binned; of many ranks some stand for the others.
TEST(Pictures, OfALongRunOfManyRanks) {
  Record r = made_record();
  r.warmup_steps = 1;
  r.loss.clear();
  r.step_time_s.clear();
  for (int step = 0; step < 3000; ++step) {
    r.loss.push_back(11.0 - 0.002 * step + (step % 7 == 0 ? 0.3 : 0.0));
    r.step_time_s.push_back(2.0 + 0.001 * (step % 11) + (step == 1500 ? 3.0 : 0.0));
  }
  r.held_out_step = {750, 1500, 2250, 3000};
  r.held_out_loss = {9.7, 8.3, 7.0, 5.9};
  r.summary.token_entropy = 4.5;
  r.summary.world_size = 40;
  r.timing.clear();
  RankSeries step{"step", "s", "", {}, 1, 40, false},
      waits{"communication", "s", "", {}, 1, 40, false};
  r.provenance.hostnames.clear();
  for (int rank = 0; rank < 40; ++rank) {
    step.values.push_back(10.0);
    waits.values.push_back(0.05 * rank);
    r.provenance.hostnames.push_back("node" + std::to_string(rank / 8));
  }
  r.timing = {step, waits};
  for (const auto& [make, name] :
       {std::pair{&loss_picture, "loss_long"}, std::pair{&steps_picture, "steps_long"},
        std::pair{&ranks_picture, "ranks_many"}}) {
    Picture picture = make({RunView(r)}, {});
    picture.name = name;
    expect_as_kept(picture);
  }
}

}  // namespace
}  // namespace gptbench
