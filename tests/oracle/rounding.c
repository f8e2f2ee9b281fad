// Floating point that is not as programs begin: denormals flushed, other roundings, a shorter
// significand of x87, long doubles, MMX beside x87. Run by real_programs under single step.
#include <fenv.h>
#include <math.h>
#include <mmintrin.h>
#include <stdio.h>
#include <xmmintrin.h>

static volatile double small = 1e-300;
static volatile float tiny = 1e-38f;

__attribute__((noinline)) static double shrink(double x, int n) {
  for (int i = 0; i < n; i++)
    x *= 0.1;
  return x;
}
__attribute__((noinline)) static float settle(float x, int n) {
  for (int i = 0; i < n; i++)
    x = x * 0.5f + 1e-45f;
  return x;
}
__attribute__((noinline)) static long double sum(const long double *all, int n) {
  long double total = 0;
  for (int i = 0; i < n; i++)
    total += all[i] / (i + 1) - sqrtl(all[i]);
  return total;
}
__attribute__((noinline)) static long long round_all(const long double *all, int n) {
  long long total = 0;
  for (int i = 0; i < n; i++)
    total += llrintl(all[i]) + (long long)all[i] + (all[i] > 3 ? 1 : 0);
  return total;
}
__attribute__((noinline)) static int with_mmx(int x) {
  __m64 a = _mm_set_pi16(1, 2, 3, (short)x), b = _mm_set1_pi16(7);
  __m64 c = _mm_unpacklo_pi8(_mm_adds_pi16(a, b), _mm_mullo_pi16(a, b));
  int result = _mm_cvtsi64_si32(_mm_srli_si64(c, 16));
  _mm_empty();
  return result;
}

int main(void) {
  static const int kModes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
  long double all[20];
  for (int flush = 0; flush < 2; flush++)
    for (int mode = 0; mode < 4; mode++) {
      _mm_setcsr(0x1f80 | (flush ? 0x8040 : 0));
      fesetround(kModes[mode]);
      for (int i = 0; i < 20; i++)
        all[i] = i * 1.7L + (long double)shrink(small, i % 5) * 1e300L;
      if (flush) { // x87 with 53 bits
        unsigned short control;
        __asm__ volatile("fnstcw %0" : "=m"(control));
        control = (unsigned short)((control & ~0x300) | 0x200);
        __asm__ volatile("fldcw %0" : : "m"(control));
      }
      double d = shrink(small, 12);
      float f = settle(tiny, 5);
      long double s = sum(all, 20);
      long long r = round_all(all, 20);
      __asm__ volatile("fninit");
      _mm_setcsr(0x1f80);
      printf("%a %a %La %lld %d\n", d, (double)f, s, r, with_mmx(mode));
    }
  return 0;
}
