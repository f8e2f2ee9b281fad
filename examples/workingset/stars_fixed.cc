// The same, with the two numbers that every question reads in arrays of their own.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

struct Star {
  float magnitude, colour, parallax, motion[2];
  std::uint32_t number;
  char name[96];
};

struct Catalogue {
  std::vector<float> right_ascension, declination;
  std::vector<Star> stars;
};

static Catalogue read_catalogue(int count) {
  auto n = static_cast<std::size_t>(count);
  Catalogue catalogue{std::vector<float>(n), std::vector<float>(n), std::vector<Star>(n)};
  std::minstd_rand random(1);
  for (std::size_t i = 0; i < n; i++) {
    catalogue.right_ascension[i] = float(random() % 36000) / 100;
    catalogue.declination[i] = float(random() % 18000) / 100 - 90;
  }
  return catalogue;
}

static int count_in_window(const Catalogue &catalogue, float right_ascension, float declination) {
  int found = 0;
  for (std::size_t i = 0; i < catalogue.stars.size(); i++)
    found += catalogue.right_ascension[i] > right_ascension &&
             catalogue.right_ascension[i] < right_ascension + 10 &&
             catalogue.declination[i] > declination && catalogue.declination[i] < declination + 10;
  return found;
}

int main() {
  Catalogue catalogue = read_catalogue(40000);
  long found = 0;
  for (int question = 0; question < 300; question++)
    found += count_in_window(catalogue, float(question % 350), float(question % 160) - 80);
  std::printf("%ld\n", found);
}
