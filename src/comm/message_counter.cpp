#include "comm/message_counter.h"

#include <vector>

#include "comm/message_totals.h"

namespace gptbench {
namespace {

struct Watched {
  MPI_Comm comm;
  Axis axis;
};

struct Counter {
  std::vector<Watched> watched;
  MessageTotal totals[num_axes][num_op_kinds] = {};
};

Counter& counter() {
  static Counter instance;
  return instance;
}

int ranks_of(MPI_Comm comm) {
  int ranks = 1;
  PMPI_Comm_size(comm, &ranks);
  return ranks;
}

void count(MPI_Comm comm, OpKind kind, int elements, MPI_Datatype type, int ranks = 1) {
  for (const Watched& watched : counter().watched) {
    if (watched.comm != comm) continue;
    int type_bytes = 0;
    PMPI_Type_size(type, &type_bytes);
    count_message(watched.axis, kind, static_cast<int64_t>(elements) * type_bytes * ranks);
    return;
  }
}

}  // namespace

void count_messages_of(MPI_Comm comm, Axis axis) {
  counter().watched.push_back({comm, axis});
}

void forget_messages_of(MPI_Comm comm) {
  std::vector<Watched>& watched = counter().watched;
  for (size_t i = 0; i < watched.size(); ++i) {
    if (watched[i].comm != comm) continue;
    watched.erase(watched.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
}

MessageTotal messages_counted(Axis axis, OpKind kind) {
  return counter().totals[static_cast<int>(axis)][static_cast<int>(kind)];
}

void count_message(Axis axis, OpKind kind, int64_t bytes) {
  MessageTotal& total = counter().totals[static_cast<int>(axis)][static_cast<int>(kind)];
  total.messages += 1;
  total.bytes += bytes;
}

void reset_message_counts() {
  for (auto& axis : counter().totals)
    for (MessageTotal& total : axis) total = {};
}

}  // namespace gptbench

// Payload is that of the full array: what all ranks of a group gather or scatter together.
extern "C" {

int MPI_Iallreduce(const void* send, void* receive, int elements, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request* request) {
  gptbench::count(comm, gptbench::OpKind::all_reduce, elements, type);
  return PMPI_Iallreduce(send, receive, elements, type, op, comm, request);
}

int MPI_Ireduce_scatter_block(const void* send, void* receive, int elements, MPI_Datatype type,
                              MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  gptbench::count(comm, gptbench::OpKind::reduce_scatter, elements, type, gptbench::ranks_of(comm));
  return PMPI_Ireduce_scatter_block(send, receive, elements, type, op, comm, request);
}

int MPI_Iallgather(const void* send, int send_elements, MPI_Datatype send_type, void* receive,
                   int elements, MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
  gptbench::count(comm, gptbench::OpKind::all_gather, elements, type, gptbench::ranks_of(comm));
  return PMPI_Iallgather(send, send_elements, send_type, receive, elements, type, comm, request);
}

int MPI_Isend(const void* data, int elements, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request* request) {
  gptbench::count(comm, gptbench::OpKind::send, elements, type);
  return PMPI_Isend(data, elements, type, peer, tag, comm, request);
}

}  // extern "C"
