// write_made_record DIRECTORY [TEXT]: a result file with every dataset, for readers in other
// languages; TEXT becomes the run's name, its machine and its reason. Each directory is that of
// another run.
// write_made_record --crashing FILE: a damaged one, on which HDF5 crashes; status 77 where none is
// found.
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "crashing_result.h"
#include "io/result_file.h"
#include "made_record.h"

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return 2;
  try {
    if (std::strcmp(argv[1], "--crashing") == 0) {
      const gptbench::Bytes bytes = gptbench::crashing_result();
      if (bytes.empty()) return 77;
      gptbench::write_file(argv[2], {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      return 0;
    }
    gptbench::Record record = gptbench::made_record();
    record.provenance.argv += std::string(" output.directory=") + argv[1];
    if (argc == 3) {
      gptbench::set_key(record, "run", "name", std::string(argv[2]));
      record.machine = record.outcome.reason = argv[2];
    }
    gptbench::write_result(argv[1], record);
  } catch (const gptbench::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
  return 0;
}
