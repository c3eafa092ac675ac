// Checkpoints that are damaged, incomplete, of another model, or more than are kept.
#include <limits>

#include "plan/tensor_parts.h"
#include "saved_run.h"
#include "thread_limit.h"

namespace gptbench {
namespace {

namespace fs = std::filesystem;

class Damage : public CheckpointTest {
 protected:
  const std::string layout_ = "L1 host zero1 dp" + std::to_string(world.size());

  // Two checkpoints, after steps 1 and 2.
  void save_two() {
    SavedRun run(world, layout_, directory());
    run.train(1);
    run.save();
    run.train(1);
    run.save();
  }
  // On rank 0, between barriers.
  template <class Action>
  void once(const Action& action) {
    world.barrier();
    if (world.rank() == 0) action();
    world.barrier();
  }
  std::string newest(const std::string& extension) const {
    return directory() + "/step-00000002." + extension;
  }
  // Flips a bit, or flips it back.
  static void flip(const std::string& path, int64_t byte) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(byte);
    const char c = static_cast<char>(file.get());
    file.seekp(byte);
    file.put(static_cast<char>(c ^ 4));
  }
  // Step that a run with run.resume = `resume` continues after; the text of the error, if any.
  std::string resumed(const std::string& resume, const std::string& layout = "") {
    Config config = SavedRun::config_of(layout.empty() ? layout_ : layout, directory());
    config.run.start.resume = resume;
    SavedRun run(world, config);
    try {
      const TrainingStart start = run.load();
      notes_ = run.passed_over;
      return std::to_string(start.steps);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::io);
      return error.what();
    }
  }
  std::vector<std::string> notes_;  // on rank 0
};

#define EXPECT_PART(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << text

TEST_F(Damage, OneFlippedBitAnywhereLeadsToTheOneBefore) {
  save_two();
  const int64_t bytes = static_cast<int64_t>(fs::file_size(newest("h5")));
  const int64_t manifest_bytes = static_cast<int64_t>(fs::file_size(newest("manifest")));
  const auto expect_passed_over = [&](const std::string& path, int64_t byte) {
    SCOPED_TRACE(path + " byte " + std::to_string(byte));
    once([&] { flip(path, byte); });
    EXPECT_EQ(resumed("auto"), "1");
    if (world.rank() == 0) {
      ASSERT_EQ(notes_.size(), 1u);
      EXPECT_PART(notes_[0], path);
    }
    once([&] { flip(path, byte); });
  };
  for (int64_t i = 0; i < 12; ++i) expect_passed_over(newest("h5"), i * (bytes - 1) / 11);
  for (int64_t i = 0; i < 8; ++i)
    expect_passed_over(newest("manifest"), i * (manifest_bytes - 1) / 7);
  EXPECT_EQ(resumed("auto"), "2");
}

TEST_F(Damage, IncompleteOnesArePassedOver) {
  save_two();
  once([&] { fs::resize_file(newest("h5"), fs::file_size(newest("h5")) - 1); });
  EXPECT_EQ(resumed("auto"), "1");
  once([&] { fs::remove(newest("h5")); });
  EXPECT_EQ(resumed("auto"), "1");
  once([&] { std::ofstream(newest("h5")) << "HDF5 without a manifest"; });
  once([&] { fs::remove(newest("manifest")); });
  EXPECT_EQ(resumed("auto"), "1");
  if (world.rank() == 0) {
    EXPECT_PART(notes_.front(), "step-00000002.h5 has no manifest");
  }
  // The next one that is complete clears up, but for what is not a checkpoint's.
  once([&] {
    std::ofstream(directory() + "/step-00000003.h5.partial-0123456789abcdef") << "cut";
    std::ofstream(directory() + "/step-notes.h5") << "mine";
  });
  SavedRun run(world, layout_, directory());
  run.load();
  run.train(3);
  run.save();
  world.barrier();
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory()))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"step-00000001.h5", "step-00000001.manifest",
                                             "step-00000002.h5", "step-00000004.h5",
                                             "step-00000004.manifest", "step-notes.h5"}));
}

