#include "project/profile.h"

#include <algorithm>
#include <variant>

#include "base/error.h"
#include "deck/binder.h"
#include "deck/deck.h"
#include "deck/presets.h"

namespace gptbench {
namespace {

template <class Profile>
struct ProfileKey {
  const char* name;
  std::variant<double Profile::*, std::string Profile::*> field;
  const char* doc;
};

using M = Machine;
using S = Software;
#define GPTBENCH_MACHINE_ROW(key, doc) {#key, &M::key, doc},
const std::vector<ProfileKey<M>> machine_keys = {
    {"device", &M::device, "data sheet of input/devices.in"},
    GPTBENCH_MACHINE_KEYS(GPTBENCH_MACHINE_ROW)};
#define GPTBENCH_SOFTWARE_ROW(key, doc) {#key, &S::key, doc},
const std::vector<ProfileKey<S>> software_keys = {GPTBENCH_SOFTWARE_KEYS(GPTBENCH_SOFTWARE_ROW)};

template <class Profile>
void read(const Source& source, const Assignment& assignment, const std::string& group,
          const std::vector<ProfileKey<Profile>>& keys, Claims& claims, Profile& profile) {
  const auto row = std::find_if(keys.begin(), keys.end(),
                                [&](const auto& each) { return assignment.key == each.name; });
  if (row == keys.end()) {
    std::vector<std::string> names;
    for (const auto& each : keys) names.push_back(each.name);
    source.fail(assignment.place, "unknown key '" + assignment.key + "' of &" + group +
                                      key_hint(assignment.key, names));
  }
  Key key;
  key.group = group;
  key.name = row->name;
  key.type = row->field.index() == 0 ? KeyType::real : KeyType::string;
  key.max = 1e9;
  for (const Element& element : claims.take(source, key, assignment)) {
    const KeyValue value = read_scalar(source, key, *element.token);
    if (key.type == KeyType::real)
      profile.*std::get<0>(row->field) = std::get<double>(value);
    else
      profile.*std::get<1>(row->field) = std::get<std::string>(value);
  }
}

// The text of a profile: of the program's own by name, else of the file.
std::string text_of(const std::string& what, const std::string& name,
                    const std::vector<Preset>& known) {
  std::vector<std::string> names;
  for (const Preset& each : known) {
    if (each.name == name) return each.text;
    names.push_back(each.name);
  }
  if (name.find_first_of("./") != std::string::npos) return read_deck_text(name);
  throw Error(Exit::usage, "unknown " + what + " '" + name + "'; known: " + join(names, ", ") +
                               "; or give the path of a profile of your own");
}

template <class Profile>
Profile read_profile(const std::string& group, const std::string& name,
                     const std::vector<Preset>& known,
                     const std::vector<ProfileKey<Profile>>& keys) {
  const std::string text = text_of(group, name, known);
  const Source source{name};
  const std::vector<Group> groups = parse_namelist(source, text);
  if (groups.size() != 1 || groups[0].name != group)
    source.fail(groups.empty() ? Place{1, 1} : groups.back().place,
                "a profile of this kind is one group &" + group);
  Profile profile;
  profile.name = name;
  Claims claims;
  std::vector<std::string> missing;
  for (const auto& key : keys) missing.push_back(key.name);
  for (const Assignment& assignment : groups[0].assignments) {
    read(source, assignment, group, keys, claims, profile);
    missing.erase(std::remove(missing.begin(), missing.end(), assignment.key), missing.end());
  }
  if (!missing.empty())
    source.fail(groups[0].place,
                "&" + group + " must give every key; missing: " + join(missing, ", "));
  return profile;
}

template <class Profile>
double* figure_of(Profile& profile, const std::vector<ProfileKey<Profile>>& keys,
                  const std::string& name) {
  for (const auto& key : keys)
    if (key.name == name && key.field.index() == 0) return &(profile.*std::get<0>(key.field));
  return nullptr;
}

}  // namespace

const DeviceData& Machine::data() const {
  const DeviceData* const found = find_device(device);
  if (found == nullptr)
    throw Error(Exit::usage, "machine " + name + ": no data sheet of '" + device +
                                 "'; gptbench --devices lists those that are known");
  return *found;
}

double Machine::peak(const std::string& type) const {
  const DevicePeak peak = known_peak(data().name, type, clock_ghz);
  if (peak.tflops <= 0.0)
    throw Error(Exit::usage, "machine " + name + ": the data sheet of " + device +
                                 " has no peak of " + type + " at this clock");
  return peak.tflops * 1e12;
}

Machine read_machine(const std::string& name_or_path) {
  Machine machine = read_profile("machine", name_or_path, embedded_machines(), machine_keys);
  machine.data();
  return machine;
}

Software read_software(const std::string& name_or_path) {
  return read_profile("software", name_or_path, embedded_software(), software_keys);
}

double* find_figure(Machine& machine, const std::string& key) {
  return figure_of(machine, machine_keys, key);
}

double* find_figure(Software& software, const std::string& key) {
  return figure_of(software, software_keys, key);
}

}  // namespace gptbench
