// Execution of small operators on the processor: see values.h.

#include "values.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

#include "operators.h"
#include "routing.h"
#include "site.h"

namespace trompe::values {
namespace {

// As in the preloaded library (`trompe_content`).
constexpr uint8_t kUnknown = 0, kChosen = 1, kTrue = 2, kSupposed = 3, kCapturing = 255;

// Operators on more elements or bytes than these are not computed: it would take
// long, and nobody decides by so many values. What a policy chose is followed further,
// because masks of tokens and experts are large.
constexpr int64_t kMostElements = 1 << 20;
constexpr int64_t kMostBytes = 4 << 20;
constexpr int64_t kMostChosenBytes = 64 << 20;
// Floats are computed when all inputs are true and as few as this.
constexpr int64_t kMostFloats = 1024;
// More alternatives than this are words of a vocabulary, not experts.
constexpr int64_t kMostExperts = 4096;

Sink sink;
std::atomic<bool> on{false};
std::atomic<uint64_t> unknown_floats{0};

// Computed operators that this thread is inside of, and ones that read for themselves
// what a library tells them.
thread_local int inside = 0;
thread_local int trusted = 0;

// ---- Large tensors of which all elements are equal --------------------------

struct Uniform {
  int64_t elements;
  double value;
  uint8_t content;
};

std::mutex uniforms_lock;
auto& uniforms = *new std::map<uint64_t, Uniform>();
std::atomic<size_t> uniforms_count{0};

uint64_t address_of(const at::Tensor& tensor) { return reinterpret_cast<uint64_t>(tensor.const_data_ptr()); }

bool find_uniform(const at::Tensor& tensor, Uniform& found) {
  if (uniforms_count.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard<std::mutex> guard(uniforms_lock);
  const auto place = uniforms.find(address_of(tensor));
  if (place == uniforms.end() || place->second.elements != tensor.numel()) return false;
  found = place->second;
  return true;
}

void set_uniform(const at::Tensor& tensor, double value, uint8_t content) {
  const std::lock_guard<std::mutex> guard(uniforms_lock);
  uniforms[address_of(tensor)] = {tensor.numel(), value, content};
  uniforms_count = uniforms.size();
}

// ---- Tensors ----------------------------------------------------------------

// Whether a tensor is an ordinary one on a device, with memory that can be looked at.
bool is_plain(const at::Tensor& tensor) {
  static const c10::DispatchKeySet kOther({
      c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot, c10::DispatchKey::Conjugate,
      c10::DispatchKey::Negative, c10::DispatchKey::ZeroTensor, c10::DispatchKey::Functionalize,
      c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper});
  return tensor.layout() == c10::kStrided && tensor.has_storage() && !tensor.key_set().has_any(kOther) &&
         !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides() && !tensor.is_nested();
}

bool is_integral(const at::Tensor& tensor) { return c10::isIntegralType(tensor.scalar_type(), true); }

// Bytes from the first to the last element.
int64_t span_of(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  int64_t last = 0;
  for (int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
  return (last + 1) * static_cast<int64_t>(tensor.itemsize());
}

// What a tensor holds.
uint8_t content_of(const at::Tensor& tensor) {
  const int64_t span = span_of(tensor);
  return span == 0 ? kTrue : sink.content(address_of(tensor), static_cast<uint64_t>(span));
}

// The same memory as a tensor of the processor.
at::Tensor on_host(const at::Tensor& tensor) {
  return at::from_blob(const_cast<void*>(tensor.const_data_ptr()), tensor.sizes(), tensor.strides(),
                       at::TensorOptions().dtype(tensor.dtype()).device(at::kCPU));
}

template <typename Visit>
bool each_tensor(const c10::IValue& value, Visit&& visit) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    return !tensor.defined() || visit(tensor);
  }
  if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) {
      if (item.isTensor() && item.toTensor().defined() && !visit(item.toTensor())) return false;
    }
  }
  return true;
}

// ---- What is read back ------------------------------------------------------

struct Reads {
  std::mutex lock;
  std::map<std::pair<std::string, std::string>, uint64_t> places;
};

Reads& reads() {
  static Reads* found = new Reads();
  return *found;
}

void tell(const std::string& key, const std::string& value) {
  sink.meta(key.data(), static_cast<uint32_t>(key.size()), value.data(), static_cast<uint32_t>(value.size()));
}

