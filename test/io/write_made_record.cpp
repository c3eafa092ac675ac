// write_made_record DIRECTORY: a result file with every dataset, for readers in other languages.
#include <cstdio>

#include "base/error.h"
#include "io/result_file.h"
#include "made_record.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    gptbench::write_result(argv[1], gptbench::made_record());
  } catch (const gptbench::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
  return 0;
}
