// Where in the user's Python program the calling thread is.

#pragma once

#include <string>

namespace trompe {

// `file:line` of the innermost Python frame outside PyTorch, or a few words when
// this thread runs no Python (the autograd engine's do not). Empty while PyTorch prints
// a tensor, which decides about layout only.
std::string python_site();

}  // namespace trompe
