// Fake CUDA driver and CUPTI for tests: kernels run on the processor, and a subscriber hears every call.
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace {
struct Attribute { int id; char padding[4]; char value[64]; };
struct Config { unsigned grid[3], block[3], shared; void* stream; Attribute* attributes; unsigned count; };
struct Configured { const Config* config; void* function; void** arguments; void** extra; };
struct Plain { void* function; unsigned grid[3], block[3], shared; void* stream; void** arguments; void** extra; };
struct Call { int site; const char* function; const void* parameters; };
struct Kernel { int is_kernel; int count; size_t sizes[8]; float factor; };
using Callback = void (*)(void*, int, unsigned, const Call*);
Callback callback = nullptr;
bool enabled = false, busy = false;
int launches = 0, refuse = 0;
Config last;
Attribute last_attribute;
uintptr_t memory_begin = 0, memory_end = 0;

void tell(const char* name, const void* parameters) {
  for (int site = 0; site < 2 && enabled && callback; ++site) {
    const Call call = {site, name, parameters};
    callback(nullptr, 1, 0, &call);
  }
}

// y[i] = x[i] * factor * the kernel's own factor; arguments: x, y, n and the factor.
int run(void* function, const Config& config, void** arguments) {
  if (refuse) return refuse;
  const Kernel* kernel = static_cast<Kernel*>(function);
  const float* x = *static_cast<float**>(arguments[0]);
  float* y = *static_cast<float**>(arguments[1]);
  const int n = *static_cast<int*>(arguments[2]);
  const float factor = *static_cast<float*>(arguments[3]) * kernel->factor;
  for (int i = 0; i < n; ++i) y[i] = x[i] * factor;
  ++launches, last = config;
  if (config.count) last_attribute = config.attributes[0];
  return 0;
}

int information(const Kernel* kernel, size_t index, size_t* offset, size_t* size) {
  if (index >= static_cast<size_t>(kernel->count)) return 1;
  *offset = 0;
  for (size_t i = 0; i <= index; ++i) {
    *size = kernel->sizes[i];
    *offset = (*offset + *size - 1) / *size * *size;
    if (i < index) *offset += *size;
  }
  return 0;
}
}  // namespace

extern "C" {
int cuLaunchKernelEx(const Config* config, void* function, void** arguments, void** extra) {
  const Configured parameters = {config, function, arguments, extra};
  tell("cuLaunchKernelEx", &parameters);
  return run(function, *config, arguments);
}
int cuLaunchKernel(void* function, unsigned grid, unsigned block, unsigned shared, void* stream, void** arguments) {
  const Plain parameters = {function, {grid, 1, 1}, {block, 1, 1}, shared, stream, arguments, nullptr};
  tell("cuLaunchKernel", &parameters);
  Config config = {{grid, 1, 1}, {block, 1, 1}, shared, stream, nullptr, 0};
  return run(function, config, arguments);
}
int cuFuncGetParamInfo(void* function, size_t index, size_t* offset, size_t* size) {
  const Kernel* kernel = static_cast<Kernel*>(function);
  tell("cuFuncGetParamInfo", nullptr);
  return kernel->is_kernel ? 400 : information(kernel, index, offset, size);
}
int cuKernelGetParamInfo(void* function, size_t index, size_t* offset, size_t* size) {
  return information(static_cast<Kernel*>(function), index, offset, size);
}
int cuPointerGetAttribute(void* data, int, unsigned long long address) {
  if (address < memory_begin || address >= memory_end) return 1;
  *static_cast<unsigned*>(data) = 2;
  return 0;
}
int cuptiSubscribe(void** subscriber, Callback function, void*) {
  if (busy) return 39;
  *subscriber = &callback, callback = function, busy = true;
  return 0;
}
int cuptiUnsubscribe(void*) {
  callback = nullptr, busy = enabled = false;
  return 0;
}
int cuptiEnableDomain(unsigned enable, void*, int) {
  enabled = enable;
  return 0;
}

// Controls of the tests.
void* fake_kernel(int is_kernel, float factor) { return new Kernel{is_kernel, 4, {8, 8, 4, 4}, factor}; }
void fake_call(const char* name) { tell(name, nullptr); }
int fake_launches() { return launches; }
void fake_memory(uintptr_t begin, size_t size) { memory_begin = begin, memory_end = begin + size; }
void fake_profiler(int runs) { busy = runs; }
void fake_refuse(int error) { refuse = error; }
int fake_attribute(unsigned* grid, int* value) {
  *grid = last.grid[0];
  std::memcpy(value, last_attribute.value, sizeof *value);
  return last.count ? last_attribute.id : -1;
}
}
