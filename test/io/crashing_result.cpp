#include "crashing_result.h"

#include <fstream>
#include <random>

#include "base/error.h"
#include "io/checksum.h"
#include "io/guarded_read.h"
#include "io/result_file.h"
#include "made_record.h"

namespace gptbench {

Bytes crashing_result() {
  const Bytes whole = encode_result(made_record());
  // Without its checksum, or the damage would not reach HDF5.
  const Bytes good(whole.begin() + checksum_block_bytes, whole.end());
  const char* const name = "perhaps_crashing.h5";
  std::mt19937 random(1);
  for (int tries = 0; tries < 500; ++tries) {
    Bytes bytes = good;
    for (int flips = 0; flips < 8; ++flips)
      bytes[8 + random() % (bytes.size() / 2)] = static_cast<unsigned char>(random());
    std::ofstream(name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    try {
      read_result_guarded(name, {1, 300});
    } catch (const Error& error) {
      if (std::string(error.what()).find("HDF5 crashed") != std::string::npos) return bytes;
    }
  }
  return {};
}

}  // namespace gptbench
