#include "io/file_bytes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>

#include "base/error.h"
#include "file_size_limit.h"

namespace gptbench {
namespace {

namespace fs = std::filesystem;

class FileBytes : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "file_bytes_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    path_ = in("result.h5");
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string in(const std::string& name) const { return folder_ + "/" + name; }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_))
      found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }
  static std::string text_of(const std::string& path) {
    const Bytes bytes = read_bytes(path, 1000);
    return {bytes.begin(), bytes.end()};
  }
  static unsigned mode_of(const std::string& path) {
    struct stat info {};
    ::stat(path.c_str(), &info);
    return info.st_mode & 0777u;
  }

  std::string folder_, path_;
};

using Names = std::vector<std::string>;

// A FIFO, a device where this user may make one, and links to them are written to and stay; a link
// to a file is replaced.
TEST_F(FileBytes, StreamsAreWrittenTo) {
  const std::string fifo = in("fifo"), link = in("link"), device = in("null");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  fs::create_symlink("fifo", link);
  for (const std::string& path : {fifo, link}) {
    auto reader = std::async(std::launch::async, [&] {
      std::ostringstream text;
      text << std::ifstream(fifo).rdbuf();
      return text.str();
    });
    write_output(path, "through");
    EXPECT_EQ(reader.get(), "through");
  }
  EXPECT_TRUE(fs::is_fifo(fifo));
  EXPECT_TRUE(fs::is_symlink(link));
  if (::mknod(device.c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0) {
    try {
      write_output(device, "nothing");
    } catch (const Error&) {  // a file system that offers no devices
    }
    EXPECT_TRUE(fs::is_character_file(device));
    fs::remove(device);
  }
  // The link /dev/stdout of a shell that appends to a file.
  const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ASSERT_GE(file, 0);
  ASSERT_EQ(::write(file, "a", 1), 1);
  const std::string to_file = in("stdout");
  fs::create_symlink("/proc/self/fd/" + std::to_string(file), to_file);
  write_output(to_file, "b");
  ::close(file);
  EXPECT_TRUE(fs::is_symlink(to_file));
  EXPECT_EQ(text_of(path_), "ab");
  fs::remove(link);
  fs::create_symlink("result.h5", link);
  write_output(link, "c");
  EXPECT_FALSE(fs::is_symlink(link));
  EXPECT_EQ(text_of(path_), "ab");
}

// Links of every name that a predictable temporary file could have: the pid counts up, so those of
// this process and of the next ones are known.
TEST_F(FileBytes, NoLinkIsFollowed) {
  const std::string victim = in("victim");
  write_file(victim, "precious");
  for (const std::string& name : {std::string(".partial-") + std::to_string(::getpid()),
                                  std::string(".partial"), std::string(".tmp"), std::string()})
    fs::create_symlink("victim", path_ + name);
  write_file(path_, "new");
  EXPECT_EQ(text_of(victim), "precious");
  EXPECT_EQ(text_of(path_), "new");
  EXPECT_FALSE(fs::is_symlink(path_));
}

// Two writers of one name, as on two nodes that share a file system and a process number.
TEST_F(FileBytes, WritersDoNotShareATemporaryFile) {
  NewFile first(path_), second(path_);
  first.write_at(0, "first", 5);
  second.write_at(0, "second one", 10);
  EXPECT_EQ(names().size(), 2u);
  first.publish(Existing::kept_numbered);
  second.publish(Existing::kept_numbered);
  EXPECT_EQ(names(), (Names{"result.1.h5", "result.h5"}));
  EXPECT_EQ(text_of(in("result.1.h5")), "first");
  EXPECT_EQ(text_of(path_), "second one");
}

TEST_F(FileBytes, TheUmaskSetsThePermissions) {
  for (const unsigned mask : {0022u, 0007u, 0077u}) {
    const mode_t before = ::umask(mask);
    write_file(path_, "x");
    ::umask(before);
    EXPECT_EQ(mode_of(path_), 0666u & ~mask);
  }
}

TEST_F(FileBytes, NothingIsSeenBeforePublishAndNothingIsLeftWithoutIt) {
  write_file(path_, "old");
  {
    NewFile file(path_);
    file.write_at(0, "new", 3);
    file.sync();
    EXPECT_EQ(text_of(path_), "old");
    EXPECT_EQ(names().size(), 2u);
  }
  EXPECT_EQ(names(), Names{"result.h5"});
  EXPECT_EQ(text_of(path_), "old");
}

// A lock tells the file of a process that lives from what a killed one left.
TEST_F(FileBytes, AFileThatIsBeingWrittenIsLocked) {
  {
    NewFile file(path_);
    EXPECT_TRUE(is_locked(file.temporary()));
    const NewFile of_another_rank(path_, file.temporary());
    fs::copy_file(file.temporary(), path_ + ".partial-0123456789abcdef");
  }
  EXPECT_FALSE(is_locked(path_ + ".partial-0123456789abcdef"));
  EXPECT_FALSE(is_locked(in("none")));
  ASSERT_EQ(::mkfifo(in("fifo").c_str(), 0666), 0);
  EXPECT_FALSE(is_locked(in("fifo")));
}

// What may be read is written back in whole pages over NFS, over what other nodes have written.
TEST_F(FileBytes, WhatSeveralProcessesWriteIsNotReadByThem) {
  NewFile file(path_);
  file.write_at(0, "abc", 3);
  file.hand_over();
  {
    NewFile of_another_rank(path_, file.temporary());
    of_another_rank.write_at(3, "def", 3);
    of_another_rank.sync();
    char read[6];
    EXPECT_THROW(of_another_rank.read_at(0, read, sizeof read), Error);
  }
  file.publish(Existing::replaced);
  EXPECT_EQ(text_of(path_), "abcdef");
}

TEST_F(FileBytes, OnlyAFileSystemWithASizeHasFreeBytes) {
  EXPECT_TRUE(free_bytes(".").has_value());
  EXPECT_FALSE(free_bytes("/proc").has_value());
  EXPECT_FALSE(free_bytes(in("none")).has_value());
}

// Another run that takes this one's directory for its own has cleared it up.
TEST_F(FileBytes, ALockIsHeldOnceAndLeavesNoFile) {
  {
    const FileLock first(path_);
    EXPECT_FALSE(first.is_taken());
    EXPECT_TRUE(FileLock(path_).is_taken());
    EXPECT_TRUE(is_locked(path_));
    // Not that of the file which the first has made.
    fs::remove(path_);
    EXPECT_FALSE(FileLock(path_).is_taken());
  }
  EXPECT_FALSE(fs::exists(path_));
  // One that a killed process has left; a link is not followed.
  std::ofstream(path_) << "left";
  EXPECT_FALSE(FileLock(path_).is_taken());
  EXPECT_FALSE(fs::exists(path_));
  fs::create_symlink("victim", path_);
  EXPECT_THROW(FileLock lock(path_), Error);
  EXPECT_FALSE(fs::exists(in("victim")));
}

TEST_F(FileBytes, ATemporaryFileThatIsGoneIsNamed) {
  NewFile file(path_);
  fs::remove(file.temporary());
  try {
    file.publish(Existing::replaced);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), path_ + ": cannot create: its temporary file " + file.temporary() +
                                " is gone; give each run that writes here a directory of its own");
  }
}

