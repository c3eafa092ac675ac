// Profiles: those of the program are complete and say where each figure comes from.
#include "project/profile.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "deck/presets.h"

namespace gptbench {
namespace {

TEST(Profiles, AreCompleteAndNamed) {
  ASSERT_EQ(embedded_machines().size(), 6u);
  for (const Preset& each : embedded_machines()) {
    const Machine machine = read_machine(each.name);
    EXPECT_EQ(machine.name, each.name);
    EXPECT_GT(machine.peak(machine.accelerator != 0.0 ? "bf16" : "fp32"), 0.0) << each.name;
  }
  ASSERT_EQ(embedded_software().size(), 5u);
  for (const Preset& each : embedded_software())
    EXPECT_EQ(read_software(each.name).name, each.name);
}

// A source, or "fitted" and to which table; nothing is assumed.
TEST(Profiles, SayWhereEachFigureComesFrom) {
  for (const auto* profiles : {&embedded_machines(), &embedded_software()})
    for (const Preset& each : *profiles) {
      std::istringstream text(each.text);
      for (std::string line; std::getline(text, line);)
        if (const size_t equals = line.find(" = ");
            equals != std::string::npos && line[0] != '!' &&
            line.find("device =") == std::string::npos &&
            line.find("accelerator =") == std::string::npos) {
          ASSERT_NE(line.find('!'), std::string::npos) << each.name << ": " << line;
          EXPECT_GT(line.size(), line.find('!') + 5) << each.name << ": " << line;
          EXPECT_EQ(line.find("assum"), std::string::npos) << each.name << ": " << line;
        }
    }
}

TEST(Profiles, KeysAreDocumented) {
  std::ifstream file(GPTBENCH_SOURCE_DIR "/input/profiles.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  const auto in_page = [&](const std::string& row) {
    EXPECT_NE(page.find(row), std::string::npos) << row;
  };
#define GPTBENCH_IN_PAGE(key, range, doc) \
  in_page(std::string("| `" #key "` | " doc " | ") + figure_range::range.text + " |");
  GPTBENCH_MACHINE_KEYS(GPTBENCH_IN_PAGE)
  GPTBENCH_SOFTWARE_KEYS(GPTBENCH_IN_PAGE)
}

// "local" is the file of the working folder, whatever it was when the program was built.
TEST(Profiles, LocalIsTheMachineAtHand) {
  namespace fs = std::filesystem;
  const fs::path before = fs::current_path(), folder = before / "local_machine";
  fs::remove_all(folder);
  fs::create_directories(folder / "input/machines");
  fs::current_path(folder);
  std::string message;
  try {
    read_machine("local");
  } catch (const Error& error) {
    message = error.what();
  }
  EXPECT_EQ(message.rfind("machine 'local': there is no input/machines/local.in; ", 0), 0u)
      << message;
  fs::copy_file(GPTBENCH_SOURCE_DIR "/input/machines/h100.in", local_profile);
  EXPECT_EQ(read_machine("local").units, read_machine("h100").units);
  EXPECT_EQ(read_machine("local").name, "local");
  // A link to itself, as which the system names no file.
  fs::remove_all("input");
  fs::create_symlink("input", "input");
  EXPECT_THROW(read_machine("local"), Error);
  fs::current_path(before);
}

std::string refusal(const std::string& name) {
  try {
    read_software(name);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    return error.what();
  }
  return "";
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

TEST(Profiles, OfTheUserAreReadByPath) {
  for (const Preset& each : embedded_software())
    if (each.name == "fsdp") write("mine.in", each.text);
  EXPECT_EQ(read_software("mine.in").elementwise_factor, read_software("fsdp").elementwise_factor);
}

// A calibration writes both into one file; other machines run gptbench.
TEST(Profiles, SoftwareStandsBesideItsMachine) {
  EXPECT_EQ(software_of_profile("h100").name, "gptbench");
  write("both.in", profile_text(read_machine("h100"), read_software("fsdp"), {}));
  EXPECT_EQ(software_of_profile("both.in").elementwise_factor,
            read_software("fsdp").elementwise_factor);
}

TEST(Profiles, MistakesAreNamed) {
  EXPECT_NE(refusal("fsdb").find("unknown software 'fsdb'; known: deepspeed, "), std::string::npos);
  EXPECT_NE(refusal("./missing.in"), "");
  write("short.in", "&software\n fuses = 1\n/\n");
  EXPECT_NE(refusal("short.in").find("short.in:1:1: &software must give every key; missing: elem"),
            std::string::npos);
  write("typo.in", "&software\n fusses = 1\n/\n");
  EXPECT_NE(refusal("typo.in").find("typo.in:2:2: unknown key 'fusses' of &software; did you mean"),
            std::string::npos);
  write("machine.in", "&machine\n/\n");
  EXPECT_NE(refusal("machine.in").find("a profile of this kind has one group &software"),
            std::string::npos);
}

// Each key of a complete profile with the values at and beyond the end of its range.
TEST(Profiles, FiguresOutsideTheirRangeAreRefused) {
  Software software = read_software("fsdp");
  // A key of its kind that is 0 is left out.
  software.reduces_late = software.operation_ghz = software.updates_tensors = 1.0;
  const std::string text = profile_text(read_machine("a100-40"), software, {});
  const auto refused = [&](const std::string& key, const std::string& value) {
    const size_t at = text.find("  " + key + " = ");
    EXPECT_NE(at, std::string::npos) << key;
    std::string changed = text;
    changed.replace(at, text.find('\n', at) - at, "  " + key + " = " + value);
    write("changed.in", changed);
    try {
      read_machine("changed.in");
      read_software("changed.in");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::usage);
      return true;
    }
    return false;
  };
  const auto check = [&](const std::string& key, const FigureRange& range) {
    // Beside known_devices, 0 is as good as missing.
    EXPECT_EQ(refused(key, "0.0"), !range.may_be_zero || key == "spread_elsewhere") << key;
    EXPECT_EQ(refused(key, "0.5"), range.whole) << key;
    EXPECT_FALSE(refused(key, "1.0")) << key;
    EXPECT_EQ(refused(key, "2.0"), range.max < 2.0) << key;
    EXPECT_TRUE(refused(key, "-1.0")) << key;
  };
#define GPTBENCH_CHECK_RANGE(key, range, doc) check(#key, figure_range::range);
  GPTBENCH_DEVICE_KEYS(GPTBENCH_CHECK_RANGE)
  GPTBENCH_NODE_KEYS(GPTBENCH_CHECK_RANGE)
  GPTBENCH_SOFTWARE_KEYS(GPTBENCH_CHECK_RANGE)
}

// Keys that may be left out, as lines of a complete profile.
TEST(Profiles, Topology) {
  Machine complete = read_machine("a100-40");
  complete.collectives.clear();
  const std::string text = profile_text(complete, read_software("fsdp"), {});
  const auto message = [&](const std::string& lines) {
    std::string changed = text;
    write("changed.in", changed.replace(changed.find("&machine\n"), 9, "&machine\n" + lines));
    try {
      const Machine machine = read_machine("changed.in");
      EXPECT_NE(profile_text(machine, read_software("fsdp"), {}).find(lines), std::string::npos);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::usage);
      return std::string(error.what());
    }
    return std::string();
  };
  for (const char* lines :
       {"", "  torus_dimensions = 3.0\n", "  group_nodes = 16.0\n  beyond_gb_per_s = 100.0\n",
        "  collectives = 'ring', 'tree'\n", "  collectives = 'halving-doubling'\n"})
    EXPECT_EQ(message(lines), "") << lines;
  const std::vector<std::pair<const char*, const char*>> refused = {
      {"  torus_dimensions = 1.5\n", "torus_dimensions"},
      {"  group_nodes = -1\n", "group_nodes"},
      {"  group_nodes = 16\n", "beyond_gb_per_s"},
      {"  beyond_gb_per_s = 100\n", "group_nodes"},
      {"  group_nodes = 16\n  beyond_gb_per_s = 100\n  torus_dimensions = 3\n", "not both"},
      {"  collectives = 'tree'\n", "'halving-doubling'"},
      {"  collectives = 'rings'\n", "halving-doubling"}};
  for (const auto& [lines, name] : refused)
    EXPECT_NE(message(lines).find(name), std::string::npos) << lines << message(lines);
}

// Devices that are known, and how far off projections are on others, come together.
TEST(Profiles, BandsOnOtherDevices) {
  const Machine machine = read_machine("h100");
  Software software = read_software("gptbench");
  const auto written = [&] {
    std::ofstream("other.in") << profile_text(machine, software, {});
    return read_software("other.in");
  };
  EXPECT_TRUE(written().knows("h200"));
  software.known_devices = {"a64fx", "h100_80gb"};
  EXPECT_THROW(written(), Error);
  software.spread_elsewhere = 0.5;
  EXPECT_TRUE(written().knows("h100_80gb"));
  EXPECT_FALSE(written().knows("h200"));
  EXPECT_EQ(written().spread_of("h200", 1.0), 0.5);
  EXPECT_EQ(written().spread_of("a64fx", 1.0), software.spread);
  software.known_devices.clear();
  EXPECT_THROW(written(), Error);
}

TEST(Profiles, FiguresAreFoundByKey) {
  Machine machine;
  ASSERT_NE(find_figure(machine, "jitter"), nullptr);
  *find_figure(machine, "jitter") = 3.0;
  EXPECT_EQ(machine.jitter, 3.0);
  EXPECT_EQ(find_figure(machine, "device"), nullptr);
  EXPECT_EQ(find_figure(machine, "spread"), nullptr);
}

}  // namespace
}  // namespace gptbench
