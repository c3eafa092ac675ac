#include "io/result_file.h"

#include <sys/stat.h>

#include "base/error.h"
#include "base/units.h"
#include "io/reduce.h"

namespace gptbench {
namespace {

std::string path_in(const std::string& directory, const std::string& name) {
  if (directory.empty()) return name;
  return directory.back() == '/' ? directory + name : directory + "/" + name;
}

}  // namespace

void check_output_directory(const std::string& directory) {
  std::vector<std::string> created;
  const std::string result = path_in(directory, "result.h5");
  try {
    if (!directory.empty()) created = create_directories(directory);
    NewFile probe(result);
    probe.write_at(0, "", 1);
    probe.sync();
    struct stat info;
    if (::stat(result.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
      throw Error(Exit::io, result + ": is a directory");
  } catch (const Error& error) {
    remove_directories(created);
    throw Error(Exit::io, std::string("output directory ") + error.what() +
                              "; name a writable one in output.directory");
  }
  remove_directories(created);
}

std::string write_result(const std::string& directory, const Record& record, int64_t most_bytes) {
  if (!directory.empty()) create_directories(directory);
  const Bytes bytes = encode_result(reduced_over_ranks(record));
  const std::string path = path_in(directory, "result.h5");
  if (static_cast<int64_t>(bytes.size()) > most_bytes)
    throw Error(Exit::io, path + ": would have " +
                              format_bytes(static_cast<int64_t>(bytes.size())) +
                              ", more than the " + format_bytes(most_bytes) +
                              " of the largest result; train fewer steps in a run, and continue it "
                              "with run.resume");
  return write_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                    Existing::kept_numbered);
}

Record read_result(const std::string& path) {
  const Bytes bytes = read_bytes(path, largest_result_bytes);
  try {
    return decode_result(bytes);
  } catch (const Error& error) {
    throw Error(Exit::io, path + ": " + error.what());
  }
}

}  // namespace gptbench
