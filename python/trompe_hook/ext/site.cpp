// Python's frames, read through functions that every Python since 3.9 exports. They
// are looked up by name, so that neither Python's headers nor its library are needed
// to build the observer.

#include "site.h"

#include <cstring>

#include "sink.h"

namespace trompe {
namespace {

struct Python {
  int (*initialized)();
  int (*lock)();
  void (*unlock)(int state);
  void* (*error)();
  void* (*frame)();
  void* (*back)(void* frame);
  void* (*code)(void* frame);
  int (*line)(void* frame);
  void* (*attribute)(void* object, const char* name);
  const char* (*text)(void* object);
  void (*release)(void* object);
  void (*retain)(void* object);
  bool usable = false;
};

const Python& python() {
  static const Python found = [] {
    Python p = {};
    p.usable = resolve(p.initialized, "Py_IsInitialized") && resolve(p.lock, "PyGILState_Ensure") &&
               resolve(p.unlock, "PyGILState_Release") && resolve(p.error, "PyErr_Occurred") &&
               resolve(p.frame, "PyEval_GetFrame") && resolve(p.back, "PyFrame_GetBack") &&
               resolve(p.code, "PyFrame_GetCode") && resolve(p.line, "PyFrame_GetLineNumber") &&
               resolve(p.attribute, "PyObject_GetAttrString") &&
               resolve(p.text, "PyUnicode_AsUTF8") && resolve(p.release, "Py_DecRef") &&
               resolve(p.retain, "Py_IncRef");
    return p;
  }();
  return found;
}

// File of a frame's code.
std::string file_of(const Python& p, void* frame) {
  void* code = p.code(frame);
  void* name = code == nullptr ? nullptr : p.attribute(code, "co_filename");
  const char* text = name == nullptr ? nullptr : p.text(name);
  std::string file = text == nullptr ? "?" : text;
  if (name != nullptr) p.release(name);
  if (code != nullptr) p.release(code);
  return file;
}

bool is_library(const std::string& file) {
  return file.find("/site-packages/torch/") != std::string::npos ||
         file.find("/trompe_hook/") != std::string::npos || file.rfind("<frozen", 0) == 0;
}

std::string site(const Python& p) {
  if (p.error() != nullptr) return "while an exception is handled";
  void* frame = p.frame();
  if (frame == nullptr) return "outside of Python";
  p.retain(frame);
  std::string innermost;
  while (frame != nullptr) {
    const std::string file = file_of(p, frame);
    const bool passed = is_library(file);
    if (file.find("/torch/_tensor_str.py") != std::string::npos) {
      p.release(frame);
      return "";
    }
    if (innermost.empty() || !passed) innermost = file + ":" + std::to_string(p.line(frame));
    void* back = passed ? p.back(frame) : nullptr;
    p.release(frame);
    frame = back;
  }
  return innermost;
}

}  // namespace

std::string python_site() {
  const Python& p = python();
  if (!p.usable || p.initialized() == 0) return "outside of Python";
  // PyTorch mostly lets go of the interpreter's lock before it runs an operator.
  const int state = p.lock();
  const std::string found = site(p);
  p.unlock(state);
  return found;
}

}  // namespace trompe
