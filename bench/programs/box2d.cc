// A pyramid of boxes on the ground; the argument is the number of steps.
#include <cstdio>
#include <cstdlib>

#include "box2d/box2d.h"

int main(int argc, char **argv) {
  int steps = argc > 1 ? atoi(argv[1]) : 100;
  b2World world(b2Vec2(0, -10));
  b2BodyDef ground_definition;
  b2EdgeShape ground_shape;
  ground_shape.SetTwoSided(b2Vec2(-100, 0), b2Vec2(100, 0));
  world.CreateBody(&ground_definition)->CreateFixture(&ground_shape, 0);
  b2PolygonShape box;
  box.SetAsBox(0.5f, 0.5f);
  for (int row = 0; row < 30; row++)
    for (int column = row; column < 30; column++) {
      b2BodyDef definition;
      definition.type = b2_dynamicBody;
      definition.position.Set(1.1f * column - 0.55f * row - 15, 0.75f + 1.1f * row);
      world.CreateBody(&definition)->CreateFixture(&box, 5);
    }
  for (int i = 0; i < steps; i++)
    world.Step(1 / 60.0f, 8, 3);
  float height = 0;
  for (b2Body *body = world.GetBodyList(); body; body = body->GetNext())
    height += body->GetPosition().y;
  printf("%d bodies, contacts %d\n", world.GetBodyCount(), world.GetContactCount());
}
