// Where the ranks of one communicator meet: memory that their processes share. The process that
// made the unique id owns it as a file without a name, which the others open through /proc as long
// as that process lives (with the library, too, it is the one that the others call first); nothing
// is left behind when processes die.
#pragma once

#include <nccl.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace gptbench::emulation {

constexpr int max_ranks = 64;
// What a rank can have on its way in one message; two of them at a time.
constexpr size_t piece_bytes = 128 * 1024;
constexpr size_t gpu_name_bytes = 32;

enum class Kind : uint32_t { none, all_reduce, reduce_scatter, all_gather, send, receive };

// One operation as its rank was asked for it.
struct Note {
  Kind kind = Kind::none;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t reduction = ncclSum;
  int peer = -1;        // of send and receive
  uint64_t count = 0;   // elements, as the call states them
  uint64_t number = 0;  // how many came before: collectives, or messages from the one to the other
};
bool is_collective(Kind kind);
// "all_reduce number 3 of 5 f32 (sum)"
std::string describe(const Note& note);

// Pieces of data from one rank, counted from the first operation on. Piece p lies in half p % 2 of
// the channel's memory, with the operation that it belongs to.
struct Channel {
  // What connects the two: each has been asked for its first message to, or from, the other.
  std::atomic<bool> sender_asked, receiver_asked;
  alignas(64) std::atomic<uint64_t> published;
  alignas(64) std::atomic<uint64_t> taken;
  Note notes[2];
};

// What a rank is doing: an operation between begin and end, readable by all at any time.
class CurrentNote {
 public:
  void set(const Note& note);
  Note get() const;

 private:
  std::atomic<uint64_t> version_;
  std::atomic<uint32_t> kind_, type_, reduction_;
  std::atomic<int32_t> peer_;
  std::atomic<uint64_t> count_, number_;
};

enum class SeatState : uint32_t { empty, taken, finalized, aborted };

struct Seat {
  std::atomic<SeatState> state;
  std::atomic<int32_t> process;
  char gpu[gpu_name_bytes];  // written before state is `taken`
  CurrentNote current;
  // Collectives; `taken` counts the pieces that this rank has taken from everyone.
  Channel collective;
};

class Board {
 public:
  // Makes the memory of one communicator, in this process.
  static ncclUniqueId make();

  // The communicator's memory of `ranks` ranks; throws std::runtime_error where it cannot be
  // opened.
  Board(const ncclUniqueId& id, int ranks);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  int ranks() const { return ranks_; }
  Seat& seat(int rank) const;
  char* collective_data(int rank, uint64_t piece) const;
  Channel& channel(int from, int to) const;  // `taken` counts what the receiver has taken
  char* channel_data(int from, int to, uint64_t piece) const;

  // Whether `state` is `wanted` or beyond on all seats.
  bool all(SeatState wanted) const;
  // A rank but this whose process no longer lives (looked at now and then) or has aborted; -1:
  // none.
  int gone(int but);

 private:
  size_t channels_offset() const;
  size_t data_offset() const;
  size_t bytes() const;

  int ranks_;
  char* memory_;
  std::chrono::steady_clock::time_point looked_{};
};

}  // namespace gptbench::emulation
