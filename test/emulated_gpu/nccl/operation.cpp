#include "emulated_gpu/nccl/operation.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "emulated_gpu/gpu.h"
#include "emulated_gpu/nccl/communicator.h"
#include "emulated_gpu/nccl/reduce.h"
#include "emulated_gpu/streams.h"

namespace gptbench::emulation {
namespace {

// Kind, type, reduction and count are those of all ranks.
void check_same(const Note& mine, int rank, const Note& theirs, int peer) {
  if (mine.kind == theirs.kind && mine.type == theirs.type && mine.reduction == theirs.reduction &&
      mine.count == theirs.count && mine.number == theirs.number)
    return;
  misuse("NCCL: rank %d of a communicator is in %s, rank %d in %s", rank, describe(mine).c_str(),
         peer, describe(theirs).c_str());
}

bool same(const std::weak_ptr<Capture>& a, const std::weak_ptr<Capture>& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

}  // namespace

Operation::Operation(std::shared_ptr<ncclComm> comm, const Request& request, cudaStream_t stream,
                     const std::shared_ptr<Operation>& before)
    : comm_(std::move(comm)),
      request_(request),
      element_bytes_(size_of(request.note.type)),
      capture_(checked(stream, "NCCL")->capture) {
  if (before != nullptr && same(capture_, before->capture_)) before_ = before;
  ++comm_->operations_alive;
}

Operation::~Operation() {
  --comm_->operations_alive;
}

bool Operation::step() {
  if (comm_->aborted) {
    if (begun_) end();
    return true;
  }
  if (!begun_) {
    if (!may_begin()) return false;
    begin();
  }
  if (stalled_) return false;
  if (!advance()) {
    check_no_circle();
    return false;
  }
  end();
  return true;
}

// The operation before this one is gone when a stream has run it; in a graph it has then run once
// more than this one.
bool Operation::may_begin() const {
  const std::shared_ptr<Operation> before = before_.lock();
  return comm_->running == nullptr && (before == nullptr || before->runs_ > runs_);
}

void Operation::begin() {
  begun_ = true;
  comm_->running = this;
  note_ = request_.note;
  const size_t peer = static_cast<size_t>(std::max(note_.peer, 0));
  note_.number = note_.kind == Kind::send      ? comm_->sends_begun[peer]++
                 : note_.kind == Kind::receive ? comm_->receives_begun[peer]++
                                               : comm_->collectives_begun++;
  // A piece of a reduce_scatter holds as much for each rank.
  const size_t blocks = note_.kind == Kind::reduce_scatter ? static_cast<size_t>(comm_->ranks) : 1;
  piece_elements_ = piece_bytes / (element_bytes_ * blocks);
  pieces_ = std::max<uint64_t>(1, (note_.count + piece_elements_ - 1) / piece_elements_);
  const Board& board = *comm_->board;
  first_ = note_.kind == Kind::send      ? board.channel(comm_->rank, note_.peer).published.load()
           : note_.kind == Kind::receive ? board.channel(note_.peer, comm_->rank).taken.load()
                                         : board.seat(comm_->rank).collective.published.load();
  published_ = taken_ = 0;
  board.seat(comm_->rank).current.set(note_);
  const bool faulty = comm_->operations_begun++ == comm_->fault.operation;
  stalled_ =
      faulty && (comm_->fault.kind == FaultKind::error || comm_->fault.kind == FaultKind::silent);
  if (stalled_ && comm_->fault.kind == FaultKind::error)
    comm_->fail(ncclRemoteError, "the fault that the test asked for");
}

void Operation::end() {
  comm_->board->seat(comm_->rank).current.set({});
  comm_->running = nullptr;
  begun_ = false;
  ++runs_;
}

size_t Operation::elements_of(uint64_t piece) const {
  return std::min(piece_elements_, note_.count - piece * piece_elements_);
}

void Operation::copy(void* to, const void* from, size_t elements) const {
  if (elements > 0) std::memcpy(to, from, elements * element_bytes_);
}

bool Operation::advance() {
  switch (note_.kind) {
    case Kind::send:
      return advance_send();
    case Kind::receive:
      return advance_receive();
    default:
      return advance_collective();
  }
}

// The sender has not sent before the receiver has taken everything.
bool Operation::advance_send() {
  const Board& board = *comm_->board;
  Channel& channel = board.channel(comm_->rank, note_.peer);
  while (published_ < pieces_ && channel.taken.load() + 2 > first_ + published_) {
    const uint64_t piece = first_ + published_;
    copy(board.channel_data(comm_->rank, note_.peer, piece),
         static_cast<const char*>(request_.in) + published_ * piece_elements_ * element_bytes_,
         elements_of(published_));
    channel.notes[piece % 2] = note_;
    channel.published.store(piece + 1);
    ++published_;
  }
  return channel.taken.load() == first_ + pieces_;
}

bool Operation::advance_receive() {
  const Board& board = *comm_->board;
  Channel& channel = board.channel(note_.peer, comm_->rank);
  while (taken_ < pieces_ && channel.published.load() > first_ + taken_) {
    const uint64_t piece = first_ + taken_;
    Note expected = note_;
    expected.kind = Kind::send;
    expected.peer = comm_->rank;
    check_same(expected, comm_->rank, channel.notes[piece % 2], note_.peer);
    copy(static_cast<char*>(request_.out) + taken_ * piece_elements_ * element_bytes_,
         board.channel_data(note_.peer, comm_->rank, piece), elements_of(taken_));
    channel.taken.store(piece + 1);
    ++taken_;
  }
  return taken_ == pieces_;
}

void Operation::publish_collective(uint64_t piece) {
  const Board& board = *comm_->board;
  const size_t elements = elements_of(published_);
  const int blocks = note_.kind == Kind::reduce_scatter ? comm_->ranks : 1;
  for (int block = 0; block < blocks; ++block) {
    const size_t first = static_cast<size_t>(block) * note_.count + published_ * piece_elements_;
    copy(board.collective_data(comm_->rank, piece) +
             static_cast<size_t>(block) * piece_elements_ * element_bytes_,
         static_cast<const char*>(request_.in) + first * element_bytes_, elements);
  }
  Channel& mine = board.seat(comm_->rank).collective;
  mine.notes[piece % 2] = note_;
  mine.published.store(piece + 1);
}

void Operation::take_collective(uint64_t piece) {
  const Board& board = *comm_->board;
  std::vector<const void*> parts;
  for (int peer = 0; peer < comm_->ranks; ++peer) {
    check_same(note_, comm_->rank, board.seat(peer).collective.notes[piece % 2], peer);
    const size_t block = note_.kind == Kind::reduce_scatter ? static_cast<size_t>(comm_->rank) : 0;
    parts.push_back(board.collective_data(peer, piece) + block * piece_elements_ * element_bytes_);
  }
  const size_t elements = elements_of(taken_);
  char* const out = static_cast<char*>(request_.out) + taken_ * piece_elements_ * element_bytes_;
  if (note_.kind == Kind::all_gather)
    for (size_t peer = 0; peer < parts.size(); ++peer)
      copy(out + peer * note_.count * element_bytes_, parts[peer], elements);
  else
    reduce(out, parts.data(), comm_->ranks, elements, note_.type, note_.reduction);
  board.seat(comm_->rank).collective.taken.store(piece + 1);
}

// A half of a rank's memory is written again when all have taken what it held.
bool Operation::advance_collective() {
  const Board& board = *comm_->board;
  const auto all = [&](auto reached) {
    for (int peer = 0; peer < comm_->ranks; ++peer)
      if (!reached(board.seat(peer).collective)) return false;
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    const uint64_t next = first_ + published_;
    if (published_ < pieces_ &&
        all([=](const Channel& each) { return each.taken.load() + 2 > next; })) {
      publish_collective(next);
      ++published_;
      moved = true;
    }
    const uint64_t piece = first_ + taken_;
    if (taken_ < published_ &&
        all([=](const Channel& each) { return each.published.load() > piece; })) {
      take_collective(piece);
      ++taken_;
      moved = true;
    }
  }
  return taken_ == pieces_;
}

// Two ranks each in an operation that the other cannot begin before it has ended its own.
void Operation::check_no_circle() {
  const Board& board = *comm_->board;
  for (int peer = 0; peer < comm_->ranks; ++peer) {
    if (peer == comm_->rank || (!is_collective(note_.kind) && peer != note_.peer)) continue;
    const Note theirs = board.seat(peer).current.get();
    const size_t them = static_cast<size_t>(peer);
    bool needs_me = false;
    if (is_collective(theirs.kind))
      needs_me = !is_collective(note_.kind) && theirs.number >= comm_->collectives_begun;
    else if (theirs.kind != Kind::none && theirs.peer == comm_->rank)
      needs_me = theirs.number >= (theirs.kind == Kind::send ? comm_->receives_begun[them]
                                                             : comm_->sends_begun[them]);
    // It may have ended what I wait for before it began that.
    if (!needs_me || advance()) continue;
    misuse(
        "NCCL: ranks %d and %d of a communicator wait for each other, the one in %s, the other "
        "in %s",
        comm_->rank, peer, describe(note_).c_str(), describe(theirs).c_str());
  }
}

}  // namespace gptbench::emulation
