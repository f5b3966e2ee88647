// The eyes of trompe inside PyTorch: what operator runs, on which tensors, and
// what the caching allocator does.
//
// The files here are compiled once per installed PyTorch (its C++ interface is not
// stable between releases) and loaded by `trompe_hook/observer.py`. This one holds
// no state but one small stack per thread, makes no decision and writes no file:
// every fact goes to the preloaded library through the C functions in `sink.h`.
//
// Beside looking, it has tiny operators executed on the processor (`values.h`).
//
// What it is not: a profiler. Times are taken by the receiver.
//
// Invariants:
//  - a begin that was handed over gets exactly one end, on the same thread and
//    properly nested, whatever the operator does (exceptions, asynchronous
//    ranges that end on another thread);
//  - no heap allocation once a thread's buffer has reached its working size;
//  - nothing throws into PyTorch: a value that cannot be described is `?`.
//
// Must be compiled with -DNDEBUG like PyTorch itself: `at::RecordFunction` has a
// member that exists only in debug builds.

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "routing.h"
#include "sink.h"
#include "values.h"

#ifndef NDEBUG
#error "compile with -DNDEBUG: at::RecordFunction has another layout without it"
#endif

#define TROMPE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

using trompe::resolve;
using trompe::Sink;
namespace values = trompe::values;

Sink sink;

// Whether operators are handed over, not only executed.
bool describing = true;

// Whether this process uses CUDA, and so operators are handed over. Programs that
// only prepare data, and forked data-loader workers, leave no records.
std::atomic<bool> watching{false};

// A byte buffer that keeps its capacity between operators.
class Blob {
 public:
  void clear() { length_ = 0; }
  const uint8_t* data() const { return bytes_.get(); }
  // Lengths are 32 bits at the border; 4 GiB of description of one operator
  // cannot happen (a tensor takes under 1 KiB and there are no such lists).
  uint32_t length() const { return static_cast<uint32_t>(length_); }

  uint8_t* extend(size_t count) {
    if (C10_UNLIKELY(length_ + count > capacity_)) grow(length_ + count);
    uint8_t* place = bytes_.get() + length_;
    length_ += count;
    return place;
  }

  void put_byte(uint8_t value) { *extend(1) = value; }

  template <typename Value>
  void put(char tag, Value value) {
    uint8_t* place = extend(1 + sizeof(Value));
    place[0] = static_cast<uint8_t>(tag);
    std::memcpy(place + 1, &value, sizeof(Value));
  }

 private:
  void grow(size_t needed) {
    size_t capacity = capacity_ == 0 ? 4096 : capacity_;
    while (capacity < needed) capacity *= 2;
    std::unique_ptr<uint8_t[]> bytes(new uint8_t[capacity]);
    if (length_ != 0) std::memcpy(bytes.get(), bytes_.get(), length_);
    bytes_ = std::move(bytes);
    capacity_ = capacity;
  }

  std::unique_ptr<uint8_t[]> bytes_;
  size_t length_ = 0;
  size_t capacity_ = 0;
};

// The ranges that this thread has begun and not yet ended.
struct OpenRanges {
  static constexpr size_t kDepth = 512;
  const at::RecordFunction* range[kDepth];
  size_t depth = 0;
};

struct ThreadState {
  Blob blob;
  OpenRanges open;
};

ThreadState& thread_state() {
  // Leaked on purpose: operators can still run while thread-locals are being
  // destroyed at thread exit.
  static thread_local ThreadState* state = nullptr;
  if (C10_UNLIKELY(state == nullptr)) state = new ThreadState();
  return *state;
}

// ---- Description of values -------------------------------------------------

enum TensorFlag : uint8_t {
  kContiguous = 1,
  kRequiresGrad = 2,
  kOnCuda = 4,
  kChannelsLast = 8,
};

