// Descriptors of cuDNN's back-end interface as the emulated library keeps them: attributes until
// they are finalised, and then what they describe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulated_gpu/cudnn/graph.h"

namespace gptbench::emulation {

// What cudnnGetLastErrorString() says.
std::string& last_error();
cudnnStatus_t refused(cudnnStatus_t status, const std::string& reason);

struct Value {
  cudnnBackendAttributeType_t type;
  int64_t count = 0;
  std::vector<char> bytes;
};

struct Descriptor {
  cudnnBackendDescriptorType_t type{};
  bool finalized = false, destroyed = false;
  std::map<cudnnBackendAttributeName_t, Value> attributes;

  std::shared_ptr<const Operation> operation;  // of an operation
  std::shared_ptr<const Graph> graph;  // of a graph, its heuristics, configurations and plans
  int engine = 0;                      // of a configuration or plan

  template <class T>
  std::vector<T> values(cudnnBackendAttributeName_t name) const;
  template <class T>
  T value(cudnnBackendAttributeName_t name, T otherwise) const {
    const std::vector<T> all = values<T>(name);
    return all.empty() ? otherwise : all.front();
  }
  // The descriptor that the attribute holds; null where it is not set.
  Descriptor* other(cudnnBackendAttributeName_t name) const;
};

// Ends the process where it is none, or was destroyed.
Descriptor& checked(cudnnBackendDescriptor_t descriptor, const char* call);

// Bytes that an engine wants of the call's workspace.
int64_t workspace_of(const Graph& graph, int engine);

cudnnStatus_t set_attribute(Descriptor& descriptor, cudnnBackendAttributeName_t name,
                            cudnnBackendAttributeType_t type, int64_t count, const void* values);
cudnnStatus_t finalize(Descriptor& descriptor);
// Whether descriptors of that type are emulated.
bool has_rules(cudnnBackendDescriptorType_t type);

constexpr int num_engines = 3, unsupported_engine = 1;

}  // namespace gptbench::emulation
