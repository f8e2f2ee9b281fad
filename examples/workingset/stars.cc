// Reads a catalogue of stars, then answers questions about it: which stars lie in a window of the sky?
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

struct Star {
  float right_ascension, declination;
  float magnitude, colour, parallax, motion[2];
  std::uint32_t number;
  char name[96];
};

static std::vector<Star> read_catalogue(int count) {
  std::vector<Star> stars(static_cast<std::size_t>(count));
  std::minstd_rand random(1);
  for (Star &star : stars) {
    star.right_ascension = float(random() % 36000) / 100;
    star.declination = float(random() % 18000) / 100 - 90;
  }
  return stars;
}

static int count_in_window(const std::vector<Star> &stars, float right_ascension,
                           float declination) {
  int found = 0;
  for (const Star &star : stars)
    found += star.right_ascension > right_ascension &&
             star.right_ascension < right_ascension + 10 && star.declination > declination &&
             star.declination < declination + 10;
  return found;
}

int main() {
  std::vector<Star> stars = read_catalogue(40000);
  long found = 0;
  for (int question = 0; question < 300; question++)
    found += count_in_window(stars, float(question % 350), float(question % 160) - 80);
  std::printf("%ld\n", found);
}
