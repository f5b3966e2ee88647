// What is known of an operator, found once from PyTorch's own table of operators.

#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <optional>
#include <string>

namespace trompe::values {

struct Operator {
  enum class Kind : uint8_t {
    kIgnored,   // nothing to do: views, allocation, composite operators (their parts come by themselves)
    kWrites,    // not computed, but changes tensors
    kCopy,      // `aten::copy_`
    kReads,     // `aten::_local_scalar_dense`: the host reads a value
    kTrusted,   // reads for itself whether a library succeeded
    kComputed,  // has kernels for the device and for the processor
  };

  std::string name;
  Kind kind = Kind::kIgnored;
  std::optional<c10::OperatorHandle> handle;
  size_t returns = 0;
  // One bit per argument: changes it; does not read it.
  uint64_t mutated = 0;
  uint64_t overwritten = 0;
  // Place of the random generator among the arguments, or -1.
  int generator = -1;
  // Each element of the result depends on one element of each input.
  bool pointwise = false;
  // A reduction over equal elements gives that element.
  bool idempotent = false;
  // Compares numbers: the result is a truth value.
  bool compares = false;
  // Asks whether numbers are finite.
  bool finite_test = false;
  // Results are drawn.
  bool random = false;
  // The size of the result depends on values, so the host reads them.
  bool sizes = false;
  // Chooses among alternatives: results of unknown inputs come from a policy.
  bool chooses = false;
  // Scores that were marked are marked in the result: computed also when some are unknown.
  bool follows = false;
  // Fills with one value.
  bool fills = false;

  bool mutates(size_t argument) const { return argument < 64 && (mutated >> argument & 1) != 0; }
  bool reads(size_t argument) const { return argument >= 64 || (overwritten >> argument & 1) == 0; }
};

const Operator& operator_of(const at::RecordFunction& function);

}  // namespace trompe::values
