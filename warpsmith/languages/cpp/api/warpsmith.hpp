// What a C++ solution sees of its tensors. The lab fills these structs; nothing is copied.
#pragma once

#include <cassert>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace warpsmith {

// In the order of the lab's table of data types.
enum class DType : int32_t {
  float64, float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, int64, int32, int16, int8, uint8, boolean
};

// Rounds to nearest even, as PyTorch does.
struct bfloat16 {
  uint16_t bits;

  bfloat16() = default;
  explicit bfloat16(float value) {
    uint32_t word;
    std::memcpy(&word, &value, sizeof word);
    const bool nan = (word & 0x7fffffffu) > 0x7f800000u;
    bits = nan ? uint16_t{0x7fc0} : static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
  }
  operator float() const {
    const uint32_t word = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &word, sizeof value);
    return value;
  }
};

#if defined(__FLT16_MANT_DIG__) && (defined(__x86_64__) || defined(__clang__) || __GNUC__ >= 13)
#define WARPSMITH_FLOAT16 1
using float16 = _Float16;
#endif

template <typename T> constexpr bool never = false;

template <typename T> constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, double>) return DType::float64;
  else if constexpr (std::is_same_v<T, float>) return DType::float32;
#ifdef WARPSMITH_FLOAT16
  else if constexpr (std::is_same_v<T, float16>) return DType::float16;
#endif
  else if constexpr (std::is_same_v<T, bfloat16>) return DType::bfloat16;
  else if constexpr (std::is_same_v<T, int64_t>) return DType::int64;
  else if constexpr (std::is_same_v<T, int32_t>) return DType::int32;
  else if constexpr (std::is_same_v<T, int16_t>) return DType::int16;
  else if constexpr (std::is_same_v<T, int8_t>) return DType::int8;
  else if constexpr (std::is_same_v<T, uint8_t>) return DType::uint8;
  else if constexpr (std::is_same_v<T, bool>) return DType::boolean;
  else static_assert(never<T>, "no tensor holds this type; take Tensor::address for raw bytes");
}

// A view of a tensor: inputs come as `const Tensor&`, outputs as `Tensor&`.
struct Tensor {
  void* address;
  const int64_t* shape;
  const int64_t* strides;  // in elements
  int32_t ndim;
  DType dtype;

  // The first element; ends the program where the tensor holds another type. Take it before a loop,
  // not inside: the compiler's report names a loop by its first statement.
  template <typename T> T* data() {
    assert(dtype == dtype_of<T>());
    return static_cast<T*>(address);
  }
  template <typename T> const T* data() const {
    assert(dtype == dtype_of<T>());
    return static_cast<const T*>(address);
  }

  // A negative axis counts from the last one.
  int64_t size(int axis) const { return shape[axis < 0 ? axis + ndim : axis]; }
  int64_t stride(int axis) const { return strides[axis < 0 ? axis + ndim : axis]; }

  int64_t numel() const {
    int64_t count = 1;
    for (int axis = 0; axis < ndim; ++axis) count *= shape[axis];
    return count;
  }

  bool contiguous() const {
    int64_t expected = 1;
    for (int axis = ndim - 1; axis >= 0; --axis) {
      if (shape[axis] != 1 && strides[axis] != expected) return false;
      expected *= shape[axis];
    }
    return true;
  }
};

}  // namespace warpsmith

using warpsmith::bfloat16;
using warpsmith::Tensor;
#ifdef WARPSMITH_FLOAT16
using warpsmith::float16;
#endif
