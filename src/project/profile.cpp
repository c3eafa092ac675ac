#include "project/profile.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "deck/deck.h"
#include "deck/member_keys.h"
#include "deck/presets.h"

namespace gptbench {
namespace {

template <class T>
MemberKey<T> figure_key(const char* name, double T::*member, const FigureRange& range) {
  MemberKey<T> key{name, member};
  key.may_be_zero = range.may_be_zero;
  key.max = range.max;
  key.is_whole = range.whole;
  key.is_optional = range.optional;
  return key;
}
MemberKey<Machine> collectives_key() {
  MemberKey<Machine> key{"collectives", &Machine::collectives, collective_algorithms};
  key.is_optional = true;
  return key;
}
MemberKey<Machine> unmeasured_key() {
  MemberKey<Machine> key{"unmeasured", &Machine::unmeasured};
  key.is_optional = true;
  return key;
}
MemberKey<Software> known_devices_key() {
  MemberKey<Software> key{"known_devices", &Software::known_devices};
  key.is_optional = true;
  return key;
}
#define GPTBENCH_MACHINE_ROW(key, range, doc) \
  figure_key<Machine>(#key, &Machine::key, figure_range::range),
const std::vector<MemberKey<Machine>> machine_keys = {{"device", &Machine::device},
                                                      GPTBENCH_MACHINE_KEYS(GPTBENCH_MACHINE_ROW)
                                                          collectives_key(),
                                                      unmeasured_key()};
#define GPTBENCH_SOFTWARE_ROW(key, range, doc) \
  figure_key<Software>(#key, &Software::key, figure_range::range),
const std::vector<MemberKey<Software>> software_keys = {
    GPTBENCH_SOFTWARE_KEYS(GPTBENCH_SOFTWARE_ROW) known_devices_key()};

// The text of a profile: of the program's own by name, of this machine as "local", else of the
// file.
std::string text_of(const std::string& what, const std::string& name,
                    const std::vector<Preset>& known) {
  std::vector<std::string> names;
  for (const Preset& each : known) {
    if (each.name == name) return each.text;
    names.push_back(each.name);
  }
  const std::string kind = what + " profile";
  if (name.find_first_of("./") != std::string::npos) return read_deck_text(name, kind);
  if (what == "machine" && name == "local") {
    std::error_code unreadable;  // says the same as a missing one
    if (std::filesystem::exists(local_profile, unreadable))
      return read_deck_text(local_profile, kind);
    throw Error(Exit::usage, std::string("machine 'local': there is no ") + local_profile +
                                 "; gptbench --calibrate measures this machine and says which "
                                 "file to copy there");
  }
  throw Error(Exit::usage, "unknown " + what + " '" + name + "'; known: " + join(names, ", ") +
                               "; or give the path of a profile of your own");
}

// A profile's file: its source and groups.
struct ProfileFile {
  Source source;
  std::vector<Group> groups;
};
ProfileFile read_file(const std::string& group, const std::string& name,
                      const std::vector<Preset>& known) {
  const Source source{name};
  return {source, parse_namelist(source, text_of(group, name, known))};
}

// The group of the file that states the profile.
template <class Profile>
Profile profile_of(const ProfileFile& file, const std::string& group,
                   const std::vector<MemberKey<Profile>>& keys) {
  const auto is_own = [&](const Group& each) { return each.name == group; };
  const auto own = std::find_if(file.groups.begin(), file.groups.end(), is_own);
  if (std::count_if(file.groups.begin(), file.groups.end(), is_own) != 1)
    file.source.fail(file.groups.empty() ? Place{1, 1} : file.groups.back().place,
                     "a profile of this kind has one group &" + group);
  Profile profile = read_members(file.source, *own, keys, "of &" + group);
  profile.name = file.source.name;
  std::vector<std::string> missing;
  for (const auto& key : keys)
    if (!key.is_optional &&
        std::none_of(own->assignments.begin(), own->assignments.end(),
                     [&](const Assignment& each) { return each.key == key.name; }))
      missing.push_back(key.name);
  if (!missing.empty())
    file.source.fail(own->place,
                     "&" + group + " must give every key; missing: " + join(missing, ", "));
  return profile;
}

Software software_of(const ProfileFile& file) {
  Software software = profile_of(file, "software", software_keys);
  if (software.known_devices.empty() != (software.spread_elsewhere == 0.0))
    throw Error(Exit::usage, "software " + software.name +
                                 ": known_devices and spread_elsewhere say together how far "
                                 "projections are off on other devices; one is missing");
  return software;
}

template <class Profile>
double* figure_of(Profile& profile, const std::vector<MemberKey<Profile>>& keys,
                  const std::string& name) {
  for (const auto& key : keys)
    if (const auto* field = std::get_if<double Profile::*>(&key.member); name == key.name && field)
      return &(profile.**field);
  return nullptr;
}

void check_topology(const Machine& machine) {
  const auto refuse = [&](const char* why) {
    throw Error(Exit::usage, "machine " + machine.name + ": " + why);
  };
  if ((machine.group_nodes > 0.0) != (machine.beyond_gb_per_s > 0.0))
    refuse("group_nodes and beyond_gb_per_s say together how groups are connected; one is missing");
  if (machine.group_nodes > 0.0 && machine.torus_dimensions > 0.0)
    refuse("a torus has no groups; torus_dimensions or group_nodes, not both");
  if (!machine.may_use("ring") && !machine.may_use("halving-doubling"))
    refuse("collectives = 'tree': only all-reduces are trees; add 'ring' or 'halving-doubling'");
}

}  // namespace

const DeviceData& Machine::data() const {
  if (sheet.name == lower(device)) return sheet;
  const DeviceData* const found = find_device(device);
  if (found == nullptr)
    throw Error(Exit::usage, "machine " + name + ": no data sheet of '" + device +
                                 "'; gptbench --devices lists those that are known");
  return *found;
}

bool Machine::may_use(const std::string& algorithm) const {
  return collectives.empty() ||
         std::find(collectives.begin(), collectives.end(), algorithm) != collectives.end();
}

bool Software::knows(const std::string& device) const {
  return known_devices.empty() ||
         std::find(known_devices.begin(), known_devices.end(), device) != known_devices.end();
}

double Software::spread_of(const std::string& device, double ranks) const {
  const double doublings = std::max(0.0, std::log2(ranks / known_ranks));
  return (knows(device) ? spread : spread_elsewhere) + spread_per_doubling * doublings;
}

double Machine::peak(const std::string& type) const {
  const DevicePeak peak = peak_of(data(), type, clock_ghz);
  if (peak.tflops <= 0.0)
    throw Error(Exit::usage, "machine " + name + ": the data sheet of " + device +
                                 " has no peak of " + type + " at this clock");
  return peak.tflops * 1e12;
}

double Machine::capped_peak(const std::string& type) const {
  if (capped_clock_ghz <= 0.0) return peak(type);
  if (clock_ghz <= 0.0)
    throw Error(Exit::usage,
                "machine " + name + ": capped_clock_ghz needs clock_ghz, that of the peaks");
  if (capped_clock_ghz > clock_ghz)
    throw Error(
        Exit::usage,
        "machine " + name + ": capped_clock_ghz is above clock_ghz; 0 is a clock without a cap");
  return peak(type) * (capped_clock_ghz / clock_ghz);
}

Machine read_machine(const std::string& name_or_path) {
  const ProfileFile file = read_file("machine", name_or_path, embedded_machines());
  Machine machine = profile_of(file, "machine", machine_keys);
  for (const Group& group : file.groups) {
    if (group.name == lower(machine.device)) machine.sheet = read_device(file.source, group);
    if (group.name == shapes_group) machine.shapes = read_shapes(file.source, group);
  }
  machine.data();
  check_topology(machine);
  return machine;
}

Software read_software(const std::string& name_or_path) {
  return software_of(read_file("software", name_or_path, embedded_software()));
}

Software software_of_profile(const std::string& machine_name_or_path) {
  const ProfileFile file = read_file("machine", machine_name_or_path, embedded_machines());
  const bool has_own = std::any_of(file.groups.begin(), file.groups.end(),
                                   [](const Group& each) { return each.name == "software"; });
  return has_own ? software_of(file) : read_software("gptbench");
}

std::string profile_text(const Machine& machine, const Software& software,
                         const std::map<std::string, std::string>& comments) {
  return (machine.sheet.name.empty() ? "" : device_text(machine.sheet)) + "&machine\n" +
         members_text(machine, machine_keys, comments) + "/\n&software\n" +
         members_text(software, software_keys, comments) + "/\n" + shapes_text(machine.shapes);
}

double* find_figure(Machine& machine, const std::string& key) {
  return figure_of(machine, machine_keys, key);
}

double* find_figure(Software& software, const std::string& key) {
  return figure_of(software, software_keys, key);
}

}  // namespace gptbench
