#include "emulated_gpu/nccl/board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <stdexcept>

#include "emulated_gpu/gpu.h"

namespace gptbench::emulation {
namespace {

// At the start of the memory; tells one communicator's from any other's of the same number.
struct Header {
  char token[32];
  std::atomic<int32_t> ranks;  // 0 until the first joins
};
constexpr size_t header_bytes = 4096;
static_assert(sizeof(Header) <= header_bytes);
static_assert(std::atomic<uint64_t>::is_always_lock_free, "shared between processes");

constexpr char id_format[] = "emulated NCCL, process %d, file %d, token %31s";

// A page each, so that the data behind them stays aligned.
constexpr size_t page(size_t bytes) {
  return (bytes + 4095) / 4096 * 4096;
}

const char* name_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat16:
      return "f16";
    case ncclFloat32:
      return "f32";
    case ncclFloat64:
      return "f64";
    case ncclBfloat16:
      return "bf16";
    default:
      return "u8";
  }
}

// One that has ended and that its parent has not waited for does not.
bool lives(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return false;
  const size_t name = line.rfind(')');
  return name == std::string::npos || line.compare(name, 3, ") Z") != 0;
}

}  // namespace

bool is_collective(Kind kind) {
  return kind == Kind::all_reduce || kind == Kind::reduce_scatter || kind == Kind::all_gather;
}

std::string describe(const Note& note) {
  static const char* const names[] = {"nothing",    "all_reduce", "reduce_scatter",
                                      "all_gather", "send",       "receive"};
  std::string text = names[static_cast<int>(note.kind)];
  if (note.kind == Kind::none) return text;
  if (note.kind == Kind::send) text += " to rank " + std::to_string(note.peer);
  if (note.kind == Kind::receive) text += " from rank " + std::to_string(note.peer);
  text += " number " + std::to_string(note.number) + " of " + std::to_string(note.count) + " " +
          name_of(note.type);
  if (note.kind == Kind::all_reduce || note.kind == Kind::reduce_scatter)
    text += note.reduction == ncclMax ? " (max)" : " (sum)";
  return text;
}

// Odd while it is written.
void CurrentNote::set(const Note& note) {
  const uint64_t version = version_.load(std::memory_order_relaxed);
  version_.store(version + 1);
  kind_.store(static_cast<uint32_t>(note.kind));
  type_.store(static_cast<uint32_t>(note.type));
  reduction_.store(static_cast<uint32_t>(note.reduction));
  peer_.store(note.peer);
  count_.store(note.count);
  number_.store(note.number);
  version_.store(version + 2);
}

// The current note; empty where its writer ended in the middle.
Note CurrentNote::get() const {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const uint64_t version = version_.load();
    Note note;
    note.kind = static_cast<Kind>(kind_.load());
    note.type = static_cast<ncclDataType_t>(type_.load());
    note.reduction = static_cast<ncclRedOp_t>(reduction_.load());
    note.peer = peer_.load();
    note.count = count_.load();
    note.number = number_.load();
    if (version % 2 == 0 && version_.load() == version) return note;
  }
  return {};
}

ncclUniqueId Board::make() {
  const int file = memfd_create("emulated_nccl", MFD_CLOEXEC);
  if (file < 0) throw std::runtime_error(std::string("memfd_create: ") + std::strerror(errno));
  std::random_device random;
  char token[32];
  std::snprintf(token, sizeof token, "%08x%08x%08x", random(), random(), random());
  if (pwrite(file, token, sizeof token, 0) != sizeof token)
    throw std::runtime_error(std::string("pwrite: ") + std::strerror(errno));
  ncclUniqueId id{};
  std::snprintf(id.internal, sizeof id.internal, id_format, static_cast<int>(getpid()), file,
                token);
  return id;
}

Board::Board(const ncclUniqueId& id, int ranks) : ranks_(ranks), memory_(nullptr) {
  int process = 0, number = 0;
  char token[32] = "";
  if (std::memchr(id.internal, 0, sizeof id.internal) == nullptr ||
      std::sscanf(id.internal, id_format, &process, &number, token) != 3)
    misuse("ncclCommInitRankConfig: the unique id is none that ncclGetUniqueId made");
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(number);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) throw std::runtime_error("the process that made the unique id has ended");
  struct stat status {};
  char found[32] = "";
  // Grown by all alike: the file never shrinks below what another has mapped.
  const bool ours = fstat(file, &status) == 0 && pread(file, found, sizeof found, 0) > 0 &&
                    std::strncmp(found, token, sizeof found) == 0 &&
                    (static_cast<size_t>(status.st_size) >= bytes() ||
                     ftruncate(file, static_cast<off_t>(bytes())) == 0);
  void* const memory =
      ours ? mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  close(file);
  if (memory == MAP_FAILED) throw std::runtime_error("the memory of the unique id is gone");
  memory_ = static_cast<char*>(memory);
  int32_t nobody = 0;
  std::atomic<int32_t>& all = reinterpret_cast<Header*>(memory_)->ranks;
  if (!all.compare_exchange_strong(nobody, ranks) && nobody != ranks)
    misuse("ncclCommInitRankConfig: one rank says %d ranks, another %d", ranks, nobody);
}

Board::~Board() {
  munmap(memory_, bytes());
}

size_t Board::channels_offset() const {
  return header_bytes + page(sizeof(Seat) * static_cast<size_t>(ranks_));
}

size_t Board::data_offset() const {
  return channels_offset() + page(sizeof(Channel) * static_cast<size_t>(ranks_ * ranks_));
}

size_t Board::bytes() const {
  return data_offset() + 2 * piece_bytes * static_cast<size_t>(ranks_ * (ranks_ + 1));
}

Seat& Board::seat(int rank) const {
  return reinterpret_cast<Seat*>(memory_ + header_bytes)[rank];
}

char* Board::collective_data(int rank, uint64_t piece) const {
  return memory_ + data_offset() + (2 * static_cast<size_t>(rank) + piece % 2) * piece_bytes;
}

Channel& Board::channel(int from, int to) const {
  return reinterpret_cast<Channel*>(memory_ + channels_offset())[from * ranks_ + to];
}

char* Board::channel_data(int from, int to, uint64_t piece) const {
  const size_t channel = static_cast<size_t>(ranks_ + from * ranks_ + to);
  return memory_ + data_offset() + (2 * channel + piece % 2) * piece_bytes;
}

bool Board::all(SeatState wanted) const {
  for (int rank = 0; rank < ranks_; ++rank)
    if (seat(rank).state.load() < wanted) return false;
  return true;
}

int Board::gone(int but) {
  const auto now = std::chrono::steady_clock::now();
  const bool look = now - looked_ > std::chrono::milliseconds(5);
  if (look) looked_ = now;
  for (int rank = 0; rank < ranks_; ++rank) {
    const Seat& peer = seat(rank);
    const SeatState state = peer.state.load();
    if (rank == but || state == SeatState::empty) continue;
    if (state == SeatState::aborted) return rank;
    if (!look || state != SeatState::taken || lives(peer.process.load())) continue;
    // Read again: the peer may have finalized and ended since.
    if (peer.state.load() == SeatState::taken) return rank;
  }
  return -1;
}

}  // namespace gptbench::emulation