void tell_place(const std::pair<std::string, std::string>& place, uint64_t times) {
  tell("values.unknown/" + place.first + "/" + place.second, std::to_string(times));
}

// The host reads values that nobody computed.
void note_unknown_read(const Operator& op, const at::Tensor& tensor) {
  if (!is_integral(tensor)) {
    unknown_floats.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const std::pair<std::string, std::string> place = {op.name, python_site()};
  if (place.second.empty()) return;  // printing
  Reads& all = reads();
  const std::lock_guard<std::mutex> guard(all.lock);
  if (++all.places[place] == 1) tell_place(place, 1);
}

void note_read(const Operator& op, const at::Tensor& tensor) {
  // What a computed operator reads for itself does not matter.
  if (inside > 0 || trusted > 0 || !tensor.is_cuda() || !is_plain(tensor)) return;
  if (content_of(tensor) == kUnknown) note_unknown_read(op, tensor);
}

// ---- Operators under way ----------------------------------------------------

struct Inputs {
  bool plain = true;
  bool device = false;
  bool large = false;
  bool floats_large = false;
  bool integral = false;
  uint8_t content = kTrue;
};

bool fits(const at::Tensor& tensor, uint8_t content) {
  const int64_t bytes = tensor.numel() * static_cast<int64_t>(tensor.itemsize());
  if (content == kChosen) return bytes <= kMostChosenBytes;
  return bytes <= kMostBytes && tensor.numel() <= kMostElements;
}

// Sizes first, because most operators end there.
bool is_large(const Operator& op, c10::ArrayRef<const c10::IValue> inputs) {
  bool large = false;
  for (const c10::IValue& value : inputs) {
    each_tensor(value, [&](const at::Tensor& tensor) {
      large = tensor.numel() > kMostElements * 64 ||
              (tensor.numel() > kMostElements && !is_integral(tensor));
      return !large;
    });
    if (large) return true;
  }
  return false;
}

Inputs look_at(const Operator& op, c10::ArrayRef<const c10::IValue> inputs) {
  Inputs found;
  bool chosen = false;
  bool huge = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool read = op.reads(i);
    const bool fine = each_tensor(inputs[i], [&](const at::Tensor& tensor) {
      if (!tensor.is_cuda()) return tensor.is_cpu();
      if (!is_plain(tensor)) return false;
      found.device = true;
      found.integral |= is_integral(tensor);
      const uint8_t content = read ? content_of(tensor) : kTrue;
      if (content == kCapturing) return false;
      chosen |= content == kChosen;
      found.content = std::min(found.content, content);
      found.large |= !fits(tensor, kTrue);
      huge |= !fits(tensor, kChosen);
      return true;
    });
    if (!fine) {
      found.plain = false;
      return found;
    }
    if (inputs[i].isDevice()) found.device |= inputs[i].toDevice().is_cuda();
  }
  if (chosen && found.content == kChosen) found.large = huge;
  return found;
}

bool is_infinite(const c10::IValue& value) {
  return value.isDouble() && std::isinf(value.toDouble());
}

// Whether an operator asks for finite numbers in one of the usual ways. Unknown floats
// count as finite, so the answer is as good as true.
bool tests_finiteness(const Operator& op, c10::ArrayRef<const c10::IValue> inputs) {
  if (op.finite_test) return true;
  if (!op.compares || inputs.size() < 2) return false;
  if (is_infinite(inputs[1])) return true;
  return inputs[0].isTensor() && inputs[1].isTensor() && inputs[0].toTensor().is_same(inputs[1].toTensor());
}

}  // namespace

struct Pending : at::ObserverContext {
  enum class Way { kCompute, kUniform, kChoose, kForget, kCopyFromDevice, kTrust };
  const Operator* op;
  Way way;
  std::vector<c10::IValue> stack;
  uint8_t content = kTrue;

  Pending(const Operator& op, Way way, c10::ArrayRef<const c10::IValue> inputs)
      : op(&op), way(way), stack(inputs.begin(), inputs.end()) {
    inside += decides();
    trusted += way == Way::kTrust ? 1 : 0;
  }
  ~Pending() override {
    inside -= decides();
    trusted -= way == Way::kTrust ? 1 : 0;
  }
  // Whether the results of operators inside of this one do not matter.
  int decides() const { return way == Way::kForget || way == Way::kTrust ? 0 : 1; }
};

