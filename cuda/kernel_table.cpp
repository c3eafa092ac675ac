#include "cuda/kernel_table.h"

#include <cstring>

#include "base/error.h"
#include "cuda/cuda_queue.h"
#include "cuda/kernels.h"

namespace gptbench {
namespace {

CublasLtGemm* active = nullptr;
AttentionLibrary* attention = nullptr;

template <ComputeType compute>
void linear_forward(Queue& queue, const LinearForward& arguments) {
  active->forward(stream_of(queue), activation_type(compute), arguments);
}

template <ComputeType compute>
void linear_backward_input(Queue& queue, const LinearBackwardInput& arguments) {
  active->backward_input(stream_of(queue), activation_type(compute), arguments);
}

template <ComputeType compute>
void linear_backward_weight(Queue& queue, const LinearBackwardWeight& arguments) {
  active->backward_weight(queue, activation_type(compute), arguments, cuda_kernels(compute));
}

template <ComputeType compute>
void linear_gelu_forward(Queue& queue, const LinearGeluForward& arguments) {
  active->gelu_forward(queue, activation_type(compute), arguments, cuda_kernels(compute));
}

template <ComputeType compute>
void linear_gelu_backward_input(Queue& queue, const LinearGeluBackwardInput& arguments) {
  active->gelu_backward_input(queue, activation_type(compute), arguments, cuda_kernels(compute));
}

template <ComputeType compute>
void attention_forward(Queue& queue, const AttentionForward& arguments) {
  if (attention == nullptr || !attention->forward(queue, activation_type(compute), arguments))
    cuda_kernels(compute).attention_forward(queue, arguments);
}

template <ComputeType compute>
void attention_backward(Queue& queue, const AttentionBackward& arguments) {
  if (attention == nullptr || !attention->backward(queue, activation_type(compute), arguments))
    cuda_kernels(compute).attention_backward(queue, arguments);
}

template <ComputeType compute>
const KernelTable& table_of() {
  static const KernelTable table = [] {
    KernelTable all = cuda_kernels(compute);
    all.linear_forward = linear_forward<compute>;
    all.linear_backward_input = linear_backward_input<compute>;
    all.linear_backward_weight = linear_backward_weight<compute>;
    all.linear_gelu_forward = linear_gelu_forward<compute>;
    all.linear_gelu_backward_input = linear_gelu_backward_input<compute>;
    all.attention_forward = attention_forward<compute>;
    all.attention_backward = attention_backward<compute>;
    return all;
  }();
  return table;
}

}  // namespace

void use_gemms(CublasLtGemm* gemms) {
  active = gemms;
}

void use_attention(AttentionLibrary* library) {
  attention = library;
}

const KernelTable& cuda_kernel_table(ComputeType compute) {
  GPTBENCH_CHECK(compute != ComputeType::fp64, "fp64 is computed by device = 'ref' alone");
  return compute == ComputeType::bf16   ? table_of<ComputeType::bf16>()
         : compute == ComputeType::fp16 ? table_of<ComputeType::fp16>()
                                        : table_of<ComputeType::fp32>();
}

std::vector<std::string> missing_kernels(const KernelTable& table) {
  using Entry = void (*)();
  constexpr size_t count = sizeof(KernelTable) / sizeof(Entry);
  Entry entries[count];
  std::memcpy(entries, &table, sizeof entries);
  std::vector<std::string> missing;
  for (size_t i = 0; i < count; ++i)
    if (entries[i] == nullptr) missing.emplace_back(kernel_names[i]);
  return missing;
}

}  // namespace gptbench
