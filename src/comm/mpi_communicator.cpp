#include "comm/mpi_communicator.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "comm/message_counter.h"
#include "plan/messages.h"

namespace gptbench {
namespace {

MPI_Datatype mpi_type(DType type) {
  GPTBENCH_CHECK(type == DType::f32 || type == DType::f64, "sums over ranks are of f32 or f64");
  return type == DType::f32 ? MPI_FLOAT : MPI_DOUBLE;
}

}  // namespace

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(Exit::peer,
              std::string(call) + ": " + std::string(text, static_cast<size_t>(length)));
}

MpiCommunicator::MpiCommunicator(MPI_Comm comm, Axis axis) : comm_(comm), pool_(max_pending) {
  MPI_Comm_size(comm_, &size_);
  MPI_Comm_rank(comm_, &rank_);
  count_messages_of(comm_, axis);
}

MpiCommunicator::~MpiCommunicator() {
  forget_messages_of(comm_);
  MPI_Comm_free(&comm_);
}

void MpiCommunicator::all_reduce(Queue& queue, void* data, int64_t count, DType type) {
  auto& host_queue = static_cast<HostQueue&>(queue);
  AllReduce& work = pool_[static_cast<size_t>(next_)];
  next_ = (next_ + 1) % max_pending;
  if (work.busy()) host_queue.synchronize();
  work.set(*this, data, count, type);
  host_queue.add(work);
  host_queue.progress();
  all_reduce_.count += 1;
  all_reduce_.bytes += count * size_of(type);
}

void MpiCommunicator::AllReduce::set(MpiCommunicator& owner, void* data, int64_t count,
                                     DType type) {
  owner_ = &owner;
  data_ = static_cast<char*>(data);
  count_ = count;
  type_ = type;
  started_ = 0;
  start_s_ = -1.0;
  busy_ = true;
}

void MpiCommunicator::AllReduce::start_pieces() {
  if (start_s_ < 0.0) start_s_ = MPI_Wtime();
  const int64_t piece = max_message_bytes / size_of(type_);
  for (MPI_Request& request : requests_) {
    if (request != MPI_REQUEST_NULL || started_ == count_) continue;
    const int64_t elements = std::min(piece, count_ - started_);
    check_mpi(
        MPI_Iallreduce(MPI_IN_PLACE, data_ + started_ * size_of(type_), static_cast<int>(elements),
                       mpi_type(type_), MPI_SUM, owner_->comm_, &request),
        "MPI_Iallreduce");
    started_ += elements;
  }
}

bool MpiCommunicator::AllReduce::finished() const {
  return started_ == count_ && requests_[0] == MPI_REQUEST_NULL && requests_[1] == MPI_REQUEST_NULL;
}

bool MpiCommunicator::AllReduce::test() {
  start_pieces();
  for (MPI_Request& request : requests_) {
    int done = 0;
    if (request != MPI_REQUEST_NULL)
      check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  }
  start_pieces();
  if (!finished()) return false;
  owner_->all_reduce_.time_s += MPI_Wtime() - start_s_;
  busy_ = false;
  return true;
}

void MpiCommunicator::AllReduce::wait() {
  while (!test()) {
    int index = 0;
    check_mpi(MPI_Waitany(2, requests_, &index, MPI_STATUS_IGNORE), "MPI_Waitany");
  }
}

}  // namespace gptbench