// Address of the first element, 0 when there is none (meta, fake, sparse).
uint64_t address_of(const c10::TensorImpl& tensor) {
  if (!tensor.has_storage()) return 0;
  c10::StorageImpl* storage = tensor.unsafe_storage().unsafeGetStorageImpl();
  if (storage == nullptr) return 0;
  // Not `data_ptr()`: that one throws for fake tensors.
  const void* base = storage->_mutable_data_ptr_no_checks().get();
  if (base == nullptr) return 0;
  const auto offset = static_cast<uint64_t>(tensor.storage_offset()) * tensor.itemsize();
  return reinterpret_cast<uint64_t>(base) + offset;
}

void describe_tensor(const at::Tensor& value, Blob& blob) {
  if (!value.defined()) {
    blob.put_byte('U');
    return;
  }
  const c10::TensorImpl& tensor = *value.unsafeGetTensorImpl();
  // Symbolic sizes belong to tracing, nested tensors have no one shape.
  if (tensor.has_symbolic_sizes_strides() || value.is_nested()) {
    blob.put_byte('?');
    return;
  }
  const c10::IntArrayRef sizes = tensor.sizes_default();
  const bool strided = tensor.layout() == c10::kStrided;
  const size_t dimensions = sizes.size() < 255 ? sizes.size() : 255;

  uint8_t flags = 0;
  if (strided && tensor.is_contiguous_default(c10::MemoryFormat::Contiguous)) flags |= kContiguous;
  if (strided && (dimensions == 4 || dimensions == 5)) {
    const auto format =
        dimensions == 4 ? c10::MemoryFormat::ChannelsLast : c10::MemoryFormat::ChannelsLast3d;
    if (tensor.is_contiguous_default(format)) flags |= kChannelsLast;
  }
  if (tensor.requires_grad()) flags |= kRequiresGrad;
  if (tensor.device_type() == c10::DeviceType::CUDA) flags |= kOnCuda;

  uint8_t* place = blob.extend(12 + 16 * dimensions);
  place[0] = 'T';
  place[1] = static_cast<uint8_t>(c10::typeMetaToScalarType(tensor.dtype()));
  place[2] = static_cast<uint8_t>(dimensions);
  place[3] = flags;
  const uint64_t address = strided ? address_of(tensor) : 0;
  std::memcpy(place + 4, &address, 8);
  std::memcpy(place + 12, sizes.data(), 8 * dimensions);
  if (strided) {
    std::memcpy(place + 12 + 8 * dimensions, tensor.strides_default().data(), 8 * dimensions);
  } else {
    std::memset(place + 12 + 8 * dimensions, 0, 8 * dimensions);
  }
}

void describe_string(const std::string& text, Blob& blob) {
  const auto length = static_cast<uint16_t>(text.size() < 65535 ? text.size() : 65535);
  uint8_t* place = blob.extend(3 + length);
  place[0] = 's';
  std::memcpy(place + 1, &length, 2);
  std::memcpy(place + 3, text.data(), length);
}

void describe(const c10::IValue& value, Blob& blob);

void describe_all(c10::ArrayRef<c10::IValue> values, Blob& blob) {
  for (const c10::IValue& value : values) describe(value, blob);
}

void describe(const c10::IValue& value, Blob& blob) {
  if (value.isTensor()) {
    describe_tensor(value.toTensor(), blob);
  } else if (value.isNone()) {
    blob.put_byte('n');
  } else if (value.isInt()) {
    blob.put('i', value.toInt());
  } else if (value.isDouble()) {
    blob.put('d', value.toDouble());
  } else if (value.isBool()) {
    blob.put('b', static_cast<uint8_t>(value.toBool()));
  } else if (value.isList()) {
    const c10::ArrayRef<c10::IValue> items = value.toListRef();
    blob.put('L', static_cast<uint32_t>(items.size()));
    describe_all(items, blob);
  } else if (value.isTuple()) {
    const auto& items = value.toTupleRef().elements();
    blob.put('L', static_cast<uint32_t>(items.size()));
    for (const c10::IValue& item : items) describe(item, blob);
  } else if (value.isString()) {
    describe_string(value.toStringRef(), blob);
  } else {
    blob.put_byte('?');
  }
}

