// Sensors over a made tree of sysfs and procfs and over a made libnvidia-ml.so.
#include "measure/sensors.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "measure/powercap.h"

namespace gptbench {
namespace {

namespace fs = std::filesystem;

// A folder that stands for "/".
class MadeRoot : public ::testing::Test {
 protected:
  MadeRoot() : root_(fs::path(testing::TempDir()) / "made_root") { fs::remove_all(root_); }
  ~MadeRoot() override { fs::remove_all(root_); }
  void put(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void zone(const std::string& name_of_folder, const std::string& name, const std::string& energy,
            const std::string& range = "262143328850") {
    const std::string folder = "sys/class/powercap/" + name_of_folder + "/";
    put(folder + "name", name + "\n");
    put(folder + "energy_uj", energy + "\n");
    put(folder + "max_energy_range_uj", range + "\n");
  }
  std::string root() const { return root_.string(); }
  std::string source(const SensorFacts& facts, const std::string& quantity) const {
    for (const std::string& line : facts.sources)
      if (line.compare(0, quantity.size(), quantity) == 0) return line;
    return "";
  }

  fs::path root_;
};

TEST(WrappingCounter, CountsAcrossOneWrap) {
  WrappingCounter counter(999);  // 0 to 999
  EXPECT_EQ(counter.advance(990), 0u);
  EXPECT_EQ(counter.advance(995), 5u);
  EXPECT_EQ(counter.advance(4), 14u);  // 996 ... 999, 0 ... 4: nine more
  EXPECT_EQ(counter.advance(4), 14u);
}

TEST(WrappingCounter, OneWithoutRangeNeverStepsBack) {
  WrappingCounter counter;
  counter.advance(500);
  EXPECT_EQ(counter.advance(700), 200u);
  EXPECT_EQ(counter.advance(10), 200u);
  EXPECT_EQ(counter.advance(15), 205u);
}

TEST_F(MadeRoot, EnergyOfPackagesAndTheirMemoryCountsOnce) {
  zone("intel-rapl:0", "package-0", "1000000");
  zone("intel-rapl:0:0", "core", "700000");
  zone("intel-rapl:0:1", "dram", "200000");
  zone("intel-rapl:1", "package-1", "5000000");
  zone("intel-rapl:2", "psys", "9000000");
  zone("intel-rapl-mmio:0", "package-0", "1000000");
  put("sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw", "250000000\n");
  put("sys/class/powercap/intel-rapl:1/constraint_0_power_limit_uw", "250000000\n");
  EnergyCounters counters(root());
  EXPECT_EQ(counters.source(), "powercap package-0, dram, package-1");
  EXPECT_DOUBLE_EQ(counters.power_limit_w().value(), 500.0);
  EXPECT_DOUBLE_EQ(counters.energy_j().value(), 0.0);
  zone("intel-rapl:0", "package-0", "4000000");       // + 3 J
  zone("intel-rapl:0:0", "core", "3000000");          // in the package
  zone("intel-rapl:0:1", "dram", "700000");           // + 0.5 J
  zone("intel-rapl:1", "package-1", "6000000");       // + 1 J
  zone("intel-rapl:2", "psys", "99000000");           // holds the packages
  zone("intel-rapl-mmio:0", "package-0", "4000000");  // package 0 again
  EXPECT_DOUBLE_EQ(counters.energy_j().value(), 4.5);
}

TEST_F(MadeRoot, EnergyGoesOnWhereACounterWraps) {
  zone("intel-rapl:0", "package-0", "99000000", "99999999");  // wraps after 100 J
  EnergyCounters counters(root());
  counters.energy_j();
  zone("intel-rapl:0", "package-0", "2000000", "99999999");
  EXPECT_NEAR(counters.energy_j().value(), 3.0, 1e-9);  // one of the package, two after the wrap
}

TEST_F(MadeRoot, UnreadableCountersAreNamed) {
  zone("intel-rapl:0", "package-0", "1");
  const fs::path counter = root_ / "sys/class/powercap/intel-rapl:0/energy_uj";
  fs::remove(counter);
  fs::create_symlink("nowhere", counter);  // root may read a file without permissions
  EnergyCounters counters(root());
  EXPECT_FALSE(counters.energy_j().has_value());
  EXPECT_EQ(counters.source(), "none, " + counter.string() + ": No such file or directory");
}

TEST_F(MadeRoot, CrayNodesCountInJoules) {
  put("sys/cray/pm_counters/energy", "253164 J 1700000000 us\n");
  put("sys/cray/pm_counters/power_cap", "0 W\n");
  EnergyCounters counters(root());
  counters.energy_j();
  put("sys/cray/pm_counters/energy", "253214 J 1700000001 us\n");
  EXPECT_DOUBLE_EQ(counters.energy_j().value(), 50.0);
  EXPECT_FALSE(counters.power_limit_w().has_value());
}

TEST_F(MadeRoot, CrayNodesStateTheirLimitInWatts) {
  put("sys/cray/pm_counters/energy", "253164 J 1700000000 us\n");
  put("sys/cray/pm_counters/power_cap", "2800 W\n");
  EXPECT_DOUBLE_EQ(EnergyCounters(root()).power_limit_w().value(), 2800.0);
}

// As two sockets of a Grace Hopper node. The meters of parts, and of processor and GPU together,
// would count twice.
TEST_F(MadeRoot, GraceIsMeteredBySocket) {
  const auto meter = [&](int number, const std::string& label, const std::string& microwatts) {
    const std::string device = "sys/class/hwmon/hwmon" + std::to_string(number) + "/device/";
    put(device + "power1_oem_info", label + "\n");
    put(device + "power1_average", microwatts + "\n");
  };
  put("sys/class/hwmon/hwmon0/name", "nvme\n");
  meter(1, "Module Power Socket 0", "900000000");
  meter(2, "Grace Power Socket 1", "150500000");
  meter(3, "CPU Power Socket 0", "90000000");
  meter(4, "SysIO Power Socket 0", "20000000");
  meter(5, "Grace Power Socket 0", "120000000");
  const auto sensors = make_host_sensors({}, root());
  EXPECT_DOUBLE_EQ(sensors->read().power_w.value(), 270.5);
  EXPECT_FALSE(sensors->read().energy_j.has_value());
  EXPECT_EQ(source(sensors->facts(), "power"),
            "power and energy: hwmon Grace Power Socket 0, Grace Power Socket 1");
  fs::remove(root_ / "sys/class/hwmon/hwmon5/device/power1_average");
  EXPECT_FALSE(sensors->read().power_w.has_value());
  // Counters of energy go first.
  put("sys/cray/pm_counters/energy", "253164 J 1700000000 us\n");
  EXPECT_EQ(source(make_host_sensors({}, root())->facts(), "power"),
            "power and energy: pm_counters, the whole node");
}

TEST_F(MadeRoot, HostOffersWhatItsFilesHold) {
  put("proc/stat", "cpu  100 0 100 700 100 0 0 0 50 0\ncpu0 1 2 3\n");
  put("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 10 kB\nMemAvailable:    600 kB\n");
  for (const char* core : {"0", "1", "5"})
    put("sys/devices/system/cpu/cpu" + std::string(core) + "/cpufreq/scaling_cur_freq",
        core == std::string("5") ? "900000\n" : "2200000\n");
  const auto sensors = make_host_sensors({0, 1}, root());
  EXPECT_FALSE(sensors->read().utilisation.has_value());  // no tick since
  // 200 of 250 ticks since then were neither idle nor waiting; guest ticks are in user already.
  put("proc/stat", "cpu  200 20 120 740 110 10 20 30 99 0\n");
  const SensorReading reading = sensors->read();
  EXPECT_DOUBLE_EQ(reading.utilisation.value(), 0.8);
  EXPECT_DOUBLE_EQ(reading.clock_ghz.value(), 2.2);
  EXPECT_DOUBLE_EQ(reading.memory_used_bytes.value(), 400.0 * 1024.0);
  EXPECT_DOUBLE_EQ(sensors->facts().memory_total_bytes.value(), 1000.0 * 1024.0);
  EXPECT_FALSE(reading.energy_j.has_value());
  EXPECT_NE(source(sensors->facts(), "power").find("none, "), std::string::npos);
}

TEST_F(MadeRoot, FourCoresStandForTheClockOfAll) {
  for (int core = 0; core < 6; ++core)
    put("sys/devices/system/cpu/cpu" + std::to_string(core) + "/cpufreq/scaling_cur_freq",
        std::to_string(1000000 * (core + 1)) + "\n");
  EXPECT_DOUBLE_EQ(make_host_sensors({0, 1, 2, 3, 4}, root())->read().clock_ghz.value(), 2.5);
  EXPECT_DOUBLE_EQ(make_host_sensors({5}, root())->read().clock_ghz.value(), 6.0);
}

TEST_F(MadeRoot, ClockFromCpuinfoIsThatOfTheRunsCores) {
  put("proc/cpuinfo",
      "processor\t: 0\ncpu MHz\t\t: 1000.0\n\nprocessor\t: 1\ncpu MHz\t\t: 2000.0\n\n"
      "processor\t: 2\ncpu MHz\t\t: 3000.0\n");
  EXPECT_DOUBLE_EQ(make_host_sensors({1, 2}, root())->read().clock_ghz.value(), 2.5);
  EXPECT_DOUBLE_EQ(make_host_sensors({}, root())->read().clock_ghz.value(), 2.0);
}

TEST_F(MadeRoot, AnEmptyMachineOffersNothingAndSaysSo) {
  const auto sensors = make_host_sensors({0}, root());
  const SensorReading reading = sensors->read();
  EXPECT_FALSE(reading.energy_j || reading.utilisation || reading.clock_ghz ||
               reading.memory_used_bytes || reading.temperature_c || reading.errors_uncorrected);
  const char* const quantities[] = {"power and energy", "utilisation", "clock",
                                    "memory",           "temperature", "errors of memory"};
  ASSERT_EQ(sensors->facts().sources.size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    const std::string wanted = std::string(quantities[i]) + ": none, ";
    EXPECT_EQ(sensors->facts().sources[i].substr(0, wanted.size()), wanted);
  }
}

TEST_F(MadeRoot, TheHottestSensorOfTheProcessors) {
  put("sys/class/hwmon/hwmon0/name", "nvme\n");
  put("sys/class/hwmon/hwmon0/temp1_input", "95000\n");
  put("sys/class/hwmon/hwmon1/name", "coretemp\n");
  put("sys/class/hwmon/hwmon1/temp1_input", "51000\n");
  put("sys/class/hwmon/hwmon1/temp2_input", "63500\n");
  put("sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n");
  put("sys/class/thermal/thermal_zone1/temp", "44000\n");
  const auto sensors = make_host_sensors({}, root());
  EXPECT_DOUBLE_EQ(sensors->read().temperature_c.value(), 63.5);
  EXPECT_EQ(source(sensors->facts(), "temperature"), "temperature: hwmon coretemp");
}

TEST_F(MadeRoot, ThermalZonesWhereHwmonHasNone) {
  put("sys/class/thermal/thermal_zone0/type", "acpitz\n");
  put("sys/class/thermal/thermal_zone0/temp", "20000\n");
  put("sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n");
  put("sys/class/thermal/thermal_zone1/temp", "44000\n");
  const auto sensors = make_host_sensors({}, root());
  EXPECT_DOUBLE_EQ(sensors->read().temperature_c.value(), 44.0);
  EXPECT_EQ(source(sensors->facts(), "temperature"), "temperature: thermal zone x86_pkg_temp");
}

// Arm systems name their zones after the processor; that of a GPU is another one.
TEST_F(MadeRoot, ThermalZonesAreThoseOfTheProcessors) {
  put("sys/class/thermal/thermal_zone0/type", "gpu-thermal\n");
  put("sys/class/thermal/thermal_zone0/temp", "90000\n");
  put("sys/class/thermal/thermal_zone1/type", "cpu-thermal\n");
  put("sys/class/thermal/thermal_zone1/temp", "47000\n");
  const auto sensors = make_host_sensors({}, root());
  EXPECT_DOUBLE_EQ(sensors->read().temperature_c.value(), 47.0);
  EXPECT_EQ(source(sensors->facts(), "temperature"), "temperature: thermal zone cpu-thermal");
}

TEST_F(MadeRoot, ErrorsOfAllMemoryControllers) {
  for (const std::string mc : {"mc0", "mc1"}) {
    put("sys/devices/system/edac/mc/" + mc + "/ce_count", "3\n");
    put("sys/devices/system/edac/mc/" + mc + "/ue_count", "1\n");
  }
  const auto sensors = make_host_sensors({}, root());
  EXPECT_DOUBLE_EQ(sensors->read().errors_corrected.value(), 6.0);
  EXPECT_DOUBLE_EQ(sensors->read().errors_uncorrected.value(), 2.0);
  EXPECT_EQ(source(sensors->facts(), "errors"), "errors of memory: EDAC");
}

TEST(GpuSensors, FiguresOfNvmlInOurUnits) {
  const auto sensors = make_gpu_sensors("0000:19:00.0", GpuPart::whole, FAKE_NVML);
  EXPECT_DOUBLE_EQ(sensors->facts().power_limit_w.value(), 700.0);
  EXPECT_DOUBLE_EQ(sensors->facts().memory_total_bytes.value(), 85520809984.0);
  const double before_j = sensors->read().energy_j.value();
  const SensorReading reading = sensors->read();
  EXPECT_DOUBLE_EQ(reading.energy_j.value() - before_j, 1.0);
  EXPECT_DOUBLE_EQ(reading.power_w.value(), 412.5);
  EXPECT_DOUBLE_EQ(reading.utilisation.value(), 0.97);
  EXPECT_DOUBLE_EQ(reading.clock_ghz.value(), 1.755);
  EXPECT_DOUBLE_EQ(reading.memory_used_bytes.value(), 5.95e10);
  EXPECT_DOUBLE_EQ(reading.temperature_c.value(), 61.0);
  EXPECT_DOUBLE_EQ(reading.errors_corrected.value(), 7.0);
  EXPECT_DOUBLE_EQ(reading.errors_uncorrected.value(), 2.0);
  EXPECT_EQ(sensors->facts().sources,
            (std::vector<std::string>{
                "power and energy: NVML, energy counter",
                "utilisation: NVML, part of its sampling period with a kernel running",
                "clock: NVML, SM clock", "memory: NVML, all processes on the GPU",
                "temperature: NVML, of the GPU",
                "errors of memory: NVML, ECC since the driver was loaded"}));
}

// Before R510 the memory of the driver, 0.5 GB here, counts as used.
TEST(GpuSensors, MemoryOfAnOldDriverIncludesItsOwn) {
  const auto sensors = make_gpu_sensors("0000:19:00.0", GpuPart::whole, FAKE_NVML_R470);
  EXPECT_DOUBLE_EQ(sensors->read().memory_used_bytes.value(), 6e10);
  EXPECT_DOUBLE_EQ(sensors->facts().memory_total_bytes.value(), 85520809984.0);
}

// A slice of a GPU is found at the address of the whole one.
TEST(GpuSensors, ASliceHasNoFiguresOfTheWholeGpu) {
  EXPECT_EQ(gpu_part_of("NVIDIA A100-SXM4-40GB MIG 3g.20gb"), GpuPart::slice);
  EXPECT_EQ(gpu_part_of("NVIDIA A100-SXM4-40GB"), GpuPart::whole);
  const auto sensors = make_gpu_sensors("0000:19:00.0", GpuPart::slice, FAKE_NVML);
  const SensorFacts& facts = sensors->facts();
  EXPECT_FALSE(facts.power_limit_w || facts.memory_total_bytes);
  sensors->read();
  const SensorReading reading = sensors->read();
  EXPECT_FALSE(reading.energy_j || reading.power_w || reading.memory_used_bytes);
  EXPECT_DOUBLE_EQ(reading.clock_ghz.value(), 1.755);
  const std::string why = ": none, NVML counts that of the whole GPU, this is a slice (MIG)";
  EXPECT_EQ(facts.sources[0], "power and energy" + why);
  EXPECT_EQ(facts.sources[3], "memory" + why);
}

TEST(GpuSensors, TheLibraryIsShutDown) {
  void* const library = ::dlopen(FAKE_NVML, RTLD_NOW);
  ASSERT_NE(library, nullptr);
  const auto* const users = static_cast<const int*>(::dlsym(library, "fake_nvml_users"));
  ASSERT_NE(users, nullptr);
  {
    const auto found = make_gpu_sensors("0000:19:00.0", GpuPart::whole, FAKE_NVML);
    const auto missing = make_gpu_sensors("0000:99:00.0", GpuPart::whole, FAKE_NVML);
    EXPECT_EQ(*users, 2);
  }
  EXPECT_EQ(*users, 0);
  ::dlclose(library);
}

TEST(GpuSensors, WithoutEnergyCounterPowerIsSampled) {
  ASSERT_EQ(::setenv("FAKE_NVML_OLD", "1", 1), 0);
  const auto sensors = make_gpu_sensors("0000:19:00.0", GpuPart::whole, FAKE_NVML);
  const SensorReading reading = sensors->read();
  ::unsetenv("FAKE_NVML_OLD");
  EXPECT_FALSE(reading.energy_j.has_value());
  EXPECT_FALSE(reading.errors_uncorrected.has_value());
  EXPECT_TRUE(reading.power_w.has_value());
  EXPECT_EQ(sensors->facts().sources.front(), "power and energy: NVML, sampled power");
}

TEST(GpuSensors, WhatFailsIsSaid) {
  const auto reason = [](const std::string& bus_id, const std::string& library) {
    const auto sensors = make_gpu_sensors(bus_id, GpuPart::whole, library);
    const SensorReading reading = sensors->read();
    EXPECT_FALSE(reading.energy_j || reading.power_w || reading.utilisation || reading.clock_ghz);
    return sensors->facts().sources.front();
  };
  EXPECT_NE(reason("0000:19:00.0", "libnvidia-ml-none.so.1").find("none, libnvidia-ml-none.so.1"),
            std::string::npos);
  EXPECT_NE(reason("0000:99:00.0", FAKE_NVML).find("'0000:99:00.0': Not Found"), std::string::npos);
  EXPECT_NE(reason("0000:19:00.0", "libm.so.6").find("no function nvmlInit_v2"), std::string::npos);
  ASSERT_EQ(::setenv("FAKE_NVML_GONE", "1", 1), 0);
  EXPECT_NE(reason("0000:19:00.0", FAKE_NVML).find("nvmlInit_v2: GPU is lost"), std::string::npos);
  ::unsetenv("FAKE_NVML_GONE");
}

}  // namespace
}  // namespace gptbench
