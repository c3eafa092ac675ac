// MPI set-up and the control plane: small blocking exchanges outside of the timed step. mpi.h
// itself stays inside src/comm.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace gptbench {

// Control plane of the ranks of one group along an axis.
class MpiGroup {
 public:
  ~MpiGroup();
  MpiGroup(const MpiGroup&) = delete;
  MpiGroup& operator=(const MpiGroup&) = delete;
  int64_t rank() const { return rank_; }  // place in the group
  int64_t size() const { return size_; }
  // Collective over the group. `bytes` bytes of the member at place `root` on all members.
  void broadcast(void* data, int bytes, int64_t root);

 private:
  friend class MpiWorld;
  struct Handle;
  explicit MpiGroup(std::unique_ptr<Handle> handle);
  std::unique_ptr<Handle> handle_;
  int rank_ = 0, size_ = 1;
};

// Initialises MPI on construction and finalises it on destruction, unless MPI is initialised
// already (by a test program). All members but the accessors are collective over all ranks.
class MpiWorld {
 public:
  MpiWorld(int* argc, char*** argv);
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  int64_t rank() const { return rank_; }  // global
  int64_t size() const { return size_; }
  int64_t node() const { return node_; }  // index of the node; nodes are ordered by first rank
  int64_t num_nodes() const { return num_nodes_; }
  int64_t node_rank() const { return node_rank_; }  // place on the node
  int64_t node_size() const { return node_size_; }  // ranks on this node

  // `text` of rank 0 on all ranks.
  void broadcast(std::string& text);
  void broadcast(int64_t& value);
  bool all(bool condition);  // whether it is true on all ranks; the same result on all
  double max(double value);
  int64_t max(int64_t value);
  int64_t min(int64_t value);
  int64_t sum(int64_t value);
  int64_t node_sum(int64_t value);    // over the ranks of this node
  std::vector<int64_t> node_sizes();  // ranks of each node, on all ranks
  // Rank 0 receives values of rank r at [r * values.size()]; the others an empty vector. All ranks
  // pass the same number of values.
  std::vector<double> gather(const std::vector<double>& values);
  // Rank 0 receives one text per rank; the others an empty vector. MPI counts bytes of a message
  // as int: texts that have more than `most_at_once` together are sent one by one.
  std::vector<std::string> gather(const std::string& text,
                                  int most_at_once = std::numeric_limits<int>::max());
  // values[i] = sum over all ranks, on rank 0; zeros on the others.
  void sum_on_first(std::vector<double>& values);
  void sum_on_first(std::vector<uint64_t>& values);  // modulo 2^64
  void barrier();
  // For waits of seconds: MPI libraries spin, and take the processor from a rank that works.
  void barrier_asleep();
  // Memory of `bytes` zeros that the ranks of a node share, as long as this object lives; null on
  // all ranks where some node has none. Once.
  void* share_on_node(int64_t bytes);

  // Group of this rank along `axis` of `grid`, which covers all ranks; the host as device.
  std::unique_ptr<Communicator> make_communicator(const Grid& grid, Axis axis);
  // The same on a grid that may cover fewer ranks, where this one has the place `grid_rank`; -1,
  // and a null communicator: it has none.
  std::unique_ptr<Communicator> make_communicator(const Grid& grid, Axis axis, int64_t grid_rank);

  // The same ranks on the control plane; not of the embedding, whose axis some ranks are not on.
  std::unique_ptr<MpiGroup> make_group(const Grid& grid, Axis axis);

  // Ends all ranks at once; does not return. For CHECK failures (base/error.h).
  [[noreturn]] static void abort(int exit_status);

 private:
  bool owns_mpi_ = true;
  int rank_ = 0, size_ = 1;
  int node_ = 0, num_nodes_ = 1, node_rank_ = 0, node_size_ = 1;
  struct Communicators;
  std::unique_ptr<Communicators> comms_;
};

}  // namespace gptbench
