// The same; what a step needs is together, the rest is elsewhere.
#include <cstdio>
#include <memory>
#include <vector>

struct Particle {
  float x, y, dx, dy;
};

struct Details { // of the particle of the same number; made when somebody asks
  char name[40];
  unsigned colour;
  float history[17];
};

static std::vector<Particle> make_particles(int n) {
  std::vector<Particle> all;
  all.reserve(size_t(n));
  for (int i = 0; i < n; i++)
    all.push_back({float(i), float(-i), 1, 0.5f});
  return all;
}

int main() {
  auto particles = make_particles(20000);
  for (int step = 0; step < 200; step++)
    for (Particle &p : particles) {
      p.x += p.dx;
      p.y += p.dy;
    }
  std::printf("%g %g\n", double(particles[7].x), double(particles[7].y));
}
