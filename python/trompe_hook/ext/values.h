// True values for small tensors.
//
// On the emulated device kernels do nothing. Programs nevertheless decide by what
// small tensors hold: stop flags, lengths, counts, masks, sizes of messages. So an
// operator on small tensors of integers, truth values or a few floats is executed a
// second time by PyTorch's own kernels for the processor, right where the device's
// tensors lie (device memory is ordinary memory of this process). That works by the
// operator's kind, not by a list of operators.
//
// What it is not: an execution of the model. Floats that nothing small determines
// (activations, losses) stay zero and are *unknown*; they count as finite.
//
// Contents: every byte of device memory is unknown, chosen by a policy (which expert
// a token goes to), or true. A result is as good as the worst input that it reads. A
// program that reads an unknown integer or truth value back to the host is told so
// in the report, with the operator and the line of Python.

#pragma once

#include <ATen/record_function.h>

#include <memory>

#include "sink.h"

namespace trompe::values {

// An operator under way whose result will be computed.
struct Pending;

// Replaces the device's `aten::equal`, which compares behind the back of observers, by
// one made of observed operators.
void replace_equal();

// Whether contents can be followed: the allocator says when memory changes hands.
void enable(const Sink& sink);
void disable();
bool enabled();

// To be called when an operator begins and ends on a thread. `begin` answers null for
// the great majority of operators, which are not computed.
std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function);
void end(at::ObserverContext* pending, const at::RecordFunction& function);

// Memory changed hands.
void forget(uint64_t address, uint64_t bytes);

// Writes how often each place read unknown values, as facts of the trace.
void report();

}  // namespace trompe::values
