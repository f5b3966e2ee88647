// The preloaded library's functions, as both parts of the observer call them. They
// are looked up by name at run time, so that the two sides share no header. All of
// them may be called from any thread.

#pragma once

#include <dlfcn.h>

#include <cstdint>

namespace trompe {

struct Sink {
  int (*recording)();
  uint64_t (*ticks)();
  void (*op_begin)(const char* name, uint32_t name_length, uint8_t scope, int64_t sequence_number,
                   uint64_t forward_thread, const uint8_t* values, uint32_t values_length,
                   uint64_t since);
  void (*op_end)(const uint8_t* outputs, uint32_t outputs_length, uint64_t since);
  void (*alloc_event)(uint8_t action, uint64_t address, uint64_t size, uint64_t stream);
  void (*meta)(const char* key, uint32_t key_length, const char* value, uint32_t value_length);
  uint8_t (*content)(uint64_t address, uint64_t bytes);
  void (*content_written)(uint64_t address, uint64_t bytes, uint8_t content);
};

template <typename Function>
bool resolve(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

}  // namespace trompe