// Describes `values`, or nothing when one of them throws in the middle.
void describe_safely(c10::ArrayRef<const c10::IValue> values, Blob& blob) {
  blob.clear();
  for (const c10::IValue& value : values) {
    const uint32_t before = blob.length();
    try {
      describe(value, blob);
    } catch (...) {
      blob.clear();
      blob.extend(before);
      blob.put_byte('?');
    }
  }
}

// ---- Operators -------------------------------------------------------------

// Hands an operator's begin over. `since` is 0, or when we began to work on it.
// Not noexcept by signature only: `describe_safely` swallows what can throw.
void hand_over_begin(const at::RecordFunction& function, uint64_t since) {
  ThreadState& state = thread_state();
  if (C10_UNLIKELY(state.open.depth == OpenRanges::kDepth)) return;
  describe_safely(function.inputs(), state.blob);
  const char* name = function.name();
  sink.op_begin(name, static_cast<uint32_t>(std::strlen(name)),
                static_cast<uint8_t>(function.scope()), function.seqNr(),
                function.forwardThreadId(), state.blob.data(), state.blob.length(), since);
  if (C10_UNLIKELY(function.isAsync())) {
    // Ends some day on some thread (collectives of torch.distributed): its
    // duration means nothing to a nesting of calls.
    sink.op_end(nullptr, 0, 0);
    return;
  }
  state.open.range[state.open.depth++] = &function;
}

void hand_over_end(const at::RecordFunction& function, uint64_t since) {
  ThreadState& state = thread_state();
  OpenRanges& open = state.open;
  size_t position = open.depth;
  while (position > 0 && open.range[position - 1] != &function) --position;
  if (position == 0) return;  // its begin was not handed over, or on another thread
  // Ranges above it were left open (they ended on another thread): close them.
  while (open.depth > position) {
    --open.depth;
    sink.op_end(nullptr, 0, 0);
  }
  --open.depth;
  const std::vector<c10::IValue>& outputs = function.outputs();
  describe_safely(c10::ArrayRef<const c10::IValue>(outputs.data(), outputs.size()), state.blob);
  sink.op_end(state.blob.data(), state.blob.length(), since);
}

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& function) {
  if (!watching.load(std::memory_order_relaxed)) return nullptr;
  std::unique_ptr<at::ObserverContext> pending;
  uint64_t since = 0;
  if (values::enabled() && !function.isAsync()) {
    const uint64_t now = sink.ticks();
    pending = values::begin(function);
    if (pending != nullptr) since = now;
  }
  if (describing && sink.recording() != 0) hand_over_begin(function, since);
  return pending;
}

void on_end(const at::RecordFunction& function, at::ObserverContext* pending) {
  uint64_t since = 0;
  if (pending != nullptr) {
    since = sink.ticks();
    values::end(pending, function);
  }
  hand_over_end(function, since);
}

void on_allocator_event(const allocator::TraceEntry& entry) {
  const auto address = static_cast<uint64_t>(entry.addr_);
  const auto size = static_cast<uint64_t>(entry.size_);
  if (entry.action_ == allocator::TraceEntry::ALLOC) values::forget(address, size);
  sink.alloc_event(static_cast<uint8_t>(entry.action_), address, size,
                   reinterpret_cast<uint64_t>(entry.stream_));
}

// ---- What observing costs --------------------------------------------------

double operator_cost = 0;

// Nanoseconds of one small operator with three tensors and one number on this
// processor: the least of many batches, so that a preempted one does not count.
double nanoseconds_per_operator() {
  constexpr int kBatches = 20;
  constexpr int kPerBatch = 50;
  const at::Tensor a = at::ones({4}), b = at::ones({4}), c = at::ones({4});
  double least = 1e9;
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kPerBatch; ++i) a.addcmul_(b, c, 0.0);
    const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
    least = std::min(least, elapsed.count() / kPerBatch);
  }
  return least;
}

