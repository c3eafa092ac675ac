#include "io/result_file.h"

#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <random>

#include "base/error.h"
#include "file_size_limit.h"
#include "io/checksum.h"
#include "io/hdf5_write.h"
#include "made_record.h"

namespace gptbench {
namespace {

namespace fs = std::filesystem;

// A folder of its own, removed at the end.
class ResultFile : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "result_file_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string in(const std::string& name) const { return folder_ + "/" + name; }
  std::vector<std::string> names(const std::string& of) const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(of)) found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }
  void put(const std::string& name, const Bytes& bytes) const {
    std::ofstream(in(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

  std::string folder_;
};

Bytes without_checksum(const Bytes& bytes) {
  return {bytes.begin() + checksum_block_bytes, bytes.end()};
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::io);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  return "no error";
}

// What is decoded encodes to the same bytes: nothing that the writer knows is lost by the reader.
TEST(ResultEncoding, RoundTripKeepsEveryByte) {
  const Bytes first = encode_result(made_record());
  EXPECT_EQ(encode_result(decode_result(first)), first);
}

TEST(ResultEncoding, RoundTripKeepsValuesAndTypes) {
  const Record r = decode_result(encode_result(made_record()));
  const Record expected = made_record();
  EXPECT_EQ(r.outcome.reason, expected.outcome.reason);
  ASSERT_EQ(r.config.size(), expected.config.size());
  for (size_t i = 0; i < r.config.size(); ++i) {
    EXPECT_EQ(r.config[i].group + "." + r.config[i].key,
              expected.config[i].group + "." + expected.config[i].key);
    EXPECT_EQ(r.config[i].value, expected.config[i].value) << r.config[i].key;
    EXPECT_EQ(r.config[i].description, expected.config[i].description);
  }
  EXPECT_EQ(r.provenance.deck_raw, expected.provenance.deck_raw);
  EXPECT_EQ(r.provenance.hostnames, expected.provenance.hostnames);
  EXPECT_EQ(r.summary.flops.per_step, expected.summary.flops.per_step);
  EXPECT_EQ(r.summary.device.power_w, expected.summary.device.power_w);
  EXPECT_EQ(r.steps.loss, expected.steps.loss);
  EXPECT_EQ(r.steps.loss_scale, expected.steps.loss_scale);
  EXPECT_EQ(r.steps.skipped, expected.steps.skipped);
  EXPECT_EQ(r.summary.skipped_steps, expected.summary.skipped_steps);
  EXPECT_EQ(r.steps.tokens, expected.steps.tokens);
  ASSERT_EQ(r.timing.size(), 2u);
  EXPECT_EQ(r.timing[0].values, expected.timing[0].values);
  EXPECT_EQ(r.timing[0].ranks, 2);
  ASSERT_EQ(r.arena.size(), 2u);
  EXPECT_EQ(r.arena[1].name, "h.0.attn.q");
  EXPECT_EQ(r.arena[1].bytes, 1572864);
  ASSERT_EQ(r.comm.size(), 2u);
  EXPECT_EQ(r.comm[0].op, "all_reduce");
  ASSERT_EQ(r.verify.size(), 2u);
  EXPECT_FALSE(r.verify[1].passed);
  EXPECT_EQ(r.kernels_not_verified, expected.kernels_not_verified);
  ASSERT_EQ(r.calibration.kernels.size(), 1u);
  const KernelRate& kernel = r.calibration.kernels[0];
  EXPECT_EQ(kernel.kernel + " " + kernel.type, "linear_forward bf16");
  EXPECT_EQ((std::vector<int64_t>{kernel.rows, kernel.columns, kernel.inner}),
            (std::vector<int64_t>{1024, 2304, 768}));
  EXPECT_EQ((std::vector<double>{kernel.flops, kernel.bytes, kernel.time_s, kernel.spread}),
            (std::vector<double>{3.6e9, 8.25e6, 0.03125, 0.0625}));
  ASSERT_EQ(r.calibration.messages.size(), 2u);
  const MessageRate& message = r.calibration.messages[0];
  EXPECT_EQ(message.axis + " " + message.op + " " + message.type + " " + message.redop,
            "data all_reduce f32 sum");
  EXPECT_EQ((std::vector<int64_t>{message.ranks, message.per_node, message.bytes, message.count}),
            (std::vector<int64_t>{4, 2, 8000000, 2000000}));
  EXPECT_EQ(message.time_s, 0.004);
  EXPECT_EQ(r.calibration.messages[1].wrong, 3);
  EXPECT_EQ(r.calibration.profile, expected.calibration.profile);
}

// A run that ended before its first step: everything empty is a file too.
TEST(ResultEncoding, EmptyRecord) {
  Record record;
  record.outcome.status = "OOM";
  const Record r = decode_result(encode_result(record));
  EXPECT_EQ(r.outcome.status, "OOM");
  EXPECT_TRUE(r.steps.loss.empty());
  EXPECT_FALSE(r.summary.device.power_w.has_value());
}

// The check value of CRC-32/CKSUM in the catalogues of checksums, and `cksum </dev/null`.
TEST(ResultChecksum, IsThatOfPosixCksum) {
  const std::string text = "123456789";
  EXPECT_EQ(posix_checksum(reinterpret_cast<const unsigned char*>(text.data()), text.size()),
            930766865u);
  EXPECT_EQ(posix_checksum(nullptr, 0), 4294967295u);
}

// Files of programs that wrote no checksum, and files whose checksum was removed by hand.
TEST(ResultChecksum, FilesWithoutOneAreRead) {
  const Bytes bytes = encode_result(made_record());
  EXPECT_EQ(encode_result(decode_result(without_checksum(bytes))), bytes);
}

// A CRC of 32 bits notices any change within four bytes, and all but one in 4e9 of the others. No
// byte is left out: the text of the checksum and what HDF5 never reads count as well.
TEST(ResultChecksum, EveryChangeIsRefused) {
  const Bytes good = encode_result(made_record());
  std::mt19937 random(20261121);
  const auto refused = [](const Bytes& bytes) {
    return message_of([&] { decode_result(bytes); }) != "no error";
  };
  ASSERT_FALSE(refused(good));
  for (size_t at = 0; at < checksum_block_bytes; ++at) {
    Bytes bytes = good;
    bytes[at] ^= static_cast<unsigned char>(1u << random() % 8);
    EXPECT_TRUE(refused(bytes)) << at;
  }
  for (int i = 0; i < 400; ++i) {
    Bytes bytes = good;
    const int flips = i % 2 == 0 ? 1 : 1 + static_cast<int>(random() % 16);
    for (int flip = 0; flip < flips; ++flip)
      bytes[random() % bytes.size()] = static_cast<unsigned char>(random());
    EXPECT_EQ(refused(bytes), bytes != good) << i;
  }
  for (int i = 0; i < 200; ++i) {
    Bytes bytes = good;
    bytes.resize(i < 50 ? good.size() - 1 - static_cast<size_t>(i) : random() % good.size());
    EXPECT_TRUE(refused(bytes)) << bytes.size();
  }
  Bytes longer = good;
  longer.push_back(0);
  EXPECT_TRUE(refused(longer));
}

// Two runs of the same figures write the same bytes at any time.
TEST(ResultEncoding, HoldsNoTimesOfWriting) {
  hbool_t kept = true;
  hdf5_check(H5Pget_obj_track_times(ordered_properties(H5P_GROUP_CREATE), &kept), "read");
  EXPECT_FALSE(kept);
}

// A file of another writer, with a number where a text belongs.
TEST_F(ResultFile, NamesWhatIsOfAnotherType) {
  put("r.h5", without_checksum(encode_result(made_record())));
  const hid_t file = H5Fopen(in("r.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  ASSERT_GE(H5Ldelete(file, "/provenance/argv", H5P_DEFAULT), 0);
  const hid_t scalar = H5Screate(H5S_SCALAR);
  H5Dclose(H5Dcreate2(file, "/provenance/argv", H5T_NATIVE_INT, scalar, H5P_DEFAULT, H5P_DEFAULT,
                      H5P_DEFAULT));
  H5Sclose(scalar);
  H5Fclose(file);
  const std::string message = message_of([&] { read_result(in("r.h5")); });
  EXPECT_NE(message.find("argv: not text"), std::string::npos) << message;
}

TEST_F(ResultFile, WritesReadsAndKeepsFormerOnesNumbered) {
  const std::string directory = in("a/b/c");
  Record record = made_record();
  for (int run = 0; run < 4; ++run) {
    record.summary.convergence.final_loss = run;
    EXPECT_EQ(write_result(directory, record),
              run == 0 ? "" : directory + "/result." + std::to_string(run) + ".h5");
  }
  EXPECT_EQ(names(directory),
            (std::vector<std::string>{"result.1.h5", "result.2.h5", "result.3.h5", "result.h5"}));
  EXPECT_EQ(read_result(directory + "/result.1.h5").summary.convergence.final_loss, 0.0);
  EXPECT_EQ(read_result(directory + "/result.3.h5").summary.convergence.final_loss, 2.0);
  EXPECT_EQ(read_result(directory + "/result.h5").summary.convergence.final_loss, 3.0);
}

// A run of millions of steps.
TEST_F(ResultFile, MoreThanIsReadIsNotWritten) {
  const auto bytes = static_cast<int64_t>(encode_result(made_record()).size());
  const std::string message = message_of([&] { write_result(folder_, made_record(), bytes - 1); });
  EXPECT_NE(message.find("/result.h5: would have "), std::string::npos) << message;
  EXPECT_NE(message.find("; train fewer steps in a run, and continue it with run.resume"),
            std::string::npos)
      << message;
  EXPECT_TRUE(names(folder_).empty());
  write_result(folder_, made_record(), bytes);
  EXPECT_EQ(static_cast<int64_t>(fs::file_size(in("result.h5"))), bytes);
}

TEST_F(ResultFile, NumbersThatAreTakenAreSkipped) {
  write_result(folder_, made_record());
  put("result.1.h5", Bytes(3, 'x'));
  write_result(folder_, made_record());
  EXPECT_EQ(names(folder_), (std::vector<std::string>{"result.1.h5", "result.2.h5", "result.h5"}));
  EXPECT_EQ(fs::file_size(in("result.1.h5")), 3u);
}

TEST_F(ResultFile, IsReadInItsOwnFolder) {
  write_result(in("here"), made_record());
  const fs::path before = fs::current_path();
  fs::current_path(in("here"));
  EXPECT_NO_THROW(read_result("result.h5"));
  fs::current_path(before);
}

TEST_F(ResultFile, NothingIsLeftWhereItCannotBeWritten) {
  put("file", Bytes(1, 'x'));
  const std::string below_file = message_of([&] { write_result(in("file/out"), made_record()); });
  EXPECT_NE(below_file.find("file/out"), std::string::npos) << below_file;
  EXPECT_NE(below_file.find("Not a directory"), std::string::npos) << below_file;
  fs::create_directories(in("out/result.h5"));
  message_of([&] { write_result(in("out"), made_record()); });
  EXPECT_EQ(names(in("out")), std::vector<std::string>{"result.h5"});
}

TEST_F(ResultFile, CheckOfTheDirectoryLeavesNothing) {
  check_output_directory(in("new/deep/er"));
  EXPECT_TRUE(names(folder_).empty());
  fs::create_directories(in("old"));
  check_output_directory(in("old"));
  EXPECT_TRUE(names(in("old")).empty());
  put("result.h5.probe", Bytes(3, 'x'));
  check_output_directory(folder_);
  EXPECT_EQ(fs::file_size(in("result.h5.probe")), 3u);
  {
    const FileSizeLimit full(0);
    EXPECT_NE(message_of([&] { check_output_directory(in("old")); }).find(std::strerror(EFBIG)),
              std::string::npos);
  }
  EXPECT_TRUE(names(in("old")).empty());

  put("file", Bytes(1, 'x'));
  for (const std::string& bad : {in("file/out"), std::string("/proc/none")}) {
    const std::string message = message_of([&] { check_output_directory(bad); });
    EXPECT_NE(message.find(bad), std::string::npos) << message;
    EXPECT_NE(message.find("output.directory"), std::string::npos) << message;
  }
  fs::create_directories(in("taken/result.h5"));
  EXPECT_NE(message_of([&] { check_output_directory(in("taken")); }).find("is a directory"),
            std::string::npos);
}

TEST_F(ResultFile, FilesThatAreNotResultsAreNamed) {
  const auto message = [&](const std::string& name) {
    return message_of([&] { read_result(in(name)); });
  };
  EXPECT_NE(message("none.h5").find("No such file"), std::string::npos);
  EXPECT_NE(message("").find("directory"), std::string::npos);
  put("empty.h5", {});
  EXPECT_EQ(message("empty.h5"), in("empty.h5") + ": empty file");
  put("text.h5", Bytes(100, 'x'));
  EXPECT_EQ(message("text.h5"), in("text.h5") + ": not an HDF5 file");
  Bytes half = encode_result(made_record());
  half.resize(half.size() / 2);
  put("half.h5", half);
  EXPECT_NE(message("half.h5").find("damaged, cut or edited"), std::string::npos);
  put("old_half.h5", without_checksum(half));
  EXPECT_NE(message("old_half.h5").find("damaged or half-written"), std::string::npos);

  Record newer = made_record();
  newer.schema = "gptbench-2";
  put("newer.h5", encode_result(newer));
  EXPECT_NE(message("newer.h5").find("newer than gptbench-1"), std::string::npos);
  // A number of 20 digits fits no integer.
  for (const char* schema :
       {"weather-1", "gptbench-", "gptbench-1x", "gptbench--1", "gptbench-99999999999999999999"}) {
    newer.schema = schema;
    put("other.h5", encode_result(newer));
    EXPECT_EQ(message("other.h5"),
              in("other.h5") + ": not a gptbench result: schema '" + schema + "'");
  }
  newer.schema = "two\nlines";
  put("other.h5", encode_result(newer));
  EXPECT_EQ(message("other.h5"),
            in("other.h5") + ": not a gptbench result: schema 'two\\x0alines'");
  {
    const Hdf5Handle file(
        H5Fcreate(in("foreign.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "create");
    write_attribute(file, "title", "something else");
  }
  EXPECT_NE(message("foreign.h5").find("not a gptbench result"), std::string::npos);
}

// Every optional part may be missing; what is there must be of the right kind.
TEST_F(ResultFile, MissingPartsAreEmptyAndWrongKindsAreRefused) {
  const auto with = [&](const std::function<void(hid_t)>& fill) {
    const Hdf5Handle file(H5Fcreate(in("made.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                          "create");
    write_attribute(file, "schema", "gptbench-1");
    fill(file);
  };
  with([](hid_t) {});
  EXPECT_TRUE(read_result(in("made.h5")).config.empty());
  // The figure of merit of files that were written before there was one: 6 TFLOP in 3 s.
  with([](hid_t file) {
    const Hdf5Handle summary = create_group(file, "summary");
    write_attribute(summary, "sec_per_it", 3.0);
    write_attribute(summary, "flops_per_step_causal", 6e12);
  });
  EXPECT_EQ(read_result(in("made.h5")).summary.flops.fom_tflops, 2.0);
  EXPECT_EQ(read_result(in("made.h5")).summary.rules.outcome, "");
  // The step of files that counted it from 0: the third, or none.
  for (const int64_t failed_step : {2, -1}) {
    with([&](hid_t file) {
      write_attribute(create_group(file, "steps"), "failed_step", failed_step);
    });
    EXPECT_EQ(read_result(in("made.h5")).outcome.ended_in_step, failed_step + 1);
  }
  with([](hid_t file) { write_attribute(create_group(file, "summary"), "num_params", "many"); });
  EXPECT_NE(message_of([&] { read_result(in("made.h5")); }).find("num_params"), std::string::npos);
  with([](hid_t file) {
    write_dataset(create_group(file, "steps"), {"loss", "1", ""}, {2}, H5T_NATIVE_DOUBLE,
                  std::vector<double>{1, 2}.data());
    write_text(create_group(file, "timing"), {"forward_s", "s", ""}, std::string("soon"));
  });
  EXPECT_NE(message_of([&] { read_result(in("made.h5")); }).find("forward_s"), std::string::npos);
  const auto put_attribute = [](hid_t object, const char* name, hid_t type, hsize_t elements) {
    const Hdf5Handle space(H5Screate_simple(1, &elements, nullptr), "make a space");
    const Hdf5Handle made(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT), "make");
    hdf5_check(H5Awrite(made, type, "OK\0\0\0\0\0\0\0\0\0\0\0\0\0"), "write");
  };
  // Two numbers where one is expected.
  with([&](hid_t file) {
    put_attribute(create_group(file, "summary"), "num_params", H5T_NATIVE_INT64, 2);
  });
  EXPECT_NE(message_of([&] { read_result(in("made.h5")); }).find("num_params"), std::string::npos);
  // Text of fixed length, as other programs write it.
  const Hdf5Handle text(H5Tcopy(H5T_C_S1), "copy a type");
  H5Tset_size(text, 8);
  with([&](hid_t file) { put_attribute(file, "status", text, 1); });
  EXPECT_EQ(read_result(in("made.h5")).outcome.status, "OK");
}

// Status of laying out a result with 16 MiB of address space more than this process has now.
[[noreturn, maybe_unused]] void encode_within_limit(const Record& record, int64_t now_bytes) {
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = static_cast<rlim_t>(now_bytes + (16 << 20));
  setrlimit(RLIMIT_AS, &limit);
  try {
    encode_result(record);
  } catch (const Error& error) {
    _exit(static_cast<int>(error.code()));
  } catch (const std::bad_alloc&) {
    _exit(static_cast<int>(Exit::out_of_memory));
  }
  _exit(0);
}

// Whether a process can limit its address space: under qemu it keeps that of the emulator.
[[maybe_unused]] bool limits_address_space() {
  rlimit old{}, set{}, now{};
  getrlimit(RLIMIT_AS, &old);
  set = old;
  set.rlim_cur = std::min(old.rlim_max, rlim_t{1} << 44);
  setrlimit(RLIMIT_AS, &set);
  getrlimit(RLIMIT_AS, &now);
  setrlimit(RLIMIT_AS, &old);
  return now.rlim_cur == set.rlim_cur;
}

// The file is laid out in memory: 32 MB of figures do not fit. In a process of its own, since HDF5
// keeps what it could not write.
TEST(EncodeResult, LackOfMemoryIsOutOfMemory) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer does not bear a limit of address space";
#else
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  if (pages == 0) GTEST_SKIP() << "no /proc/self/statm";
  if (!limits_address_space()) GTEST_SKIP() << "RLIMIT_AS has no effect";
  Record record = made_record();
  record.steps.loss.resize(4 << 20);
  const int64_t now_bytes = pages * sysconf(_SC_PAGESIZE) + (32 << 20);  // and the record
  EXPECT_EXIT(encode_within_limit(record, now_bytes),
              ::testing::ExitedWithCode(static_cast<int>(Exit::out_of_memory)), "");
#endif
}

}  // namespace
}  // namespace gptbench
