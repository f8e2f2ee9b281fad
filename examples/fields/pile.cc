// A pile of boxes falls: `pile ROWS STEPS`.
#include <cstdio>
#include <cstdlib>

#include "box2d/box2d.h"

int main(int argc, char **argv) {
  int rows = argc > 1 ? atoi(argv[1]) : 60, steps = argc > 2 ? atoi(argv[2]) : 60;
  b2World world(b2Vec2(0, -10));
  b2BodyDef ground_definition;
  b2EdgeShape ground_shape;
  ground_shape.SetTwoSided(b2Vec2(-1000, 0), b2Vec2(1000, 0));
  world.CreateBody(&ground_definition)->CreateFixture(&ground_shape, 0);
  b2PolygonShape box;
  box.SetAsBox(0.5f, 0.5f);
  for (int row = 0; row < rows; row++)
    for (int column = row; column < rows; column++) {
      b2BodyDef definition;
      definition.type = b2_dynamicBody;
      definition.position.Set(1.1f * column - 0.55f * row - 15, 0.75f + 1.1f * row);
      world.CreateBody(&definition)->CreateFixture(&box, 5);
    }
  for (int i = 0; i < steps; i++)
    world.Step(1 / 60.0f, 8, 3);
  printf("%d bodies, %d contacts\n", world.GetBodyCount(), world.GetContactCount());
}
