#include "base/convert.h"

#include <type_traits>

namespace gptbench {
namespace {

// f(element of the storage type `type`).
template <class Function>
void with_storage(DType type, const Function& f) {
  if (type == DType::f64)
    f(double{});
  else if (type == DType::bf16)
    f(bfloat16{});
  else if (type == DType::f16)
    f(float16{});
  else
    f(float{});
}

}  // namespace

void convert_elements(const void* from, DType from_type, void* to, DType to_type, int64_t n) {
  if (from_type == to_type) {
    std::memcpy(to, from, static_cast<size_t>(n * size_of(to_type)));
    return;
  }
  with_storage(from_type, [&](auto source) {
    with_storage(to_type, [&](auto target) {
      // Types of two bytes convert to and from float.
      using Through = std::conditional_t<sizeof source == 2 || sizeof target == 2, float, double>;
      const char* in = static_cast<const char*>(from);
      char* out = static_cast<char*>(to);
      for (int64_t i = 0; i < n; ++i, in += sizeof source, out += sizeof target) {
        std::memcpy(&source, in, sizeof source);
        target = static_cast<decltype(target)>(static_cast<Through>(source));
        std::memcpy(out, &target, sizeof target);
      }
    });
  });
}

bool all_finite(const void* elements, DType type, int64_t n) {
  // A number is not finite where all bits of its exponent are set.
  const auto none_has = [&](auto exponent) {
    const char* at = static_cast<const char*>(elements);
    bool finite = true;
    for (int64_t i = 0; i < n; ++i, at += sizeof exponent) {
      auto bits = exponent;
      std::memcpy(&bits, at, sizeof bits);
      finite &= (bits & exponent) != exponent;
    }
    return finite;
  };
  if (type == DType::f64) return none_has(uint64_t{0x7ff0} << 48);
  if (type == DType::bf16) return none_has(uint16_t{0x7f80});
  if (type == DType::f16) return none_has(uint16_t{0x7c00});
  return none_has(uint32_t{0x7f800000});
}

}  // namespace gptbench
