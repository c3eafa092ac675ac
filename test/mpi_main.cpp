// main() of the tests that run on several ranks. Rank 0 prints the progress; a failure on any rank
// is printed with its rank and makes the test, and the program on every rank, fail. A program all
// of whose tests were skipped ends with status 77, which CTest counts as skipped.
#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

struct World {
  MPI_Comm comm;  // the tests' own traffic never meets ours
  int rank;
  int size;
};

// How long a rank that failed waits for the others to end the same test. They may be stuck in a
// collective call that it never reached.
constexpr std::chrono::seconds patience{60};

// Gathers whether each rank failed. A rank that did gives up on the others after `patience`.
std::vector<int> gather_failures(const World& world, bool failed) {
  const int mine = failed ? 1 : 0;
  std::vector<int> all(static_cast<size_t>(world.size));
  MPI_Request request;
  MPI_Iallgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, world.comm, &request);
  const auto start = std::chrono::steady_clock::now();
  int done = 0;
  while (done == 0) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (failed && std::chrono::steady_clock::now() - start > patience) {
      std::fprintf(stderr, "rank %d: failed, and another rank does not end this test\n",
                   world.rank);
      std::fflush(stderr);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (done == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return all;
}

// Prints the failures of ranks other than 0, whose printer is gtest's own.
class FailurePrinter : public testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(const World& world) : world_(world) {}

  void OnTestStart(const testing::TestInfo& test) override {
    test_ = std::string(test.test_suite_name()) + "." + test.name();
  }

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed() && !result.skipped()) return;
    std::fprintf(stderr, "rank %d: %s: %s:%d: %s\n", world_.rank, test_.c_str(),
                 result.file_name() != nullptr ? result.file_name() : "unknown file",
                 result.line_number(), result.message());
    std::fflush(stderr);
  }

  void OnTestEnd(const testing::TestInfo&) override { test_ = "(outside a test)"; }

 private:
  World world_;
  std::string test_ = "(outside a test)";  // gtest holds its lock while a result is reported
};

// Ends every test together on all ranks, so that a failure is counted where it belongs.
class Agreement : public testing::EmptyTestEventListener {
 public:
  explicit Agreement(const World& world) : world_(world) {}

  void OnTestEnd(const testing::TestInfo& test) override {
    const bool failed = test.result()->Failed();
    const std::vector<int> all = gather_failures(world_, failed);
    std::string ranks;
    for (size_t rank = 0; rank < all.size(); ++rank)
      if (all[rank] != 0) ranks += " " + std::to_string(rank);
    if (world_.rank == 0 && !failed && !ranks.empty()) ADD_FAILURE() << "failed on ranks" << ranks;
  }

 private:
  World world_;
};

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  testing::InitGoogleTest(&argc, argv);
  World world{};
  MPI_Comm_dup(MPI_COMM_WORLD, &world.comm);
  MPI_Comm_rank(world.comm, &world.rank);
  MPI_Comm_size(world.comm, &world.size);

  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  if (world.rank != 0) {
    delete listeners.Release(listeners.default_result_printer());
    delete listeners.Release(listeners.default_xml_generator());
    listeners.Append(new FailurePrinter(world));
  } else {
    std::printf("%d ranks\n", world.size);
  }
  listeners.Append(new Agreement(world));

  int status = RUN_ALL_TESTS();
  // Failures outside of tests (environments, suites) are known only now.
  for (int failed : gather_failures(world, status != 0))
    if (failed != 0) status = EXIT_FAILURE;
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  constexpr int all_skipped = 77;
  if (status == 0 && tests.skipped_test_count() > 0 &&
      tests.skipped_test_count() == tests.test_to_run_count())
    status = all_skipped;
  MPI_Comm_free(&world.comm);
  MPI_Finalize();
  return status;
}
