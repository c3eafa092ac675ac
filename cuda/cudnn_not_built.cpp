// Where cuDNN's headers were not found when gptbench was built.
#include "cuda/attention_library.h"

namespace gptbench {

std::unique_ptr<AttentionLibrary> make_cudnn_attention(const AttentionPolicy& /*policy*/,
                                                       std::string& obstacle) {
  obstacle =
      "run.attention = 'cudnn': built without cuDNN, whose headers were not found; use "
      "run.attention = 'native'";
  return nullptr;
}

}  // namespace gptbench