// A receiver that does nothing, so that the measurement leaves no records.
Sink quiet(const Sink& receiver) {
  Sink sink = receiver;
  sink.recording = [] { return 1; };
  sink.op_begin = [](const char*, uint32_t, uint8_t, int64_t, uint64_t, const uint8_t*, uint32_t,
                     uint64_t) {};
  sink.op_end = [](const uint8_t*, uint32_t, uint64_t) {};
  return sink;
}

}  // namespace

// Registers for operators; nothing is handed over before `trompe_observer_start`.
// With `describe` 0 they are executed where that is possible, but not handed over.
// To be called once, while no other thread runs operators. Returns 0, or 1 when the
// preloaded library does not have the functions.
TROMPE_EXPORT int trompe_observer_attach(int describe) {
  Sink receiver = {};
  if (!resolve(receiver.recording, "trompe_recording") || !resolve(receiver.ticks, "trompe_ticks") ||
      !resolve(receiver.op_begin, "trompe_op_begin") || !resolve(receiver.op_end, "trompe_op_end") ||
      !resolve(receiver.alloc_event, "trompe_alloc_event") || !resolve(receiver.meta, "trompe_meta") ||
      !resolve(receiver.content, "trompe_content") ||
      !resolve(receiver.content_written, "trompe_content_written")) {
    return 1;
  }
  sink = quiet(receiver);
  values::enable(sink);
  watching = true;
  describing = describe != 0;
  const double unobserved = nanoseconds_per_operator();
  at::addGlobalCallback(
      at::RecordFunctionCallback(on_begin, on_end)
          .needsInputs(true)
          .needsOutputs(true)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION,
                   at::RecordScope::TORCHSCRIPT_FUNCTION, at::RecordScope::USER_SCOPE}));
  operator_cost = std::max(0.0, nanoseconds_per_operator() - unobserved);
  watching = false;
  values::disable();
  values::replace_equal();
  sink = receiver;
  pthread_atfork(nullptr, nullptr, [] { watching = false; });
  return 0;
}

// Host nanoseconds that observing adds to one operator with three tensor inputs and
// one output, without what the receiver takes; measured when attaching.
TROMPE_EXPORT double trompe_observer_operator_cost() { return operator_cost; }

// Starts handing over operators (if attached) and allocator events; to be called
// once per process right after PyTorch has initialised CUDA. Returns 0; 2 when the
// active allocator is not the caching one (`cudaMallocAsync` and pluggable allocators
// have no such events, and the first crashes when asked): then contents cannot be
// followed and no operator is executed.
TROMPE_EXPORT int trompe_observer_start() {
  watching = true;
  allocator::CUDAAllocator* active = allocator::get();
  if (active == nullptr || active->name() != "native" || !active->initialized()) return 2;
  active->attachAllocatorTraceTracker(on_allocator_event);
  values::enable(sink);
  return 0;
}

// Writes what is known only at the end as facts of the trace.
TROMPE_EXPORT void trompe_observer_report() { values::report(); }

// Sets the process's policy for choices in unknown values (`routing.h`), pushes one
// for the calling thread, or takes that one back. Returns 0, or 1 when the text is no
// policy.
TROMPE_EXPORT int trompe_routing_default(const char* text) {
  trompe::routing::Policy policy;
  if (!trompe::routing::parse(text, policy)) return 1;
  trompe::routing::set_default(policy);
  return 0;
}

TROMPE_EXPORT int trompe_routing_push(const char* text) {
  trompe::routing::Policy policy;
  if (!trompe::routing::parse(text, policy)) return 1;
  trompe::routing::push(policy);
  return 0;
}

TROMPE_EXPORT void trompe_routing_pop() { trompe::routing::pop(); }