TEST_F(Damage, NoneThatCanBeUsedIsAnError) {
  EXPECT_EQ(resumed("auto"), "0");  // nothing was ever saved
  EXPECT_PART(resumed(directory()), "holds no checkpoint");
  EXPECT_PART(resumed("none/step-00000001.h5"), "cannot open");
  EXPECT_PART(resumed("none"), "no such directory");
  save_two();
  once([&] {
    flip(newest("manifest"), 40);
    fs::resize_file(directory() + "/step-00000001.h5", 5000);
  });
  for (const std::string& resume : {std::string("auto"), directory()}) {
    EXPECT_PART(resumed(resume), "no usable checkpoint in " + directory());
    EXPECT_PART(resumed(resume), "step-00000001.h5");
  }
  once([&] { flip(newest("manifest"), 40); });
  EXPECT_EQ(resumed(newest("h5")), "2");
  EXPECT_EQ(resumed(newest("manifest")), "2");
  once([&] { flip(newest("h5"), static_cast<int64_t>(fs::file_size(newest("h5"))) / 2); });
  EXPECT_PART(resumed(newest("h5")), "does not match its checksum");
}

TEST_F(Damage, AnotherModelIsNamed) {
  save_two();
  const std::string message = resumed("auto", "L2 T8 host zero1 dp" + std::to_string(world.size()));
  EXPECT_PART(message, "model.num_layers = 1 (the deck: 2)");
  EXPECT_PART(message, "model.seq_length = 16 (the deck: 8)");
}

TEST_F(Damage, TheLatestAreKept) {
  SavedRun run(world, layout_, directory());
  for (int i = 0; i < 4; ++i) {
    run.train(1);
    run.save();
  }
  world.barrier();
  const Inventory found = take_inventory(directory());
  ASSERT_EQ(found.complete.size(), 2u);
  EXPECT_EQ(found.complete[0].manifest.state.steps, 4);
  EXPECT_EQ(found.complete[1].manifest.state.steps, 3);
  EXPECT_TRUE(found.leftovers.empty());
}

// Neither does a run remove the checkpoints of another, nor count what it has passed over.
TEST_F(Damage, OnlyOwnUndamagedOnesCount) {
  const auto kept = [&] {
    world.barrier();
    std::vector<int64_t> steps;
    for (const Inventory::Complete& each : take_inventory(directory()).complete)
      steps.push_back(each.manifest.state.steps);
    std::sort(steps.begin(), steps.end());
    world.barrier();
    return steps;
  };
  const auto save = [](SavedRun& run, int64_t steps) {
    run.train(steps);
    run.save();
  };
  save_two();
  SavedRun other(world, layout_, directory());
  save(other, 4);
  for (int i = 0; i < 2; ++i) save(other, 1);
  EXPECT_EQ(kept(), (std::vector<int64_t>{1, 2, 5, 6}));
  once([&] { flip(directory() + "/step-00000006.h5", 5000); });
  SavedRun next(world, layout_, directory());
  EXPECT_EQ(next.load().steps, 5);
  save(next, 2);
  EXPECT_EQ(kept(), (std::vector<int64_t>{5, 6, 7}));
  save(next, 1);
  EXPECT_EQ(kept(), (std::vector<int64_t>{7, 8}));
  // The same directory by another name.
  Config config = SavedRun::config_of(layout_, directory());
  config.run.start.resume = directory() + "/.";
  SavedRun last(world, config);
  EXPECT_EQ(last.load().steps, 8);
  save(last, 1);
  EXPECT_EQ(kept(), (std::vector<int64_t>{8, 9}));
}

// A number that is not finite in the state of one rank, whose weights are finite.
TEST_F(Damage, WhatIsNotFiniteIsNotSaved) {
  save_two();
  for (const bool async : {false, true}) {
    Config config = SavedRun::config_of(layout_, directory());
    config.checkpoint.async = async;
    SavedRun run(world, config);
    run.load();
    run.train(1);
    if (world.rank() == world.size() - 1) {
      Resources& resources = run.engine().resources();
      const float infinity = std::numeric_limits<float>::infinity();
      const Representation& copy = resources.plan.representation(Role::moment2);
      const size_t last = resources.plan.space.tensors.size() - 1;
      for_each_part(resources.plan, copy, last, Visit::once, [&](const TensorPart& part) {
        resources.put(part.at, &infinity, sizeof infinity);
      });
    }
    try {
      run.save();
      ADD_FAILURE() << "saved";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::non_finite);
      EXPECT_PART(error.what(), directory() + "/step-00000003.h5: not saved: ");
      EXPECT_PART(error.what(), "moment2/ln_f.bias on rank " + std::to_string(world.size() - 1));
    }
    once([] {});
    EXPECT_EQ(std::distance(fs::directory_iterator(directory()), {}), 4);
  }
  EXPECT_EQ(resumed("auto"), "2");
}

