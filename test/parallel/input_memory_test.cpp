#include "engine/input_memory.h"

#include <gtest/gtest.h>

#include <cstring>

#include "deck/config.h"
#include "device/device.h"

namespace gptbench {

// What a graph has recorded as the source of a copy must be there in every later step.
TEST(InputMemory, ArraysLieBehindEachOtherAtTheSamePlacesInEveryStep) {
  const auto device = make_host_device(DeviceKind::host);
  const auto queue = device->make_queue("test");
  InputMemory memory(*device);
  const char first[65] = {1}, second[3] = {2, 3, 4};
  EXPECT_EQ(InputMemory::reserved_bytes(65), 128);
  ASSERT_TRUE(memory.allocate(InputMemory::reserved_bytes(65) + InputMemory::reserved_bytes(3)));
  char to[65] = {};

  EXPECT_EQ(memory.put(*queue, to, first, 65), nullptr);  // uploaded
  memory.set_mode(InputMode::record);
  char* places[2][2];
  for (auto& place : places) {
    memory.begin_step();
    place[0] = static_cast<char*>(memory.put(*queue, to, first, 65));
    place[1] = static_cast<char*>(memory.put(*queue, to, second, 3));
  }
  queue->synchronize();
  EXPECT_EQ(places[1][0], places[0][0]);
  EXPECT_EQ(places[1][1], places[0][0] + 128);
  EXPECT_EQ(std::memcmp(places[1][0], first, 65), 0);
  EXPECT_EQ(std::memcmp(to, second, 3), 0);

  // The other set lies elsewhere, and what is put there leaves this one as it is.
  memory.use_set(1);
  memory.begin_step();
  char* const other = static_cast<char*>(memory.put(*queue, to, second, 3));
  EXPECT_GE(other, places[0][1] + 3);
  EXPECT_NE(memory.put(*queue, to, first, 65), nullptr);
  EXPECT_EQ(std::memcmp(places[0][0], first, 65), 0);
  memory.use_set(0);
  memory.begin_step();
  EXPECT_EQ(memory.put(*queue, to, first, 65), places[0][0]);
  EXPECT_NE(memory.put(*queue, to, second, 3), nullptr);
  EXPECT_DEATH(memory.put(*queue, to, second, 3), "page-locked memory");
}

}  // namespace gptbench
