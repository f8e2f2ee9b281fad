// Frames as results carry them, so that whoever shows a result needs nothing of image/.
#pragma once

#include "image/frame.h"
#include "image/symbols.h"

namespace analyze {

using image::base_name;
using image::CallStack;
using image::Frame;

} // namespace analyze