// The clock of the machine was ahead when the earlier ones were written: the later one counts as
// the newest all the same.
TEST_F(Damage, ALaterOneIsNewerWhateverTheClockSays) {
  save_two();
  once([&] {
    for (const char* const name : {"/step-00000001.manifest", "/step-00000002.manifest"}) {
      Manifest manifest = read_manifest(directory() + name);
      manifest.written_s += 1'000'000;
      write_file(directory() + name, encode(manifest));
    }
  });
  SavedRun run(world, layout_, directory());
  run.load();
  for (int i = 0; i < 2; ++i) {
    run.train(1);
    run.save();
  }
  EXPECT_EQ(resumed("auto"), "4");
  // One that begins anew from an earlier step, too.
  SavedRun again(world, layout_, directory());
  again.train(3);
  again.save();
  EXPECT_EQ(resumed("auto"), "3");
}

// Where a limit of processes allows no thread, training waits for the checkpoint.
TEST_F(Damage, WithoutAThreadItIsWrittenAtOnce) {
  SavedRun run(world, layout_, directory());
  run.train(2);
  {
    const ThreadLimit limit;
    EXPECT_NO_THROW(run.begin_save());
  }
  run.finish_save();
  EXPECT_EQ(resumed("auto"), "2");
}

// Two runs in one directory are a mistake, but neither takes away what the other writes.
TEST_F(Damage, WhatAnotherRunWritesIsNoLeftover) {
  save_two();
  std::unique_ptr<NewFile> other;
  once([&] { other = std::make_unique<NewFile>(directory() + "/step-00000009.h5"); });
  SavedRun run(world, layout_, directory());
  run.load();
  run.train(1);
  run.save();
  once([&] {
    EXPECT_NO_THROW(other->publish(Existing::replaced));
    other.reset();
  });
  run.train(1);
  run.save();
  world.barrier();
  EXPECT_TRUE(fs::exists(directory() + "/step-00000009.h5"));
}

// Arrays whose manifests were forgotten when they were copied: no run begins anew over them, and
// none removes them. What an interruption leaves has an unfinished manifest.
TEST_F(Damage, ArraysWithoutManifestsStay) {
  save_two();
  once([&] {
    for (const char* const name : {"/step-00000001", "/step-00000002"})
      fs::remove(directory() + name + ".manifest");
  });
  EXPECT_PART(resumed("auto"), "step-00000002.h5 has no manifest; copy each .manifest");
  once([&] { fs::remove(directory() + "/step-00000001.h5"); });
  EXPECT_PART(resumed("auto"), "step-00000002.h5 has no manifest; copy each .manifest");
  once([&] {
    std::ofstream(directory() + "/step-00000002.manifest.partial-0123456789abcdef") << "cut";
  });
  EXPECT_EQ(resumed("auto"), "0");
  SavedRun run(world, layout_, directory());
  run.train(3);
  run.save();
  world.barrier();
  EXPECT_FALSE(fs::exists(directory() + "/step-00000002.h5"));
}

// What cannot be written is an error on all ranks, and leaves what was there.
TEST_F(Damage, ADirectoryThatIsGoneIsAnError) {
  save_two();
  SavedRun run(world, layout_, directory());
  run.load();
  run.train(1);
  once([&] {
    fs::rename(directory(), directory("moved"));
    std::ofstream(directory()) << "a file in its place";
  });
  try {
    run.save();
    ADD_FAILURE() << "saved nowhere";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::io);
    EXPECT_PART(error.what(), directory());
  }
  once([&] {
    fs::remove(directory());
    fs::rename(directory("moved"), directory());
  });
  EXPECT_EQ(resumed("auto"), "2");
}

}  // namespace
}  // namespace gptbench
