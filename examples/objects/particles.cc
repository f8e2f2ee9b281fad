// Particles move for 200 steps. A step needs place and speed; name, colour and history lie between them.
#include <cstdio>
#include <memory>
#include <vector>

struct Particle {
  float x, y;
  char name[40];
  unsigned colour;
  float dx, dy;
  float history[17];
};

static std::vector<std::unique_ptr<Particle>> make_particles(int n) {
  std::vector<std::unique_ptr<Particle>> all;
  for (int i = 0; i < n; i++) {
    all.push_back(std::make_unique_for_overwrite<Particle>());
    Particle &p = *all.back();
    p.x = float(i), p.y = float(-i), p.dx = 1, p.dy = 0.5f;
  }
  return all;
}

int main() {
  auto particles = make_particles(20000);
  for (int step = 0; step < 200; step++)
    for (auto &p : particles) {
      p->x += p->dx;
      p->y += p->dy;
    }
  std::printf("%g %g\n", double(particles[7]->x), double(particles[7]->y));
}
