#include "weights/manifest.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "io/checksum.h"
#include "scratch_file.h"

namespace gptbench {
namespace {

Manifest made() {
  Manifest m;
  m.state = {100, 97, 800, {65536.0, 3.0, 1.0}, 12.5};
  m.seed = 42;
  m.written_s = 1790000000;
  m.file_bytes = 5000;
  m.frame_checksum = 4000000000u;
  m.keys = {{"model.family", "'gpt'"}, {"model.rotary_theta", "10000.0"}};
  m.arrays.resize(2);
  m.arrays[0].name = "weights/wte";
  m.arrays[0].shape = {10, 3};
  m.arrays[0].offset = 2048;
  m.arrays[0].checksum = 0xfedcba9876543210u;
  m.arrays[1].name = "moment1/h.0.ln_1.weight";
  m.arrays[1].type = DType::f64;
  m.arrays[1].shape = {4};
  m.arrays[1].offset = 3000;
  return m;
}

TEST(Manifest, IsReadAsItWasWritten) {
  const Manifest m = made(), read = decode_manifest(encode(m));
  EXPECT_EQ(encode(read), encode(m));
  EXPECT_EQ(read.state.loss_scale, m.state.loss_scale);
  EXPECT_EQ(read.arrays[1].type, DType::f64);
  EXPECT_EQ(read.arrays[0].shape, m.arrays[0].shape);
  using Ranges = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(frame_of(read), (Ranges{{0, 2048}, {2168, 3000}, {3032, 5000}}));
}

TEST(Manifest, EachFlippedOrMissingByteIsFound) {
  const std::string text = encode(made());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string flipped = text;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    EXPECT_THROW(decode_manifest(flipped), Error) << i;
    EXPECT_THROW(decode_manifest(text.substr(0, i)), Error) << i;
  }
}

// With a checksum that is right: of another program, or with arrays that lie nowhere.
TEST(Manifest, ForgeriesAreRefused) {
  const auto signed_text = [](const std::string& lines) {
    return lines + printed("checksum %u\n",
                           posix_checksum(reinterpret_cast<const unsigned char*>(lines.data()),
                                          lines.size()));
  };
  for (const char* lines : {"", "\n", "something else\n"})
    EXPECT_THROW(decode_manifest(signed_text(lines)), Error) << lines;
  // Words of a long line would take 16 times its bytes.
  EXPECT_THROW(decode_manifest(signed_text("gptbench checkpoint 1\nloss_scale" +
                                           std::string(1 << 16, ' ') + "1\n")),
               Error);
  for (const char* array :
       {"a", "a f32", "a f32 0 0", "a f32 0 0 -1", "a f32 0 0 0", "a f32 -1 0 1", "a f32 90 0 3",
        "a f32 0 0 4611686018427387904 4611686018427387904", "a f32 9223372036854775807 0 1",
        "a f32 0 0 -2 -3"})
    EXPECT_THROW(decode_manifest(signed_text(std::string("gptbench checkpoint 1\nfile_bytes 100\n"
                                                         "array ") +
                                             array + "\n")),
                 Error)
        << array;
  // 2^61 elements of 4 bytes in a file of 2^63 - 1.
  EXPECT_THROW(decode_manifest(signed_text("gptbench checkpoint 1\nfile_bytes 9223372036854775807\n"
                                           "array a f32 0 0 2305843009213693952\n")),
               Error);
  for (const char* count : {"step -1", "updates -1", "sequences -9223372036854775808",
                            "step 9223372036854775807", "sequences 9223372036854775807"})
    EXPECT_THROW(
        decode_manifest(signed_text(std::string("gptbench checkpoint 1\n") + count + "\n")), Error)
        << count;
}

// Numbers that a manifest gives too few or too many of leave and change nothing beside them.
TEST(Manifest, LossScalesOfAnyCount) {
  const auto scales = [](const std::string& numbers) {
    std::string lines = "gptbench checkpoint 1\nfile_bytes 100\nloss_scale " + numbers + "\n";
    lines +=
        printed("checksum %u\n",
                posix_checksum(reinterpret_cast<const unsigned char*>(lines.data()), lines.size()));
    return decode_manifest(lines).state.loss_scale;
  };
  const auto none = Manifest().state.loss_scale;
  EXPECT_EQ(scales("8 3"), (decltype(none){8.0, 3.0, none[2]}));
  EXPECT_EQ(scales("8 3 1 7 7"), (decltype(none){8.0, 3.0, 1.0}));
}

// Files of other names are none of a checkpoint, though they begin and end alike.
TEST(Inventory, NamesOfCheckpoints) {
  const ScratchDirectory scratch;
  Manifest m = made();
  for (const char* const name :
       {"step-00000100.manifest", "step-.manifest", "step-12x.manifest", "step-7.manifest.old",
        "step.manifest", "astep-3.manifest", "step-00000100.h5", "step-.h5", "step-5", "h5"})
    scratch.write(name, encode(m));
  scratch.write("step-00000101.h5", "no manifest");
  scratch.write("step-00000102.h5.partial-77", "half a file");
  scratch.write("step-00000103.manifest", "not a manifest");
  m.state.steps = 99;
  scratch.write("step-00000099.manifest", encode(m));
  const Inventory found = take_inventory(scratch.path(""));
  ASSERT_EQ(found.complete.size(), 2u);
  EXPECT_EQ(found.complete[0].manifest.state.steps, 100);
  EXPECT_EQ(found.complete[1].manifest.state.steps, 99);
  ASSERT_EQ(found.leftovers.size(), 1u);
  EXPECT_NE(found.leftovers[0].find("step-00000102.h5.partial-77"), std::string::npos);
  ASSERT_EQ(found.without_manifest.size(), 1u);
  EXPECT_EQ(found.without_manifest[0].steps(), 101);
  ASSERT_EQ(found.unusable.size(), 1u);
  EXPECT_NE(found.unusable[0].find("step-00000103.manifest"), std::string::npos);
}

// Between the names of its two files: an interruption left it so, or its run is about to go on.
TEST(Inventory, ArraysWhoseManifestHasNoNameYet) {
  const ScratchDirectory scratch;
  scratch.write("step-00000004.h5", "arrays");
  const std::string manifest = scratch.path("step-00000004.manifest");
  {
    NewFile unnamed(manifest);
    const Inventory found = take_inventory(scratch.path(""));
    EXPECT_TRUE(found.without_manifest.empty());
    EXPECT_TRUE(found.leftovers.empty());
    std::filesystem::copy_file(unnamed.temporary(), manifest + ".partial-0123456789abcdef");
  }
  const Inventory found = take_inventory(scratch.path(""));
  EXPECT_TRUE(found.without_manifest.empty());
  ASSERT_EQ(found.leftovers.size(), 2u);
  EXPECT_NE(found.leftovers[0].find("step-00000004.h5"), std::string::npos);
}

// A directory that cannot be looked at, here since its link leads to itself, is not one without
// checkpoints: a run would begin anew, and remove them.
TEST(Inventory, ADirectoryThatCannotBeReadIsNotEmpty) {
  const ScratchDirectory scratch;
  std::filesystem::create_symlink("loop", scratch.path("loop"));
  EXPECT_THROW(take_inventory(scratch.path("loop")), Error);
  EXPECT_TRUE(take_inventory(scratch.path("missing")).complete.empty());
}

// The one written last comes first, and of two of one time the one with more steps.
TEST(Inventory, TheLatestComesFirst) {
  const auto first_steps = [](int64_t written_of_5, int64_t written_of_6) {
    const ScratchDirectory scratch;
    Manifest m = made();
    for (const auto& [steps, written] :
         {std::pair<int64_t, int64_t>{5, written_of_5}, {6, written_of_6}}) {
      m.state.steps = steps;
      m.written_s = written;
      scratch.write("step-0000000" + std::to_string(steps) + ".manifest", encode(m));
    }
    return take_inventory(scratch.path("")).complete.at(0).manifest.state.steps;
  };
  EXPECT_EQ(first_steps(100, 200), 6);
  EXPECT_EQ(first_steps(200, 100), 5);
  EXPECT_EQ(first_steps(100, 100), 6);
}

// Parts in any order add up to the whole; an element at another place is another array.
TEST(ElementChecksum, AddsUpOverParts) {
  std::vector<float> x;
  for (int i = 0; i < 100; ++i) x.push_back(0.5f * static_cast<float>(i));
  const uint64_t whole = element_checksum(x.data(), 4, 0, 100);
  EXPECT_EQ(element_checksum(x.data() + 60, 4, 60, 40) + element_checksum(x.data(), 4, 0, 60),
            whole);
  std::swap(x[3], x[4]);
  EXPECT_NE(element_checksum(x.data(), 4, 0, 100), whole);
  const std::vector<double> y(7, 1.0);
  EXPECT_NE(element_checksum(y.data(), 8, 0, 7), element_checksum(y.data(), 8, 1, 7));
}

}  // namespace
}  // namespace gptbench
