// Runs skeletons on what a program logged, and says what it accessed.
//
//   ./skeleton VALUES            the accesses, one a line, as Valgrind's lackey writes them
//   ./skeleton --count VALUES    how many there were
//
// What VALUES is made of: values_format.h.

#include "skeleton.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1 << 26 }; // bytes of a piece

static FILE *values;
static const struct start **start_of; // by number
static uint64_t numbers;
static int counts_only;
static struct access made[ACCESSES + ACCESSES_AT_ONCE];
static const struct stream *last; // the one that made them

_Noreturn void damaged(const char *what) {
  fflush(stdout);
  fprintf(stderr, "skeleton: the values are damaged: %s\n", what);
  exit(2);
}

// ---- what is done with accesses

static uint64_t reads, writes, sum;
static struct access
    before; // a read, of which it is not known yet whether its instruction writes as well
static int has_before;

static void print_number(char **to, uint64_t number, unsigned base) {
  char digits[24], *at = digits;
  do
    *at++ = "0123456789abcdef"[number % base];
  while (number /= base);
  while (at != digits)
    *(*to)++ = *--at;
}

static void print_access(const struct access *a, char kind) {
  char line[80], *to = line;
  print_number(&to, ACCESS_PC(a), 16);
  *to++ = ' ';
  *to++ = kind;
  *to++ = ' ';
  print_number(&to, a->address, 16);
  *to++ = ',';
  print_number(&to, ACCESS_BYTES(a), 10);
  *to++ = '\n';
  fwrite(line, 1, (size_t)(to - line), stdout);
}

static void print_before(void) {
  if (has_before)
    print_access(&before, 'L');
  has_before = 0;
}

void take(uint32_t thread, const struct access *accesses, uint64_t count) {
  (void)thread;
  if (counts_only) {
    uint64_t written = 0, addresses = 0;
    for (uint64_t i = 0; i < count; i++) {
      written += ACCESS_WRITES(accesses + i);
      addresses += accesses[i].address;
    }
    reads += count - written;
    writes += written;
    sum += addresses;
    return;
  }
  for (uint64_t i = 0; i < count; i++) {
    const struct access *a = accesses + i;
    if (has_before && a->address == before.address && a->what == (before.what | 1)) {
      has_before = 0;
      print_access(a, 'M');
      continue;
    }
    print_before();
    if (ACCESS_WRITES(a)) {
      print_access(a, 'S');
    } else {
      before = *a;
      has_before = 1;
    }
  }
}

// ---- streams

static void hand_over(struct stream *s) {
  const uint64_t count = (uint64_t)(s->out - made);
  if (count && last != s) {
    print_before();
    if (!counts_only)
      printf("# thread %u\n", (unsigned)s->thread);
    last = s;
  }
  if (count)
    take(s->thread, made, count);
  s->out = made;
}

void empty(struct stream *s) {
  const uint64_t most = 1 << 26; // behind the end of what was logged
  if (s->has_ended && (s->behind += (uint64_t)(s->out - made)) > most)
    longjmp(s->left, 1);
  hand_over(s);
}

static int next_piece(struct piece *piece) {
  if (fread(piece, sizeof *piece, 1, values) != 1)
    return 0;
  if (piece->bytes > MOST)
    damaged("a piece is too long");
  return 1;
}

static void *contents_of(const struct piece *piece) {
  void *bytes = malloc(piece->bytes + 1);
  if (!bytes || (piece->bytes && fread(bytes, piece->bytes, 1, values) != 1))
    damaged("they end early");
  return bytes;
}

static void run(const struct piece *begin);

// The next piece of it that is not empty; 0: there is none.
static int next_of(struct stream *s, uint8_t **logged) {
  struct piece piece;
  for (;;) {
    if (s->has_ended)
      return 0;
    if (!next_piece(&piece))
      piece.kind = PIECE_CUT;
    switch (piece.kind) {
    case PIECE_STREAM:
      hand_over(s);
      run(&piece);
      s->out = made;
      break;
    case PIECE_LOGGED:
      free(*logged);
      *logged = contents_of(&piece);
      s->in = *logged;
      s->end = *logged + piece.bytes;
      if (piece.bytes)
        return 1;
      break;
    case PIECE_ENDED: s->has_ended = 1; break;
    case PIECE_CUT: s->has_ended = 1; longjmp(s->left, 1);
    default: damaged("a piece of an unknown kind");
    }
  }
}

