// Owners of HDF5 identifiers, and the translation of HDF5's failures into Error.
#pragma once

#include <hdf5.h>

#include <string>
#include <utility>

#include "base/error.h"

namespace gptbench {

// Owns one identifier (file, group, dataset, attribute, space, type or property list) and releases
// it; moves, does not copy.
class Hdf5Handle {
 public:
  Hdf5Handle() = default;
  // Takes over `id`. A negative one means that HDF5 failed: throws Error(Exit::io, "cannot
  // <what>").
  Hdf5Handle(hid_t id, const std::string& what) : id_(id) {
    if (id < 0) throw Error(Exit::io, "cannot " + what);
  }
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  Hdf5Handle(const Hdf5Handle&) = delete;
  Hdf5Handle& operator=(const Hdf5Handle&) = delete;
  // An identifier counts its references, whatever it names: one call releases every kind.
  ~Hdf5Handle() {
    if (id_ >= 0) H5Idec_ref(id_);
  }

  operator hid_t() const { return id_; }

  // Releases now and tells whether that worked: closing a file is what writes its last bytes.
  bool close() { return id_ < 0 || H5Idec_ref(std::exchange(id_, H5I_INVALID_HID)) >= 0; }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

// Throws Error(Exit::io, "cannot <what>") when an HDF5 call failed.
inline void hdf5_check(herr_t status, const std::string& what) {
  if (status < 0) throw Error(Exit::io, "cannot " + what);
}

// Keeps HDF5 from printing its error stack while it lives: what a user reads is our one line.
class Hdf5Quiet {
 public:
  Hdf5Quiet() {
    H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Hdf5Quiet() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }
  Hdf5Quiet(const Hdf5Quiet&) = delete;
  Hdf5Quiet& operator=(const Hdf5Quiet&) = delete;

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

}  // namespace gptbench
