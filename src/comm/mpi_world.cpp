#include "comm/mpi_world.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/failpoint.h"
#include "comm/mpi_communicator.h"
#include "comm/pulse.h"

namespace gptbench {
namespace {

template <class T>
T reduced(T value, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const Pulse::Waiting waiting;
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &value, 1, type, op, comm), "MPI_Allreduce");
  return value;
}

template <class T>
void sum_values(std::vector<T>& values, MPI_Datatype type, int rank, MPI_Comm comm) {
  const Pulse::Waiting waiting;
  check_mpi(MPI_Reduce(rank == 0 ? MPI_IN_PLACE : values.data(), values.data(),
                       static_cast<int>(values.size()), type, MPI_SUM, 0, comm),
            "MPI_Reduce");
  if (rank != 0) std::fill(values.begin(), values.end(), T{});
}

// On rank 0, text of each rank, in messages of `most` bytes at most.
std::vector<std::string> gather_one_by_one(const std::string& text, int rank, int size, int most,
                                           MPI_Comm comm) {
  const Pulse::Waiting waiting;
  const auto for_each_message = [most](std::string& whole, const auto& transfer) {
    for (size_t at = 0; at < whole.size(); at += static_cast<size_t>(most)) {
      const size_t bytes = std::min(whole.size() - at, static_cast<size_t>(most));
      transfer(whole.data() + at, static_cast<int>(bytes));
    }
  };
  std::vector<std::string> texts;
  if (rank != 0) {
    std::string own = text;
    const auto length = static_cast<int64_t>(own.size());
    check_mpi(MPI_Send(&length, 1, MPI_INT64_T, 0, 0, comm), "MPI_Send");
    for_each_message(own, [&](char* from, int bytes) {
      check_mpi(MPI_Send(from, bytes, MPI_CHAR, 0, 0, comm), "MPI_Send");
    });
    return texts;
  }
  texts.push_back(text);
  for (int r = 1; r < size; ++r) {
    int64_t length = 0;
    check_mpi(MPI_Recv(&length, 1, MPI_INT64_T, r, 0, comm, MPI_STATUS_IGNORE), "MPI_Recv");
    texts.emplace_back(static_cast<size_t>(length), '\0');
    for_each_message(texts.back(), [&](char* to, int bytes) {
      check_mpi(MPI_Recv(to, bytes, MPI_CHAR, r, 0, comm, MPI_STATUS_IGNORE), "MPI_Recv");
    });
  }
  return texts;
}

}  // namespace

struct MpiWorld::Communicators {
  MPI_Comm world = MPI_COMM_NULL;  // a duplicate: its errors return, its messages are separate
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Win node_memory = MPI_WIN_NULL;

  // Collective over the world: the group of place `rank` of the grid along `axis`. Its members
  // share its first rank, which serves as the group's colour. Null for ranks between first and last
  // stage, which are in no group of the embedding, and for those that are not on the grid: -1.
  MPI_Comm along(const Grid& grid, Axis axis, int64_t rank) const {
    int size = 0;
    MPI_Comm_size(world, &size);
    GPTBENCH_CHECK(rank < grid.size() && grid.size() <= size, "the grid covers the ranks on it");
    const int place = static_cast<int>(grid.place_of(rank, axis));
    const int colour = place < 0 ? MPI_UNDEFINED : static_cast<int>(grid.member_of(rank, axis, 0));
    MPI_Comm comm = MPI_COMM_NULL;
    check_mpi(MPI_Comm_split(world, colour, place, &comm), "MPI_Comm_split");
    return comm;
  }
};

