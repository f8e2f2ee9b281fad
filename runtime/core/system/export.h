// How a function begins that a library of ours puts in front of libc's or of the program's.
#pragma once

#define ASSAY_EXPORT extern "C" [[gnu::visibility("default")]]