struct running {
  struct stream stream;
  uint8_t *logged;
};

void more(struct stream *s) {
  next_of(s, &((struct running *)s)->logged);
}

// Fewer bytes are left than `bytes`: the others were zeros, and behind them nothing was logged.
static void pad(struct stream *s, unsigned bytes) {
  const uint64_t left = (uint64_t)(s->end - s->in);
  memmove(s->padded, s->in, left);
  memset(s->padded + left, 0, bytes - left);
  s->in = s->padded;
  s->end = s->padded + bytes;
}

uint64_t last_in(struct stream *s, unsigned bytes) {
  const uint64_t left = (uint64_t)(s->end - s->in);
  if (left == 0)
    longjmp(s->left, 1);
  if (left < bytes)
    pad(s, bytes);
  const uint64_t value = number_at(s->in, bytes);
  s->in += bytes;
  if (s->in == s->end)
    more(s);
  return value;
}

static void run(const struct piece *begin) {
  struct running *running = calloc(1, sizeof *running);
  uint64_t *first = contents_of(begin);
  if (!running || begin->bytes < 16)
    damaged("a stream without a beginning");
  struct stream *s = &running->stream;
  s->thread = begin->thread;
  s->fs = first[0];
  s->bias = first + 1;
  s->out = made;
  s->full = made + ACCESSES;
  if (setjmp(s->left) == 0) {
    more(s);
    while (s->in != s->end) {
      if (s->end - s->in < 4)
        pad(s, 4);
      const uint32_t number = (uint32_t)number_at(s->in, 4);
      if (number == 0) { // the thread was ended while it wrote this
        s->in = s->end;
        while (next_of(s, &running->logged))
          s->in = s->end;
        break;
      }
      const struct start *start = number <= numbers ? start_of[number - 1] : 0;
      if (!start)
        damaged("they name a start that no skeleton has");
      s->in += 4;
      if ((uint64_t)(s->end - s->in) < start->bytes)
        pad(s, start->bytes);
      start->skeleton(s, start->start);
      if (s->out >= s->full)
        empty(s);
    }
  }
  hand_over(s);
  last = 0;
  free(running->logged);
  free(running);
  free(first);
}

int main(int count, char **arguments) {
  counts_only = count > 1 && strcmp(arguments[1], "--count") == 0;
  if (count != 2 + counts_only) {
    fprintf(stderr, "usage: %s [--count] VALUES\n", arguments[0]);
    return 2;
  }
  values = fopen(arguments[1 + counts_only], "rb");
  char magic[8];
  if (!values || fread(magic, sizeof magic, 1, values) != 1 ||
      memcmp(magic, VALUES_MAGIC, sizeof magic) != 0) {
    fprintf(stderr, "skeleton: %s: these are no values; `assay trace skeleton` writes them\n",
            arguments[1 + counts_only]);
    return 2;
  }
  for (uint64_t i = 0; i < starts_count; i++)
    if (starts[i].number >= numbers)
      numbers = starts[i].number + 1;
  start_of = calloc(numbers + 1, sizeof *start_of);
  for (uint64_t i = 0; i < starts_count; i++)
    start_of[starts[i].number] = &starts[i];
  struct piece piece;
  while (next_piece(&piece)) {
    if (piece.kind != PIECE_STREAM)
      damaged("a piece without a stream");
    run(&piece);
  }
  print_before();
  if (counts_only)
    printf("%llu accesses: %llu reads, %llu writes; sum of the addresses %llx\n",
           (unsigned long long)(reads + writes), (unsigned long long)reads,
           (unsigned long long)writes, (unsigned long long)sum);
  return 0;
}
