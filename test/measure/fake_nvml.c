/* A libnvidia-ml.so.1 with one GPU, found at the addresses FAKE_NVML_BUS_IDS (0000:19:00.0). Its
 * energy counter gains 1 J at each look; with FAKE_NVML_OLD in the environment it has no such
 * counter, as GPUs before Volta. Compiled with FAKE_NVML_IS_R470 it is that of a driver before
 * R510. */
#include <stdlib.h>
#include <string.h>

#ifndef FAKE_NVML_BUS_IDS
#define FAKE_NVML_BUS_IDS "0000:19:00.0"
#endif

enum { success = 0, not_supported = 3, not_found = 6, gone = 15, version_mismatch = 25 };
struct utilization {
  unsigned int gpu, memory;
};
struct memory {
  unsigned long long total, free, used;
};
struct memory_v2 {
  unsigned int version;
  unsigned long long total, reserved, free, used;
};
static int the_gpu;
static unsigned long long energy_mj = 5000;

int fake_nvml_users; /* initialised and not shut down */

int nvmlInit_v2(void) {
  if (getenv("FAKE_NVML_GONE") != NULL) return gone;
  ++fake_nvml_users;
  return success;
}
int nvmlShutdown(void) {
  --fake_nvml_users;
  return success;
}
const char* nvmlErrorString(int status) {
  return status == not_supported ? "Not Supported"
         : status == not_found   ? "Not Found"
                                 : "GPU is lost";
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  *device = &the_gpu;
  return strlen(id) == strlen("0000:19:00.0") && strstr(FAKE_NVML_BUS_IDS, id) != NULL ? success
                                                                                       : not_found;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned int* mw) {
  (void)device;
  *mw = 412500;
  return success;
}
int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned int* mw) {
  (void)device;
  *mw = 700000;
  return success;
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* mj) {
  (void)device;
  if (getenv("FAKE_NVML_OLD") != NULL) return not_supported;
  *mj = energy_mj += 1000;
  return success;
}
int nvmlDeviceGetUtilizationRates(void* device, struct utilization* busy) {
  (void)device;
  busy->gpu = 97;
  busy->memory = 41;
  return success;
}
int nvmlDeviceGetClockInfo(void* device, int type, unsigned int* mhz) {
  (void)device;
  *mhz = type == 1 ? 1755 : 9; /* 1: SM */
  return success;
}
int nvmlDeviceGetMemoryInfo(void* device, struct memory* memory) {
  (void)device;
  memory->total = 85520809984ull;
  memory->used = 60000000000ull;
  memory->free = memory->total - memory->used;
  return success;
}
#ifndef FAKE_NVML_IS_R470
int nvmlDeviceGetMemoryInfo_v2(void* device, struct memory_v2* memory) {
  (void)device;
  if (memory->version != 0x2000028) return version_mismatch; /* 2, and a size of 40 */
  memory->total = 85520809984ull;
  memory->reserved = 500000000ull;
  memory->used = 59500000000ull;
  memory->free = memory->total - memory->reserved - memory->used;
  return success;
}
#endif
int nvmlDeviceGetTemperature(void* device, int sensor, unsigned int* celsius) {
  (void)device;
  *celsius = sensor == 0 ? 61 : 0; /* 0: the GPU's */
  return success;
}
int nvmlDeviceGetTotalEccErrors(void* device, int type, int counter, unsigned long long* count) {
  (void)device;
  if (getenv("FAKE_NVML_OLD") != NULL) return not_supported;
  *count = counter != 0 ? 99 : type == 0 ? 7 : 2; /* 0: corrected; 0: since the driver was loaded */
  return success;
}
