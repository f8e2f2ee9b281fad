// lackey_lines TEXT_END < OUTPUT: reads what lackey prints with --trace-mem=yes --trace-syscalls=yes of a program
// whose own code ends at TEXT_END (hexadecimal). Prints the lines of 64 bytes of its heap (of brk) that were touched,
// counted from the first, each once: with "own" where the program's own code did it, else "libc".
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLines = (64 << 20) / 64 };
static unsigned char seen[kLines];

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  unsigned long text_end = strtoul(argv[1], NULL, 16), heap = 0, heap_end = 0, pc = 0;
  char text[512];
  while (fgets(text, sizeof text, stdin)) {
    char kind;
    unsigned long address, size;
    const char *result;
    if (strstr(text, "sys_brk ( ") && (result = strstr(text, "Success("))) {
      address = strtoul(result + strlen("Success("), NULL, 16);
      heap = heap ? heap : address;
      heap_end = address > heap_end ? address : heap_end;
    }
    if (sscanf(text, " %c %lx,%lu", &kind, &address, &size) != 3)
      continue;
    if (kind == 'I')
      pc = address;
    else if (strchr("LSM", kind) && address >= heap && address + size <= heap_end)
      for (unsigned long line = (address - heap) / 64; line <= (address + size - 1 - heap) / 64;
           line++)
        seen[line] |= pc < text_end ? 2 : 1;
  }
  for (unsigned long line = 0; line < kLines; line++)
    if (seen[line])
      printf("%lu %s\n", line, seen[line] & 2 ? "own" : "libc");
  return 0;
}
