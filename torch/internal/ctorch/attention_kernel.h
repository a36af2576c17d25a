// The attention of decoding for vectors of LANES floats, included where rows_kernel.h is, after it.

// reduce leaves the sum of vector l's lanes in lane l, in log2(LANES) rounds that halve the vectors.
INLINE vec reduce(vec* m) {
  UNROLL for (int s = LANES / 2; s > 0; s /= 2) {
    ivec low, high;
    UNROLL for (int l = 0; l < LANES; l++) {
      low[l] = l & s ? LANES + l - s : l;
      high[l] = l & s ? LANES + l : l + s;
    }
    UNROLL for (int i = 0; i < s; i++) m[i] = __builtin_shuffle(m[i], m[i + s], low) + __builtin_shuffle(m[i], m[i + s], high);
  }
  return m[0];
}

// score writes scale times the products of q with count keys, LANES at most, width floats apart.
INLINE void score(const Attention& a, const float* q, const float* key, int64_t count, float* out) {
  vec m[LANES];
  UNROLL for (int l = 0; l < LANES; l++) {
    m[l] = vec{};
    for (int64_t e = 0; e < a.size; e += LANES) m[l] += *reinterpret_cast<const loose*>(q + e) * *reinterpret_cast<const loose*>(key + e);
    if (l + 1 < count) key += a.width;  // beyond them the last one again, which is not written
  }
  vec sum = reduce(m) * a.scale;
  if (count == LANES) {
    *reinterpret_cast<loose*>(out) = sum;
    return;
  }
  for (int64_t l = 0; l < count; l++) out[l] = sum[l];
}

// mix adds to out, a part of N vectors, count values' parts, each times its weight.
template <int N>
INLINE void mix(const Attention& a, const float* weight, const float* value, int64_t count, float* out) {
  vec sum[N];
  UNROLL for (int n = 0; n < N; n++) sum[n] = *reinterpret_cast<const loose*>(out + n * LANES);
  for (int64_t t = 0; t < count; t++) {
    UNROLL for (int n = 0; n < N; n++) sum[n] += (weight[t] - vec{}) * *reinterpret_cast<const loose*>(value + t * a.width + n * LANES);
  }
  UNROLL for (int n = 0; n < N; n++) *reinterpret_cast<loose*>(out + n * LANES) = sum[n];
}

// walk goes through the key-value heads from..to, counted through the rows, in blocks of LANES places of all, and calls f(row, query head,
// first place, places, their part of data for the query head). What comes next is on its way meanwhile.
template <class F>
INLINE void walk(const Attention& a, const float* data, int64_t from, int64_t to, F&& f) {
  int64_t group = a.heads / a.kv;
  while (from < to) {
    int64_t row = from / a.kv, end = std::min(to, (row + 1) * a.kv), length = a.lengths[row];
    const float* start = data + row * a.places * a.width;
    for (int64_t t = 0; t < length; t += LANES) {
      const float *block = start + t * a.width, *next = t + LANES < length ? block + LANES * a.width : start + a.places * a.width;
      for (int64_t k = from - row * a.kv; k < end - row * a.kv; k++) {
        for (int64_t j = 0; j < group; j++) {
          for (int64_t e = k * a.size + j * kLine; e < (k + 1) * a.size; e += group * kLine) {
            UNROLL for (int l = 0; l < LANES; l++) __builtin_prefetch(next + l * a.width + e, 0, 2);
          }
          f(row, k * group + j, t, std::min<int64_t>(LANES, length - t), block + k * a.size);
        }
      }
    }
    from = end;
  }
}

void scores(const Attention& a, int64_t from, int64_t to) {
  std::fill(a.weights + from * a.heads / a.kv * a.longest, a.weights + to * a.heads / a.kv * a.longest, -std::numeric_limits<float>::infinity());
  walk(a, a.keys, from, to, [&](int64_t row, int64_t head, int64_t t, int64_t count, const float* keys) {
    score(a, a.q + row * a.stride + head * a.size, keys, count, a.weights + (row * a.heads + head) * a.longest + t);
  });
}

void values(const Attention& a, int64_t from, int64_t to) {
  std::fill(a.out + from * a.heads / a.kv * a.size, a.out + to * a.heads / a.kv * a.size, 0.f);
  walk(a, a.values, from, to, [&](int64_t row, int64_t head, int64_t t, int64_t count, const float* values) {
    const float* weight = a.weights + (row * a.heads + head) * a.longest + t;
    float* out = a.out + (row * a.heads + head) * a.size;
    int64_t e = 0;
    for (; e + 4 * LANES <= a.size; e += 4 * LANES) mix<4>(a, weight, values + e, count, out + e);
    for (; e < a.size; e += LANES) mix<1>(a, weight, values + e, count, out + e);
  });
}

constexpr AttentionKernel attention{scores, values};
