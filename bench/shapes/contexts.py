#!/usr/bin/env python3
"""Writes a C program with 2^20 call paths and no recursion: twenty levels of two functions, each of which calls either of
the next level. Each path is taken four times; half of the objects stay."""
print("#include <stdio.h>\n#include <stdlib.h>\nstatic long objects;")
print("__attribute__((noinline)) static void f20_0(unsigned bits) { volatile char *p = malloc(24); p[0] = 1; objects++; if (bits & 1) free((void *)p); }")
print("__attribute__((noinline)) static void f20_1(unsigned bits) { volatile char *p = malloc(40); p[0] = 1; objects++; if (bits & 1) free((void *)p); }")
for level in range(19, -1, -1):
    for which in 0, 1:
        print(f"__attribute__((noinline)) static void f{level}_{which}(unsigned bits) {{ if (bits & 1) f{level + 1}_0(bits >> 1); else f{level + 1}_1(bits >> 1); __asm__ volatile(\"\"); }}")
print('int main(void) { for (unsigned i = 0; i < 4u << 20; i++) f0_0(i); printf("%ld\\n", objects); }')
