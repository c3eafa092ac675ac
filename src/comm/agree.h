// Agreement of all ranks on what some of them met: an error, or a reason in words.
#pragma once

#include <string>

#include "base/error.h"
#include "comm/mpi_world.h"

namespace gptbench {

// An Error that every rank throws alike, so that rank 0 can print it and all can end in order.
class AgreedError : public Error {
 public:
  using Error::Error;
};

// Collective. Calls `local` on every rank; where it throws Error on any, all ranks throw
// AgreedError with the message and code of the lowest such rank.
template <class Local>
void agreed(MpiWorld& world, Local local) {
  std::string message;
  int64_t code = 0;
  try {
    local();
  } catch (const Error& error) {
    message = error.what();
    code = static_cast<int64_t>(error.code());
  }
  const int64_t none = world.size();
  const int64_t first = world.min(code != 0 ? world.rank() : none);
  if (first == none) return;
  code = world.max(world.rank() == first ? code : int64_t{0});
  const std::vector<std::string> all =
      world.gather(world.rank() == first ? message : std::string());
  if (world.rank() == 0) message = all[static_cast<size_t>(first)];
  world.broadcast(message);
  throw AgreedError(static_cast<Exit>(code), message);
}

// Collective. The text of the lowest rank that has one, on all ranks; "" where none has.
inline std::string first_text(MpiWorld& world, const std::string& mine) {
  std::string first;
  for (const std::string& text : world.gather(mine)) {
    if (text.empty()) continue;
    first = text;
    break;
  }
  world.broadcast(first);
  return first;
}

}  // namespace gptbench