namespace {

// ---- Execution --------------------------------------------------------------

at::Generator& generator() {
  static auto* own = new at::Generator(at::detail::createCPUGenerator(0x7472'6f6d'7065ull));
  return *own;
}

// Runs an operator's own kernel for the processor on a stack of its inputs.
void run(const Operator& op, std::vector<c10::IValue>& stack) {
  // As in a fresh thread below autograd: no modes, no wrappers, no observers.
  const at::DisableRecordFunctionGuard unobserved;
  const c10::impl::ForceDispatchKeyGuard plain(
      c10::default_included_set.remove(c10::DispatchKey::ADInplaceOrView),
      c10::default_excluded_set | c10::autograd_dispatch_keyset |
          c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView));
  if (op.generator >= 0) stack[static_cast<size_t>(op.generator)] = c10::IValue(generator());
  op.handle->redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
}

template <typename Convert>
std::vector<c10::IValue> converted(const std::vector<c10::IValue>& inputs, Convert&& convert) {
  std::vector<c10::IValue> stack;
  stack.reserve(inputs.size());
  for (const c10::IValue& value : inputs) {
    if (value.isTensor()) {
      const at::Tensor& tensor = value.toTensor();
      stack.push_back(tensor.defined() && tensor.is_cuda() ? c10::IValue(convert(tensor)) : value);
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) {
        list.push_back(tensor.defined() && tensor.is_cuda() ? convert(tensor) : tensor);
      }
      stack.emplace_back(std::move(list));
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        const bool device = tensor.has_value() && tensor->defined() && tensor->is_cuda();
        list.push_back(device ? std::optional<at::Tensor>(convert(*tensor)) : tensor);
      }
      stack.emplace_back(std::move(list));
    } else if (value.isDevice() && value.toDevice().is_cuda()) {
      stack.emplace_back(c10::Device(c10::kCPU));
    } else {
      stack.push_back(value);
    }
  }
  return stack;
}

void written(const at::Tensor& tensor, uint8_t content) {
  const int64_t span = span_of(tensor);
  if (span > 0) sink.content_written(address_of(tensor), static_cast<uint64_t>(span), content);
}

void write(const Operator& op, const at::Tensor& target, const at::Tensor& values, uint8_t content) {
  if (target.sizes() != values.sizes()) {
    // The processor's kernel has results of its own, as those of an embedding bag for its gradient.
    if (!op.sizes) return written(target, kUnknown);
    const at::DisableRecordFunctionGuard unobserved;
    // Not a change of the tensor that autograd should count.
    const c10::impl::ExcludeDispatchKeyGuard plain(c10::autograd_dispatch_keyset |
                                                   c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView));
    const_cast<at::Tensor&>(target).resize_(values.sizes());
  }
  if (target.numel() == 0) return;
  const at::DisableRecordFunctionGuard unobserved;
  on_host(target).copy_(values);
  written(target, content);
}

std::vector<at::Tensor> tensors_of(const std::vector<c10::IValue>& values) {
  std::vector<at::Tensor> found;
  for (const c10::IValue& value : values) {
    each_tensor(value, [&](const at::Tensor& tensor) {
      found.push_back(tensor);
      return true;
    });
  }
  return found;
}

void forget_changed(const Pending& pending) {
  for (size_t i = 0; i < pending.stack.size(); ++i) {
    if (!pending.op->mutates(i)) continue;
    each_tensor(pending.stack[i], [&](const at::Tensor& tensor) {
      if (!tensor.is_cuda() || !is_plain(tensor)) return true;
      if (uniforms_count.load(std::memory_order_relaxed) != 0) forget(address_of(tensor), 1);
      if (fits(tensor, kChosen)) written(tensor, kUnknown);
      return true;
    });
  }
}

bool all_few(const std::vector<c10::IValue>& values) {
  bool few = true;
  for (const c10::IValue& value : values) {
    each_tensor(value, [&](const at::Tensor& tensor) { return few &= tensor.numel() <= kMostFloats; });
  }
  return few;
}

bool all_finite(const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) {
    if (tensor.is_floating_point() && !on_host(tensor).isfinite().all().item<bool>()) return false;
  }
  return true;
}

