"""A C program with 4096 call paths to one allocation, each taken twice. Each call stands on a line of its own."""
DEPTH, PLACES = 6, 4
print("#include <stdlib.h>\nstatic int path;")
print("__attribute__((noinline)) static void leaf(void) {\n  volatile char *p = malloc(32);\n  *p = 1;\n  free((void *)p);\n}")
callee = "leaf"
for level in range(1, DEPTH + 1):
    print(f"__attribute__((noinline)) static void at_{level}(void) {{\n  switch (path >> {2 * (level - 1)} & 3) {{")
    for place in range(PLACES):
        # The assembly keeps four calls from becoming one, and each from being a jump.
        mark = f'__asm__ volatile("# {place}");'
        print(f"  case {place}:\n    {mark}\n    {callee}();\n    {mark}\n    break;")
    print("  }\n}")
    callee = f"at_{level}"
print(f"int main(void) {{\n  for (int i = 0; i < 2 * {PLACES**DEPTH}; i++) {{\n    path = i % {PLACES**DEPTH};\n    {callee}();\n  }}\n}}")