MpiWorld::MpiWorld(int* argc, char*** argv) : comms_(std::make_unique<Communicators>()) {
  int initialised = 0;
  MPI_Initialized(&initialised);
  owns_mpi_ = initialised == 0;
  int provided = 0;
  if (owns_mpi_) failpoint("initialise");
  if (owns_mpi_) MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
  if (owns_mpi_ && provided < MPI_THREAD_FUNNELED)
    throw Error(Exit::usage,
                "the MPI library provides no MPI_THREAD_FUNNELED, which a program with threads "
                "needs; use one that was built with threads");
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comms_->world), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(comms_->world, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comms_->world, &rank_);
  MPI_Comm_size(comms_->world, &size_);

  check_mpi(
      MPI_Comm_split_type(comms_->world, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &comms_->node),
      "MPI_Comm_split_type");
  if (const char* ranks = std::getenv("GPTBENCH_RANKS_PER_NODE")) {  // tests: nodes on one machine
    MPI_Comm machine = std::exchange(comms_->node, MPI_COMM_NULL);
    check_mpi(MPI_Comm_split(machine, rank_ / std::max(1, std::atoi(ranks)), rank_, &comms_->node),
              "MPI_Comm_split");
    MPI_Comm_free(&machine);
  }
  MPI_Comm_rank(comms_->node, &node_rank_);
  MPI_Comm_size(comms_->node, &node_size_);
  const int leads = node_rank_ == 0 ? 1 : 0;
  check_mpi(MPI_Allreduce(&leads, &num_nodes_, 1, MPI_INT, MPI_SUM, comms_->world),
            "MPI_Allreduce");
  int leads_until_here = 0;
  check_mpi(MPI_Scan(&leads, &leads_until_here, 1, MPI_INT, MPI_SUM, comms_->world), "MPI_Scan");
  node_ = leads_until_here - 1;
  check_mpi(MPI_Bcast(&node_, 1, MPI_INT, 0, comms_->node), "MPI_Bcast");
}

MpiWorld::~MpiWorld() {
  if (owns_mpi_) failpoint("finalize");
  if (comms_->node_memory != MPI_WIN_NULL) MPI_Win_free(&comms_->node_memory);
  MPI_Comm_free(&comms_->node);
  MPI_Comm_free(&comms_->world);
  if (owns_mpi_) MPI_Finalize();
}

void MpiWorld::broadcast(std::string& text) {
  int64_t length = static_cast<int64_t>(text.size());
  broadcast(length);
  text.resize(static_cast<size_t>(length));
  const Pulse::Waiting waiting;
  check_mpi(MPI_Bcast(text.data(), static_cast<int>(length), MPI_CHAR, 0, comms_->world),
            "MPI_Bcast");
}

void MpiWorld::broadcast(int64_t& value) {
  const Pulse::Waiting waiting;
  check_mpi(MPI_Bcast(&value, 1, MPI_INT64_T, 0, comms_->world), "MPI_Bcast");
}

bool MpiWorld::all(bool condition) {
  return min(condition ? int64_t{1} : int64_t{0}) == 1;
}

double MpiWorld::max(double value) {
  return reduced(value, MPI_DOUBLE, MPI_MAX, comms_->world);
}

int64_t MpiWorld::max(int64_t value) {
  return reduced(value, MPI_INT64_T, MPI_MAX, comms_->world);
}

int64_t MpiWorld::min(int64_t value) {
  return reduced(value, MPI_INT64_T, MPI_MIN, comms_->world);
}

int64_t MpiWorld::sum(int64_t value) {
  return reduced(value, MPI_INT64_T, MPI_SUM, comms_->world);
}

int64_t MpiWorld::node_sum(int64_t value) {
  return reduced(value, MPI_INT64_T, MPI_SUM, comms_->node);
}

std::vector<int64_t> MpiWorld::node_sizes() {
  std::vector<int64_t> sizes(static_cast<size_t>(num_nodes_));
  if (node_rank_ == 0) sizes[static_cast<size_t>(node_)] = node_size_;
  const Pulse::Waiting waiting;
  check_mpi(
      MPI_Allreduce(MPI_IN_PLACE, sizes.data(), num_nodes_, MPI_INT64_T, MPI_SUM, comms_->world),
      "MPI_Allreduce");
  return sizes;
}

std::vector<double> MpiWorld::gather(const std::vector<double>& values) {
  const Pulse::Waiting waiting;
  const int count = static_cast<int>(values.size());
  std::vector<double> all(rank_ == 0 ? values.size() * static_cast<size_t>(size_) : 0);
  check_mpi(
      MPI_Gather(values.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, 0, comms_->world),
      "MPI_Gather");
  return all;
}