// Few floats, some of them unknown: computed as if those were 0, and as unknown as before. So the marks that
// programs put among scores (-inf for what must not be chosen) stay where they belong.
void suppose(Pending& pending, const std::vector<at::Tensor>& targets) {
  const at::DisableRecordFunctionGuard unobserved;
  const c10::impl::ExcludeDispatchKeyGuard plain(c10::autograd_dispatch_keyset);
  const bool finite = all_finite(tensors_of(pending.stack));
  std::vector<c10::IValue> stack = converted(pending.stack, on_host);
  run(*pending.op, stack);
  const std::vector<at::Tensor> results = pending.op->mutated != 0 ? targets : tensors_of(stack);
  if (results.size() != targets.size()) return;
  for (size_t i = 0; i < results.size(); ++i) {
    const at::Tensor values = results[i].is_cuda() ? on_host(results[i]) : results[i];
    if (values.is_floating_point()) values.masked_fill_(finite ? ~values.isfinite() : values.isnan(), 0.0);
    if (pending.op->mutated != 0) {
      written(targets[i], kSupposed);
    } else {
      write(*pending.op, targets[i], values, kSupposed);
    }
  }
}

void compute(Pending& pending, const std::vector<c10::IValue>& outputs) {
  const Operator& op = *pending.op;
  const std::vector<at::Tensor> targets = tensors_of(outputs);
  bool integral = false;
  bool few = true;
  for (const at::Tensor& target : targets) {
    if (!target.is_cuda() || !is_plain(target)) return;
    integral |= is_integral(target);
    few &= target.numel() <= kMostFloats;
    if (!fits(target, pending.content)) return forget_changed(pending);
  }
  if (!integral && !(pending.content >= kChosen && few)) {
    if (few && pending.op->follows && all_few(pending.stack)) return suppose(pending, targets);
    return forget_changed(pending);
  }
  std::vector<c10::IValue> stack = converted(pending.stack, on_host);
  try {
    run(op, stack);
  } catch (...) {
    if (op.name != "aten::histc") throw;
    // The processor's histogram takes floats only.
    stack = converted(pending.stack, [](const at::Tensor& tensor) { return on_host(tensor).to(at::kDouble); });
    run(op, stack);
  }
  if (op.mutated != 0) {
    for (const at::Tensor& target : targets) written(target, pending.content);
    return;
  }
  const std::vector<at::Tensor> results = tensors_of(stack);
  if (results.size() != targets.size()) return;
  for (size_t i = 0; i < results.size(); ++i) write(op, targets[i], results[i], pending.content);
}

// A large tensor's stand-in: one element, in as many dimensions.
bool stand_in(const Pending& pending, const at::Tensor& tensor, at::Tensor& found, uint8_t& content) {
  Uniform uniform;
  double value = 0.0;
  if (find_uniform(tensor, uniform)) {
    value = uniform.value;
    content = std::min(content, uniform.content);
  } else if (tensor.numel() == 1 && fits(tensor, kTrue)) {
    content = std::min(content, content_of(tensor));
    found = on_host(tensor);
    return true;
  } else if (pending.op->compares && tensor.is_floating_point()) {
    content = std::min(content, kUnknown);
  } else {
    return false;
  }
  const std::vector<int64_t> ones(static_cast<size_t>(tensor.dim()), 1);
  found = at::empty(ones, at::TensorOptions().dtype(tensor.dtype()).device(at::kCPU));
  found.fill_(value);
  return true;
}

void compute_uniform(Pending& pending, const std::vector<c10::IValue>& outputs) {
  const std::vector<at::Tensor> targets = tensors_of(outputs);
  if (targets.size() != 1 || !targets[0].is_cuda() || !is_plain(targets[0]) || !is_integral(targets[0])) {
    return forget_changed(pending);
  }
  const at::Tensor& target = targets[0];
  if (pending.op->fills) {
    const double value = pending.stack.size() < 2 ? 0.0 : pending.stack[1].toScalar().toDouble();
    if (target.is_contiguous()) set_uniform(target, value, kTrue);
    return;
  }
  const bool in_place = pending.op->mutated == 1 && pending.op->pointwise;
  if (pending.op->mutated != 0 && !in_place) return forget_changed(pending);
  uint8_t content = kTrue;
  bool possible = true;
  const at::DisableRecordFunctionGuard unobserved;
  std::vector<c10::IValue> stack = converted(pending.stack, [&](const at::Tensor& tensor) {
    at::Tensor found = tensor;
    possible &= stand_in(pending, tensor, found, content);
    return found;
  });
  if (!possible) return forget_changed(pending);
  if (pending.content == kTrue) content = kTrue;  // a test for finite numbers
  run(*pending.op, stack);
  const std::vector<at::Tensor> results = tensors_of(stack);
  if (results.size() != 1 || results[0].numel() != 1) return;
  const double value = results[0].item().toDouble();
  if (fits(target, kTrue)) {
    if (target.numel() > 0) on_host(target).fill_(value);
    written(target, content);
  } else {
    set_uniform(target, value, content);
  }
}

