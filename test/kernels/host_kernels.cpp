// The kernels under test: the host's. GPTBENCH_TEST_BF16_PRODUCTS=converted has them compute large
// bf16 products by way of f32, as they do where the GEMM library is slow at bf16.
#include <cstdlib>
#include <string>

#include "device/gemm_onednn.h"
#include "kernel_test.h"

namespace gptbench::test {

const KernelTable& kernels_under_test(const Device& host, ComputeType compute) {
  const char* const products = std::getenv("GPTBENCH_TEST_BF16_PRODUCTS");
  if (products != nullptr && std::string(products) == "converted")
    set_bf16_products(Bf16Products::converted);
  return host.kernels(compute);
}

}  // namespace gptbench::test
