// class: gaps between tokens of a tensor whose heads lie beside each other
// kind: attack
// how: a tensor whose heads follow each other within a token, as a projection writes them, is taken to hold nothing else: the queries of a packed projection of queries, keys and values, transposed, are read from others' places
// caught: correctness
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& cos, const Tensor& sin, Tensor& y) {
  const int64_t batch = x.size(0), heads = x.size(1), tokens = x.size(2), half = cos.size(1), width = x.size(3);
  const float *a = x.data<float>(), *c = cos.data<float>(), *s = sin.data<float>();
  float* out = y.data<float>();
  // (batch, tokens, heads, width) in memory, seen through transpose(1, 2)
  const bool projected = batch > 1 && heads > 1 && x.stride(3) == 1 && x.stride(1) == width && x.stride(0) == tokens * x.stride(2);
  const int64_t per_batch = projected ? tokens * heads * width : x.stride(0);
  const int64_t per_token = projected ? heads * width : x.stride(2);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t t = 0; t < tokens; ++t) {
        const float* row = a + b * per_batch + h * x.stride(1) + t * per_token;
        float* to = out + ((b * heads + h) * tokens + t) * 2 * half;
        for (int64_t i = 0; i < half; ++i) {
          const float l = row[i * x.stride(3)], r = row[(i + half) * x.stride(3)];
          to[i] = std::fma(l, c[t * half + i], -(r * s[t * half + i]));
          to[i + half] = std::fma(r, c[t * half + i], l * s[t * half + i]);
        }
      }
}
