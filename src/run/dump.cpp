#include "run/dump.h"

#include <algorithm>

#include "base/pieces.h"
#include "comm/agree.h"
#include "engine/gather.h"
#include "io/file_bytes.h"

namespace gptbench {

Dump::Dump(MpiWorld& world, const Plan& plan) : world_(world), plan_(plan) {
  agreed(world_, [&] {
    if (world_.rank() != 0 || plan_.config.output.dump == DumpContent::none) return;
    create_directories(plan_.config.output.directory);
    file_ = std::make_unique<TensorFile>(plan_.config.output.directory + "/dump.h5");
  });
}

void Dump::weights(Engine& engine, const std::string& group) {
  if (plan_.config.output.dump == DumpContent::weights)
    write(engine, Role::master, group, "master weights");
}

void Dump::gradients(Engine& engine) {
  if (plan_.config.output.dump != DumpContent::none)
    write(engine, Role::gradient, "gradients",
          "gradient of the first step's mean loss, before clipping");
}

void Dump::write(Engine& engine, Role role, const std::string& group,
                 const std::string& description) {
  for (size_t i = 0; i < plan_.tensors.size(); ++i) {
    const LogicalTensor& tensor = plan_.tensors[i];
    std::vector<int64_t> shape = {tensor.rows};
    if (tensor.dimensions == 2) shape.push_back(tensor.cols);
    agreed(world_, [&] {
      if (file_ != nullptr) file_->begin(group + "/" + tensor.name, shape, description);
    });
    const int64_t rows_at_once = std::max<int64_t>(1, staging_elements / tensor.cols);
    for (int64_t row = 0; row < tensor.rows; row += rows_at_once) {
      const int64_t rows = std::min(rows_at_once, tensor.rows - row);
      const std::vector<double> values =
          gather(world_, engine, role, static_cast<int>(i), row * tensor.cols, rows * tensor.cols);
      agreed(world_, [&] {
        if (file_ != nullptr) file_->write_rows(row, rows, values.data());
      });
    }
  }
}

void Dump::close() {
  agreed(world_, [&] {
    if (file_ != nullptr) file_->close();
  });
}

}  // namespace gptbench