TEST_F(FileBytes, PiecesInAnyOrder) {
  NewFile file(path_);
  file.write_at(4, "efgh", 4);
  file.write_at(0, "abcd", 4);
  file.resize(9);
  char read[12];
  std::memset(read, 'x', sizeof read);
  errno = EINTR;              // of some earlier call: the end of the file is no error
  file.read_at(2, read, 10);  // two bytes beyond the end, the one before it never written
  EXPECT_EQ(std::string(read, 12), std::string("cdefgh\0\0\0\0xx", 12));
  file.publish(Existing::replaced);
  EXPECT_EQ(text_of(path_), std::string("abcdefgh\0", 9));
}

TEST_F(FileBytes, FullDiskIsAnErrorAndKeepsTheOldFile) {
  write_file(path_, "old");
  for (const size_t bytes : {size_t{4097}, size_t{1} << 20}) {
    const FileSizeLimit disk(4096);
    try {
      write_file(path_, std::string(bytes, 'x'), Existing::kept_numbered);
      FAIL() << bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::io);
      EXPECT_EQ(error.what(), path_ + ": cannot write: " + std::strerror(EFBIG));
    }
    EXPECT_EQ(names(), Names{"result.h5"});
  }
  EXPECT_EQ(text_of(path_), "old");
}

TEST_F(FileBytes, NumberedNames) {
  EXPECT_EQ(numbered_name("a/result.h5", 3), "a/result.3.h5");
  EXPECT_EQ(numbered_name("a.b/result", 12), "a.b/result.12");
  EXPECT_EQ(numbered_name(".hidden", 1), ".hidden.1");
  EXPECT_EQ(numbered_name("a.tar.gz", 2), "a.tar.2.gz");
}

TEST_F(FileBytes, OnlyRegularFilesOfTheAllowedSizeAreRead) {
  const auto message = [](const std::string& path, int64_t limit) -> std::string {
    try {
      return std::to_string(read_bytes(path, limit).size()) + " bytes";
    } catch (const Error& error) {
      return error.what();
    }
  };
  write_file(path_, "12345");
  EXPECT_EQ(message(path_, 5), "5 bytes");
  EXPECT_EQ(message(path_, 4), path_ + ": 5 bytes, more than the 4 that such a file may have");
  EXPECT_EQ(message(folder_, 5), folder_ + ": is a directory, not a file");
  EXPECT_EQ(message("/dev/zero", 5), "/dev/zero: is not a regular file");
  ASSERT_EQ(::mkfifo(in("fifo").c_str(), 0666), 0);
  EXPECT_EQ(message(in("fifo"), 5), in("fifo") + ": is not a regular file");
  EXPECT_EQ(message(in("none"), 5), in("none") + ": cannot open: No such file or directory");
  EXPECT_EQ(read_beginning(path_, 3), "123");
  EXPECT_EQ(read_beginning(path_, 9), "12345");
  fs::create_symlink("result.h5", in("link"));
  for (const std::string& none :
       {folder_, std::string("/dev/zero"), in("fifo"), in("link"), in("none")})
    EXPECT_EQ(read_beginning(none, 5), "") << none;
}

// Runs that start together try directories beside each other, and take away what they made: at
// times the parent of the other's.
TEST_F(FileBytes, DirectoriesThatOthersTakeAway) {
  const auto try_often = [&](const char* name) {
    for (int i = 0; i < 8000; ++i) remove_directories(create_directories(in(name)));
  };
  auto first = std::async(std::launch::async, [&] { try_often("sweep/rows/1"); });
  EXPECT_NO_THROW(try_often("sweep/rows/2"));
  EXPECT_NO_THROW(first.get());
}

TEST_F(FileBytes, DirectoriesAreCreatedOrNoneIs) {
  EXPECT_EQ(create_directories(in("a/b")), (Names{in("a"), in("a/b")}));
  EXPECT_EQ(create_directories(in("a/b")), Names{});
  write_file(in("a/file"), "x");
  EXPECT_THROW(create_directories(in("a/file/c")), Error);
  EXPECT_THROW(create_directories(in("new/" + std::string(300, 'n'))), Error);
  EXPECT_EQ(names(), Names{"a"});
}

}  // namespace
}  // namespace gptbench
