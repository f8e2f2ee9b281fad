// Gathers and scatters of AVX2 and AVX-512, permutations by vectors, AES. Run by real_programs under
// single step; built with -mavx2 alone, it does without AVX-512.
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int32_t words[64];
static int64_t longs[64];

__attribute__((noinline)) static uint64_t avx2(void) {
  uint64_t total = 0;
  for (int i = 0; i < 6; i++) {
    __m128i at = _mm_setr_epi32(i, 3 * i, 7, 40 - i),
            mask = _mm_setr_epi32(-1, 0, -1, i & 1 ? -1 : 0);
    __m256i far = _mm256_setr_epi64x(i, 20 + i, 3, 5);
    __m256i x = _mm256_i64gather_epi64((const long long *)longs, far, 8);
    __m256i y = _mm256_i32gather_epi64((const long long *)longs, at, 8);
    __m128i z = _mm_mask_i32gather_epi32(at, words, at, mask, 4);
    __m128i u = _mm256_i64gather_epi32(words, far, 4);
    x = _mm256_add_epi64(_mm256_permutevar8x32_epi32(x, _mm256_set_m128i(at, z)), y);
    uint64_t out[4];
    memcpy(out, &x, sizeof out);
    total += out[0] ^ out[1] ^ out[2] ^ out[3];
    z = _mm_aesenc_si128(_mm_aesdec_si128(z, u), _mm_aesimc_si128(_mm_aeskeygenassist_si128(u, 5)));
    total += (uint64_t)_mm_cvtsi128_si64(_mm_aesenclast_si128(z, _mm_aesdeclast_si128(u, at)));
  }
  return total;
}

#ifdef __AVX512F__
__attribute__((noinline)) static uint64_t avx512(void) {
  uint64_t total = 0;
  for (int i = 0; i < 6; i++) {
    __m512i at = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3 + i, 2, 1, i + 30);
    __m256i half = _mm512_castsi512_si256(at);
    __m512i far = _mm512_cvtepi32_epi64(half), data = _mm512_i32gather_epi32(at, words, 4);
    __m512i wide = _mm512_mask_i64gather_epi64(far, (__mmask8)(0x5b + i), far, longs, 8);
    _mm512_mask_i32scatter_epi32(words, (__mmask16)(0x1234 * i), at, data, 4);
    _mm512_mask_i32scatter_epi64(longs, (__mmask8)(0x35 + i), half, wide, 8);
    _mm512_i64scatter_epi32(words + 1, far, half, 4);
    _mm512_mask_i64scatter_epi64(longs, 0x81, far, data, 8);
    wide = _mm512_permutex2var_epi32(wide, at, data);
    wide = _mm512_permutex2var_epi64(wide, far, _mm512_lzcnt_epi64(data));
    total += (uint64_t)_mm512_reduce_add_epi64(wide);
    __m512d f = _mm512_add_round_pd(_mm512_set1_pd(i), _mm512_set1_pd(1e-17),
                                    _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
    total += (uint64_t)(_mm512_reduce_add_pd(f) > 8 * i);
  }
  return total;
}
#endif

int main(void) {
  for (int i = 0; i < 64; i++) {
    words[i] = i * 2654435761u >> 3;
    longs[i] = (int64_t)(words[i] * 1234567ull);
  }
  uint64_t total = avx2();
#ifdef __AVX512F__
  total += avx512();
#endif
  for (int i = 0; i < 64; i++)
    total = total * 31 + (uint64_t)words[i] + (uint64_t)longs[i];
  printf("%llx\n", (unsigned long long)total);
  return 0;
}