std::vector<std::string> MpiWorld::gather(const std::string& text, int most_at_once) {
  if (sum(static_cast<int64_t>(text.size())) > most_at_once)
    return gather_one_by_one(text, rank_, size_, most_at_once, comms_->world);
  const Pulse::Waiting waiting;
  const int length = static_cast<int>(text.size());
  std::vector<int> lengths(rank_ == 0 ? static_cast<size_t>(size_) : 0), offsets(lengths.size());
  check_mpi(MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, comms_->world),
            "MPI_Gather");
  int total = 0;
  for (size_t r = 0; r < lengths.size(); ++r) {
    offsets[r] = total;
    total += lengths[r];
  }
  std::string joined(static_cast<size_t>(total), '\0');
  check_mpi(MPI_Gatherv(text.data(), length, MPI_CHAR, joined.data(), lengths.data(),
                        offsets.data(), MPI_CHAR, 0, comms_->world),
            "MPI_Gatherv");
  std::vector<std::string> texts;
  for (size_t r = 0; r < lengths.size(); ++r)
    texts.push_back(
        joined.substr(static_cast<size_t>(offsets[r]), static_cast<size_t>(lengths[r])));
  return texts;
}

void MpiWorld::sum_on_first(std::vector<double>& values) {
  sum_values(values, MPI_DOUBLE, rank_, comms_->world);
}

void MpiWorld::sum_on_first(std::vector<uint64_t>& values) {
  sum_values(values, MPI_UINT64_T, rank_, comms_->world);
}

void MpiWorld::barrier_asleep() {
  const Pulse::Waiting waiting;
  MPI_Request request;
  check_mpi(MPI_Ibarrier(comms_->world, &request), "MPI_Ibarrier");
  for (int done = 0; done == 0;) {
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done == 0) ::usleep(500);
  }
}

void MpiWorld::barrier() {
  const Pulse::Waiting waiting;
  check_mpi(MPI_Barrier(comms_->world), "MPI_Barrier");
}

void* MpiWorld::share_on_node(int64_t bytes) {
  GPTBENCH_CHECK(comms_->node_memory == MPI_WIN_NULL, "memory of the node is shared once");
  const MPI_Aint total = node_rank_ == 0 ? static_cast<MPI_Aint>(bytes) : 0;
  void* memory = nullptr;
  MPI_Comm_set_errhandler(comms_->node, MPI_ERRORS_RETURN);
  const bool shared = MPI_Win_allocate_shared(total, 1, MPI_INFO_NULL, comms_->node, &memory,
                                              &comms_->node_memory) == MPI_SUCCESS;
  MPI_Aint size = 0;
  int unit = 1;
  if (shared)
    check_mpi(MPI_Win_shared_query(comms_->node_memory, 0, &size, &unit, &memory),
              "MPI_Win_shared_query");
  if (!all(shared)) return nullptr;
  if (node_rank_ == 0) std::memset(memory, 0, static_cast<size_t>(bytes));
  barrier();
  return memory;
}

std::unique_ptr<Communicator> MpiWorld::make_communicator(const Grid& grid, Axis axis) {
  return make_communicator(grid, axis, rank_);
}

std::unique_ptr<Communicator> MpiWorld::make_communicator(const Grid& grid, Axis axis,
                                                          int64_t grid_rank) {
  const MPI_Comm comm = comms_->along(grid, axis, grid_rank);
  if (comm == MPI_COMM_NULL) return nullptr;
  return std::make_unique<MpiCommunicator>(comm, axis);
}

struct MpiGroup::Handle {
  MPI_Comm comm = MPI_COMM_NULL;
};

MpiGroup::MpiGroup(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {
  MPI_Comm_rank(handle_->comm, &rank_);
  MPI_Comm_size(handle_->comm, &size_);
}

MpiGroup::~MpiGroup() {
  MPI_Comm_free(&handle_->comm);
}

void MpiGroup::broadcast(void* data, int bytes, int64_t root) {
  if (size_ == 1) return;
  const Pulse::Waiting waiting;
  check_mpi(MPI_Bcast(data, bytes, MPI_BYTE, static_cast<int>(root), handle_->comm), "MPI_Bcast");
}

std::unique_ptr<MpiGroup> MpiWorld::make_group(const Grid& grid, Axis axis) {
  auto handle = std::make_unique<MpiGroup::Handle>();
  handle->comm = comms_->along(grid, axis, rank_);
  GPTBENCH_CHECK(handle->comm != MPI_COMM_NULL, "every rank is on the axis");
  return std::unique_ptr<MpiGroup>(new MpiGroup(std::move(handle)));
}

void MpiWorld::abort(int exit_status) {
  MPI_Abort(MPI_COMM_WORLD, exit_status);
  std::abort();
}

}  // namespace gptbench
