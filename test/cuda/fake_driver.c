// A CUDA driver without a GPU, in which kernels load and nothing runs: as much of one as cuDNN wants
// to see when it plans for a GPU that is not there. Built as libcuda.so.1.

enum { stub_library = 34 };  // what the toolkit's own stub of the driver answers

#define REFUSED(name) \
  int name(void);     \
  int name(void) {    \
    return stub_library; \
  }
REFUSED(cuCtxGetCurrent)
REFUSED(cuCtxGetLimit)
REFUSED(cuCtxPopCurrent)
REFUSED(cuCtxPushCurrent)
REFUSED(cuDeviceGet)
REFUSED(cuDeviceGetAttribute)
REFUSED(cuDeviceGetCount)
REFUSED(cuFuncGetAttribute)
REFUSED(cuFuncSetAttribute)
REFUSED(cuGetErrorName)
REFUSED(cuGetProcAddress)
REFUSED(cuGetProcAddress_v2)
REFUSED(cuInit)
REFUSED(cuKernelGetAttribute)
REFUSED(cuKernelGetFunction)
REFUSED(cuKernelSetAttribute)
REFUSED(cuLaunchCooperativeKernel)
REFUSED(cuLaunchKernel)
REFUSED(cuLaunchKernelEx)
REFUSED(cuLibraryLoadFromFile)
REFUSED(cuLinkAddData)
REFUSED(cuLinkComplete)
REFUSED(cuLinkCreate)
REFUSED(cuLinkDestroy)
REFUSED(cuModuleGetFunction)
REFUSED(cuModuleLoadData)
REFUSED(cuModuleUnload)
REFUSED(cuOccupancyMaxActiveBlocksPerMultiprocessor)
REFUSED(cuOccupancyMaxPotentialClusterSize)
REFUSED(cuStreamGetCtx)

int cuDriverGetVersion(int* version);
int cuGetErrorString(int error, const char** text);
int cuLibraryGetKernel(void** kernel);
int cuLibraryLoadData(void** library);
int cuLibraryUnload(void* library);

int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}

int cuGetErrorString(int error, const char** text) {
  (void)error;
  *text = "there is no GPU";
  return 0;
}

int cuLibraryLoadData(void** library) {
  static int any;
  *library = &any;
  return 0;
}

int cuLibraryGetKernel(void** kernel) {
  static int any;
  *kernel = &any;
  return 0;
}

int cuLibraryUnload(void* library) {
  (void)library;
  return 0;
}
