#include "comm/mpi_communicator.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "comm/message_counter.h"
#include "comm/pulse.h"
#include "plan/messages.h"

namespace gptbench {
namespace {

// MPI has no 16-bit floating-point types: bf16 and f16 are sent as uint16 and added in float.
template <class T>
void add_narrow(void* in, void* inout, int* length, MPI_Datatype*) {
  const auto* x = static_cast<const T*>(in);
  auto* y = static_cast<T*>(inout);
  for (int i = 0; i < *length; ++i) y[i] = T(static_cast<float>(x[i]) + static_cast<float>(y[i]));
}

MPI_Datatype mpi_type(DType type) {
  switch (type) {
    case DType::f32:
      return MPI_FLOAT;
    case DType::f64:
      return MPI_DOUBLE;
    case DType::bf16:
    case DType::f16:
      return MPI_UINT16_T;
    case DType::fp8_e4m3:  // gathered, never added
      return MPI_UINT8_T;
    default:
      break;
  }
  GPTBENCH_CHECK(false, std::string("no message of type ") + name_of(type));
  return MPI_BYTE;
}

MPI_Op sum_of(DType type) {
  static MPI_Op bfloat16_sum = MPI_OP_NULL, float16_sum = MPI_OP_NULL;
  if (type != DType::bf16 && type != DType::f16) return MPI_SUM;
  const bool is_bfloat16 = type == DType::bf16;
  MPI_Op& sum = is_bfloat16 ? bfloat16_sum : float16_sum;
  if (sum == MPI_OP_NULL)
    MPI_Op_create(is_bfloat16 ? add_narrow<bfloat16> : add_narrow<float16>, 1, &sum);
  return sum;
}

int as_int(int64_t count) {
  GPTBENCH_CHECK(count <= std::numeric_limits<int>::max(), "a message of fewer than 2^31 elements");
  return static_cast<int>(count);
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

MpiCommunicator::MpiCommunicator(MPI_Comm comm, Axis axis) : comm_(comm) {
  MPI_Comm_size(comm_, &size_);
  MPI_Comm_rank(comm_, &rank_);
  count_messages_of(comm_, axis);
}

MpiCommunicator::~MpiCommunicator() {
  forget_messages_of(comm_);
  MPI_Comm_free(&comm_);
}

void MpiCommunicator::enqueue(Queue& queue, const CommRequest& request) {
  auto& host_queue = static_cast<HostQueue&>(queue);
  Work& work = free_work();
  work.set(*this, request);
  host_queue.add(work);
  host_queue.progress();
  CommStatistics& statistics = statistics_[static_cast<size_t>(request.kind)];
  statistics.count += 1;
  statistics.bytes += request.full_count(size_) * size_of(request.type);
}

// The pool goes round; where one queue is far behind the others, it grows.
MpiCommunicator::Work& MpiCommunicator::free_work() {
  for (size_t tried = 0; tried < pool_.size(); ++tried) {
    next_ = (next_ + 1) % pool_.size();
    if (!pool_[next_].busy()) return pool_[next_];
  }
  return pool_.emplace_back();
}

void MpiCommunicator::Work::set(MpiCommunicator& owner, const CommRequest& request) {
  owner_ = &owner;
  request_ = request;
  started_ = 0;
  start_s_ = pending_s_ = -1.0;
  times_ = std::exchange(owner.trace_next_, nullptr);
  busy_ = true;
}

void MpiCommunicator::Work::start() {
  const CommRequest& a = request_;
  const MPI_Comm comm = owner_->comm_;
  MPI_Request* request = &requests_[0];
  const int count = as_int(a.count);
  const MPI_Datatype type = mpi_type(a.type);
  started_ = a.count;
  switch (a.kind) {
    case OpKind::reduce_scatter:
      check_mpi(MPI_Ireduce_scatter_block(a.in, a.out, count, type, sum_of(a.type), comm, request),
                "MPI_Ireduce_scatter_block");
      break;
    case OpKind::all_gather: {
      const char* own = static_cast<const char*>(a.out) + owner_->rank_ * a.count * size_of(a.type);
      check_mpi(MPI_Iallgather(own == a.in ? MPI_IN_PLACE : a.in, count, type, a.out, count, type,
                               comm, request),
                "MPI_Iallgather");
      break;
    }
    case OpKind::send:
      check_mpi(MPI_Isend(a.in, count, type, a.peer, a.tag, comm, request), "MPI_Isend");
      break;
    case OpKind::receive:
      check_mpi(MPI_Irecv(a.out, count, type, a.peer, a.tag, comm, request), "MPI_Irecv");
      break;
    default:
      GPTBENCH_CHECK(false, "a message of a known kind");
      break;
  }
}

void MpiCommunicator::Work::start_pieces() {
  const int64_t piece = max_message_bytes / size_of(request_.type);
  for (MPI_Request& request : requests_) {
    if (request != MPI_REQUEST_NULL || started_ == request_.count) continue;
    const int64_t elements = std::min(piece, request_.count - started_);
    char* data = static_cast<char*>(request_.out) + started_ * size_of(request_.type);
    check_mpi(
        MPI_Iallreduce(MPI_IN_PLACE, data, static_cast<int>(elements), mpi_type(request_.type),
                       request_.maximum ? MPI_MAX : sum_of(request_.type), owner_->comm_, &request),
        "MPI_Iallreduce");
    started_ += elements;
  }
}

bool MpiCommunicator::Work::finished() const {
  return started_ == request_.count && requests_[0] == MPI_REQUEST_NULL &&
         requests_[1] == MPI_REQUEST_NULL;
}

bool MpiCommunicator::Work::test() {
  const bool in_pieces = request_.kind == OpKind::all_reduce;
  if (start_s_ < 0.0) {
    start_s_ = pending_s_ = now_s();
    if (!in_pieces && request_.count > 0) start();
  }
  if (in_pieces) start_pieces();
  for (MPI_Request& request : requests_) {
    int done = 0;
    if (request != MPI_REQUEST_NULL)
      check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) pulse.advance();
  }
  if (in_pieces) start_pieces();
  const double tested_s = now_s();
  if (!finished()) {
    pending_s_ = tested_s;
    return false;
  }
  CommStatistics& statistics = owner_->statistics_[static_cast<size_t>(request_.kind)];
  statistics.least_s += pending_s_ - start_s_;
  statistics.time_s += tested_s - start_s_;
  if (times_ != nullptr) *times_ = {start_s_, pending_s_, tested_s};
  busy_ = false;
  return true;
}

}  // namespace gptbench