// Whether the first of the chosen is the largest.
bool wants_largest(const Pending& pending) {
  const auto& arguments = pending.op->handle->schema().arguments();
  for (size_t i = 0; i < arguments.size() && i < pending.stack.size(); ++i) {
    const std::string& name = arguments[i].name();
    if ((name == "largest" || name == "descending") && pending.stack[i].isBool()) return pending.stack[i].toBool();
  }
  return pending.op->name != "aten::sort";
}

// Among few scores some are marked: of those that are equal, as all unknown ones are, the policy's choice comes first.
void put_best_first(const at::Tensor& scores, bool largest, int64_t count, std::vector<int64_t>& drawn) {
  const int64_t choices = scores.size(-1);
  const int64_t rows = scores.numel() / choices;
  const at::Tensor flat = scores.to(at::kDouble).contiguous();
  const double* values = flat.const_data_ptr<double>();
  for (int64_t row = 0; row < rows; ++row) {
    int64_t* own = drawn.data() + row * count;
    std::vector<int64_t> order(own, own + count);
    for (int64_t i = 1; i < choices; ++i) {
      const int64_t next = (own[0] + i) % choices;
      if (std::find(own, own + count, next) == own + count) order.push_back(next);
    }
    const double* score = values + row * choices;
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return largest ? score[a] > score[b] : score[a] < score[b];
    });
    std::copy(order.begin(), order.begin() + count, own);
  }
}

// Indices that a policy makes up for what an operator would have found in unknown values, and the values there.
void choose(Pending& pending, const std::vector<c10::IValue>& outputs) {
  const at::Tensor& input = pending.stack[0].toTensor();
  const std::vector<at::Tensor> targets = tensors_of(outputs);
  const at::DisableRecordFunctionGuard unobserved;
  const c10::impl::ExcludeDispatchKeyGuard plain(c10::autograd_dispatch_keyset);
  for (const at::Tensor& target : targets) {
    if (!target.is_cuda() || !is_plain(target) || target.scalar_type() != at::kLong) continue;
    if (target.numel() == 0 || !fits(target, kChosen) || input.dim() == 0) continue;
    // The dimension that is chosen along: the given one, or the last; `None` takes all elements.
    const auto& arguments = pending.op->handle->schema().arguments();
    int64_t dimension = input.dim() - 1;
    bool all = false;
    bool keeps = target.dim() == input.dim();
    for (size_t i = 0; i < arguments.size() && i < pending.stack.size(); ++i) {
      if (arguments[i].name() != "dim") continue;
      all = pending.stack[i].isNone();
      if (pending.stack[i].isInt()) dimension = pending.stack[i].toInt();
    }
    if (dimension < 0) dimension += input.dim();
    if (dimension < 0 || dimension >= input.dim()) continue;
    const int64_t choices = all ? input.numel() : input.size(dimension);
    const int64_t count = all || !keeps ? 1 : target.size(dimension);
    if (count > choices || count == 0) continue;
    const int64_t rows = target.numel() / count;
    const bool few = input.numel() <= kMostFloats && rows * choices == input.numel();
    at::Tensor values;
    if (choices > kMostExperts) {
      // By the golden ratio: far from both ends of the vocabulary, where the special tokens
      // are, also when several are laid one behind the other, as a beam search does.
      const auto ordinary = static_cast<int64_t>(static_cast<double>(choices) * 0.6180339887498949);
      values = at::empty({rows, count}, at::TensorOptions().dtype(at::kLong).device(at::kCPU));
      for (int64_t i = 0; i < rows * count; ++i) {
        values.mutable_data_ptr<int64_t>()[i] = (ordinary + i % count) % choices;
      }
    } else {
      std::vector<int64_t> drawn = routing::draw(routing::current(), rows, count, choices);
      if (few && pending.op->name != "aten::multinomial") {
        const at::Tensor scores = on_host(input);
        const at::Tensor lines = all ? scores.reshape({1, -1}) : scores.movedim(dimension, -1);
        put_best_first(lines.reshape({rows, choices}), wants_largest(pending), count, drawn);
      }
      values = at::from_blob(drawn.data(), {rows, count}, at::TensorOptions().dtype(at::kLong)).clone();
    }
    if (all || !keeps) {
      values = values.reshape(target.sizes());
    } else {
      std::vector<int64_t> sizes = target.sizes().vec();
      sizes.erase(sizes.begin() + dimension);
      sizes.push_back(count);
      values = values.reshape(sizes).movedim(-1, dimension);
    }
    write(*pending.op, target, values, kChosen);
    // What was found there, of few scores.
    const at::Tensor& found = targets[0];
    if (few && keeps && targets.size() == 2 && found.is_cuda() && is_plain(found) && !found.is_same(target)) {
      write(*pending.op, found, on_host(input).gather(dimension, values), kSupposed);
    }
  }
}

