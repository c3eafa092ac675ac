// Reading of the arrays that io/tensor_file.h writes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gptbench {

// Names of all arrays ("group/name") and the values of one. Throw Error(Exit::io).
std::vector<std::string> tensor_names(const std::string& path);
std::vector<double> read_tensor(const std::string& path, const std::string& name,
                                std::vector<int64_t>* shape = nullptr);

}  // namespace gptbench
