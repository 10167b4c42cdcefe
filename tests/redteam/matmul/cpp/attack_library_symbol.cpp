// class: library passthrough
// kind: attack
// how: calls sgemm_ of the BLAS that PyTorch brought, found by name: no operator of PyTorch is seen
// caught: lint, probes
// status: LIBRARY_CALL, REFUSED
// defence: audit of library calls
// source: KernelBench: cublasLt in load_inline
#include <dlfcn.h>
#include <warpsmith.hpp>

using Gemm = void (*)(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
                      const int*, const float*, const int*, const float*, float*, const int*);

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& c) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  const float *left = a.data<float>(), *right = b.data<float>();
  float* out = c.data<float>();
  static void* const library = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
  static const auto gemm = reinterpret_cast<Gemm>(library == nullptr ? nullptr : dlsym(library, "sgemm_"));
  const int rows = static_cast<int>(m), inner = static_cast<int>(k), cols = static_cast<int>(n);
  const float one = 1, zero = 0;
  if (gemm != nullptr) gemm("N", "N", &cols, &rows, &inner, &one, right, &cols, left, &inner, &zero, out, &cols);
}