void copy_from_device(Pending& pending) {
  const at::Tensor& target = pending.stack[0].toTensor();
  const at::Tensor& source = pending.stack[1].toTensor();
  const at::DisableRecordFunctionGuard unobserved;
  const c10::impl::ExcludeDispatchKeyGuard plain(c10::autograd_dispatch_keyset);
  const_cast<at::Tensor&>(target).copy_(on_host(source));
}

void finish(Pending& pending, const std::vector<c10::IValue>& outputs) {
  if (outputs.empty() && pending.op->returns != 0) return;  // it raised an error
  switch (pending.way) {
    case Pending::Way::kCompute: return compute(pending, outputs);
    case Pending::Way::kUniform: return compute_uniform(pending, outputs);
    case Pending::Way::kChoose: return choose(pending, outputs);
    case Pending::Way::kForget: return forget_changed(pending);
    case Pending::Way::kCopyFromDevice: return copy_from_device(pending);
    case Pending::Way::kTrust: return;
  }
}

std::unique_ptr<at::ObserverContext> begin_copy(const Operator& op, c10::ArrayRef<const c10::IValue> inputs) {
  if (inputs.size() < 2 || !inputs[0].isTensor() || !inputs[1].isTensor()) return nullptr;
  const at::Tensor& target = inputs[0].toTensor();
  const at::Tensor& source = inputs[1].toTensor();
  if (!target.defined() || !source.defined()) return nullptr;
  if (source.is_cuda() && target.is_cpu()) {
    if (!is_plain(source) || !is_plain(target) || !fits(source, kTrue)) return nullptr;
    const uint8_t content = content_of(source);
    if (content == kCapturing || inside > 0) return nullptr;
    if (content == kUnknown && trusted == 0) note_unknown_read(op, source);
    if (content == kUnknown && !is_integral(source)) return nullptr;
    return std::make_unique<Pending>(op, Pending::Way::kCopyFromDevice, inputs);
  }
  if (!target.is_cuda() || !is_plain(target) || inside > 0) return nullptr;
  if (!fits(target, kChosen)) return nullptr;
  const Inputs seen = look_at(op, inputs);
  if (!seen.plain) return nullptr;
  const bool few = target.numel() <= kMostFloats && source.numel() <= kMostFloats;
  const bool computed = !seen.large && (is_integral(target) || seen.content >= kChosen || few);
  auto pending = std::make_unique<Pending>(
      op, computed ? Pending::Way::kCompute : Pending::Way::kForget, inputs);
  pending->content = seen.content;
  return pending;
}

