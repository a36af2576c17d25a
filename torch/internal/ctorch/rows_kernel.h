// The products of rows.cc for vectors of LANES floats, included there once for each instruction set. No include guard for that reason.

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef float loose __attribute__((vector_size(4 * LANES), aligned(4)));  // anywhere in memory
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));

// transpose exchanges rows and lanes of a square, in log2(LANES) rounds of swapped blocks.
INLINE void transpose(vec* m) {
  UNROLL for (int s = LANES / 2; s > 0; s /= 2) {
    ivec low, high;
    UNROLL for (int l = 0; l < LANES; l++) {
      low[l] = l & s ? LANES + l - s : l;
      high[l] = l & s ? LANES + l : l + s;
    }
    UNROLL for (int i = 0; i < LANES; i++) {
      if (i & s) continue;
      vec a = m[i], b = m[i + s];
      m[i] = __builtin_shuffle(a, b, low);
      m[i + s] = __builtin_shuffle(a, b, high);
    }
  }
}

// pack lays the rows of x out for V vectors: packed[k][v] holds element k of the rows v*LANES and on, 0 where there is none.
template <int V>
void pack(const Rows& r) {
  for (int64_t k = 0; k < r.in; k += LANES) {
    for (int v = 0; v < V; v++) {
      vec m[LANES];
      UNROLL for (int l = 0; l < LANES; l++) {
        int64_t row = v * LANES + l;
        m[l] = row < r.rows ? vec(*reinterpret_cast<const loose*>(r.x + row * r.stride + k)) : vec{};
      }
      transpose(m);
      UNROLL for (int l = 0; l < LANES; l++) reinterpret_cast<vec*>(r.packed)[(k + l) * V + v] = m[l];
    }
  }
}

// block is R rows of w times all of x, sum[r][v]; ahead is what will be read next. The sum of an element runs over k in order,
// whatever V and R are.
template <int V, int R>
INLINE void block(const float* w, const Rows& r, const char* ahead, vec* out) {
  constexpr int G = 4;  // rows of w at an address with its own register
  vec sum[R][V];
  UNROLL for (int i = 0; i < R * V; i++) sum[i / V][i % V] = vec{};
  const float* at[(R + G - 1) / G];
  UNROLL for (int i = 0; i < R; i += G) at[i / G] = w + i * r.in;
  const vec* x = reinterpret_cast<const vec*>(r.packed);
  int64_t one = r.in, three = 3 * r.in;
  asm("" : "+r"(one), "+r"(three));  // or the compiler makes an induction variable of each row and step, and spills them
  for (int64_t k = 0; k < r.in; k += kStep) {
    ahead += 4 * R * kStep;
    UNROLL for (int j = 0; j < kStep; j++) {
      UNROLL for (int l = j * R / kStep; l < (j + 1) * R / kStep; l++) __builtin_prefetch(ahead - 64 * R + 64 * l, 0, 2);
      UNROLL for (int i = 0; i < R; i++) {
        const float* p = at[i / G] + j;
        float value = i % G == 0 ? p[0] : i % G == 1 ? p[one] : i % G == 2 ? p[2 * one] : p[three];
        UNROLL for (int v = 0; v < V; v++) sum[i][v] += (value - vec{}) * x[j * V + v];
      }
    }
    x += kStep * V;
    UNROLL for (auto& p : at) {
      p += kStep;
      asm("" : "+r"(p));
    }
  }
  UNROLL for (int i = 0; i < R * V; i++) out[i] = sum[i / V][i % V];
}

template <int V, int R>
void tiles(const Rows& r, int64_t from, int64_t to) {
  const char* last = reinterpret_cast<const char*>(r.w + (r.out - R) * r.in);
  for (int64_t t = from; t < to; t++) {
    int64_t first = std::min(t * kTile, r.out - kTile);  // the last tile overlaps the one before
    vec sums[kTile * V];
    for (int i = 0; i < kTile; i += R) {
      const float* w = r.w + (first + i) * r.in;
      block<V, R>(w, r, std::min(reinterpret_cast<const char*>(w + R * r.in), last), sums + i * V);
    }
    for (int i = 0; i < kTile; i += LANES) {
      vec bias = r.bias ? vec(*reinterpret_cast<const loose*>(r.bias + first + i)) : vec{};
      for (int v = 0; v < V; v++) {
        vec m[LANES];
        UNROLL for (int l = 0; l < LANES; l++) m[l] = sums[(i + l) * V + v];
        transpose(m);
        for (int l = 0; l < LANES && v * LANES + l < r.rows; l++) {
          *reinterpret_cast<loose*>(r.y + (v * LANES + l) * r.out + first + i) = m[l] + bias;
        }
      }
    }
  }
}

template <int V, int R>
constexpr RowsKernel kernel{V * LANES, pack<V>, tiles<V, R>};