// Operators on large tensors: what is known of them as a whole.
std::unique_ptr<at::ObserverContext> begin_large(const Operator& op, c10::ArrayRef<const c10::IValue> inputs) {
  if (inputs.empty() || !inputs[0].isTensor()) return nullptr;
  const at::Tensor& first = inputs[0].toTensor();
  if (!first.defined() || !first.is_cuda() || !is_plain(first)) return nullptr;
  const bool some = uniforms_count.load(std::memory_order_relaxed) != 0;
  const bool begins = (op.compares && first.is_floating_point()) || (op.fills && is_integral(first));
  const bool goes_on = some && (op.pointwise || op.idempotent) && is_integral(first);
  if (!begins && !goes_on) {
    if (!some || op.mutated == 0) return nullptr;
    return std::make_unique<Pending>(op, Pending::Way::kForget, inputs);
  }
  if (content_of(first) == kCapturing) return nullptr;
  auto pending = std::make_unique<Pending>(op, Pending::Way::kUniform, inputs);
  pending->content = tests_finiteness(op, inputs) ? kTrue : kUnknown;
  return pending;
}

std::unique_ptr<at::ObserverContext> begin_computed(const Operator& op, c10::ArrayRef<const c10::IValue> inputs) {
  if (inside > 0 && op.name != "aten::nonzero") return nullptr;
  const bool chooses = op.chooses && !inputs.empty() && inputs[0].isTensor() &&
                       inputs[0].toTensor().defined() && inputs[0].toTensor().is_cuda() &&
                       inputs[0].toTensor().is_floating_point() && is_plain(inputs[0].toTensor());
  if (chooses) {
    const at::Tensor& scores = inputs[0].toTensor();
    const uint8_t content = fits(scores, kTrue) ? content_of(scores) : kUnknown;
    if (content == kUnknown) return std::make_unique<Pending>(op, Pending::Way::kChoose, inputs);
  }
  if (is_large(op, inputs)) return begin_large(op, inputs);
  const Inputs seen = look_at(op, inputs);
  if (!seen.plain || !seen.device) return nullptr;
  if (seen.large) return begin_large(op, inputs);
  if (op.sizes && seen.content == kUnknown) {
    each_tensor(inputs[op.name == "aten::masked_select" ? 1 : 0], [&](const at::Tensor& tensor) {
      note_read(op, tensor);
      return true;
    });
  }
  // Floats that nobody knows give floats that nobody knows: decided by the results.
  auto pending = std::make_unique<Pending>(op, Pending::Way::kCompute, inputs);
  pending->content = op.random || tests_finiteness(op, inputs) ? kTrue : seen.content;
  return pending;
}

}  // namespace

void enable(const Sink& with) {
  sink = with;
  on = true;
}

void disable() { on = false; }

bool enabled() { return on.load(std::memory_order_relaxed); }

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  if (function.scope() != at::RecordScope::FUNCTION) return nullptr;
  const Operator& op = operator_of(function);
  if (op.kind == Operator::Kind::kIgnored) return nullptr;
  const auto inputs = function.inputs();
  try {
    switch (op.kind) {
      case Operator::Kind::kReads:
        if (!inputs.empty() && inputs[0].isTensor()) note_read(op, inputs[0].toTensor());
        return nullptr;
      case Operator::Kind::kCopy:
        return begin_copy(op, inputs);
      case Operator::Kind::kTrusted:
        return std::make_unique<Pending>(op, Pending::Way::kTrust, c10::ArrayRef<const c10::IValue>());
      case Operator::Kind::kWrites:
        if (inside > 0) return nullptr;
        return std::make_unique<Pending>(op, Pending::Way::kForget, inputs);
      default:
        return begin_computed(op, inputs);
    }
  } catch (...) {
    return nullptr;
  }
}

void end(at::ObserverContext* context, const at::RecordFunction& function) {
  auto& pending = *static_cast<Pending*>(context);
  try {
    finish(pending, function.outputs());
  } catch (...) {
    // The processor has no such kernel, or refuses: nobody knows the result.
    try {
      forget_changed(pending);
    } catch (...) {
    }
  }
}

void forget(uint64_t address, uint64_t bytes) {
  if (uniforms_count.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard<std::mutex> guard(uniforms_lock);
  auto place = uniforms.lower_bound(address);
  while (place != uniforms.end() && place->first < address + bytes) place = uniforms.erase(place);
  uniforms_count = uniforms.size();
}

void report() {
  if (!enabled()) return;
  Reads& all = reads();
  const std::lock_guard<std::mutex> guard(all.lock);
  for (const auto& [place, times] : all.places) tell_place(place, times);
  tell("values.unknown_floats", std::to_string(unknown_floats.load()));
}

}  // namespace trompe::values
