// Classification of operators: see operators.h.

#include "operators.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

namespace trompe::values {
namespace {

using Names = std::unordered_set<std::string>;

bool starts_with(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

// Operators with kernels of their own whose values nobody needs, or that have none.
bool left_alone(const std::string& name) {
  static const Names kNames = {
      "aten::empty", "aten::empty_strided", "aten::empty_like", "aten::resize_", "aten::set_",
      "aten::record_stream", "aten::is_pinned", "aten::_pin_memory", "aten::equal",
      "aten::_has_same_storage_numel", "aten::_assert_async", "aten::is_set_to",
      "aten::_use_cudnn_ctc_loss", "aten::_debug_has_internal_overlap",
  };
  static const char* kPrefixes[] = {"aten::_foreach_", "aten::_fused_", "aten::_amp_foreach_",
                                    "aten::cudnn_", "aten::_cudnn_", "aten::miopen_", "aten::_nested"};
  if (kNames.count(name) != 0) return true;
  for (const char* prefix : kPrefixes) {
    if (starts_with(name, prefix)) return true;
  }
  return false;
}

void classify(Operator& op) {
  const c10::FunctionSchema& schema = op.handle->schema();
  static const Names kOverwrite = {"aten::fill_",        "aten::zero_",      "aten::copy_",
                                   "aten::random_",      "aten::uniform_",   "aten::normal_",
                                   "aten::log_normal_",  "aten::cauchy_",    "aten::exponential_",
                                   "aten::geometric_"};
  static const Names kIdempotent = {"aten::all", "aten::any", "aten::amax", "aten::amin",
                                    "aten::max", "aten::min"};
  static const Names kCompares = {"aten::eq", "aten::ne", "aten::lt", "aten::le", "aten::gt",
                                  "aten::ge", "aten::isnan", "aten::isinf", "aten::isposinf",
                                  "aten::isneginf", "aten::isfinite", "aten::isclose"};
  static const Names kFinite = {"aten::isnan", "aten::isinf", "aten::isposinf", "aten::isneginf",
                                "aten::isfinite"};
  static const Names kSizes = {"aten::nonzero", "aten::masked_select", "aten::_unique2",
                               "aten::_unique", "aten::unique_dim", "aten::unique_consecutive",
                               "aten::unique_dim_consecutive", "aten::repeat_interleave",
                               "aten::bincount"};
  static const Names kChooses = {"aten::topk", "aten::sort", "aten::argmax", "aten::max",
                                 "aten::multinomial"};
  static const Names kFollows = {"aten::add",   "aten::add_",         "aten::sub",          "aten::sub_",
                                 "aten::mul",   "aten::mul_",         "aten::div",          "aten::div_",
                                 "aten::neg",   "aten::where",        "aten::masked_fill",  "aten::masked_fill_",
                                 "aten::cat",   "aten::stack",        "aten::gather",       "aten::index",
                                 "aten::clone", "aten::index_select", "aten::maximum",      "aten::minimum",
                                 "aten::copy_", "aten::amax",         "aten::amin",         "aten::_to_copy"};

  const auto& arguments = schema.arguments();
  bool gives_tensor = false;
  bool gives_view = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::Argument& argument = arguments[i];
    const c10::AliasInfo* alias = argument.alias_info();
    if (alias != nullptr && alias->isWrite() && i < 64) {
      op.mutated |= uint64_t{1} << i;
      if (argument.is_out() || kOverwrite.count(op.name) != 0) op.overwritten |= uint64_t{1} << i;
    }
    if (argument.name() == "generator") op.generator = static_cast<int>(i);
  }
  for (const c10::Argument& result : schema.returns()) {
    const c10::TypePtr& type = result.type();
    const bool tensor = type->kind() == c10::TypeKind::TensorType;
    gives_tensor |= tensor || type->isSubtypeOf(*c10::ListType::ofTensors());
    const c10::AliasInfo* alias = result.alias_info();
    gives_view |= alias != nullptr && !alias->isWrite();
  }
  op.returns = schema.returns().size();
  op.pointwise = op.handle->hasTag(at::Tag::pointwise);
  op.random = op.handle->hasTag(at::Tag::nondeterministic_seeded);
  op.idempotent = kIdempotent.count(op.name) != 0;
  op.compares = kCompares.count(op.name) != 0;
  op.finite_test = kFinite.count(op.name) != 0;
  op.sizes = kSizes.count(op.name) != 0;
  op.chooses = kChooses.count(op.name) != 0;
  op.follows = kFollows.count(op.name) != 0;
  op.fills = op.name == "aten::fill_" || op.name == "aten::zero_";

  if (starts_with(op.name, "aten::_linalg") || starts_with(op.name, "aten::linalg_")) {
    op.kind = Operator::Kind::kTrusted;
  } else if (op.name == "aten::_local_scalar_dense") {
    op.kind = Operator::Kind::kReads;
  } else if (op.name == "aten::copy_") {
    op.kind = Operator::Kind::kCopy;
  } else if (starts_with(op.name, "c10d::") || starts_with(op.name, "_c10d_functional")) {
    op.kind = Operator::Kind::kIgnored;  // the preloaded library moves their contents
  } else if (starts_with(op.name, "aten::") && !left_alone(op.name) && !gives_view &&
             (gives_tensor || op.mutated != 0) && op.handle->hasKernelForDispatchKey(c10::DispatchKey::CUDA) &&
             op.handle->hasComputedKernelForDispatchKey(c10::DispatchKey::CPU)) {
    op.kind = Operator::Kind::kComputed;
  } else if (op.mutated != 0 && !starts_with(op.name, "aten::")) {
    op.kind = Operator::Kind::kWrites;
  }
}

struct Table {
  std::mutex lock;
  std::unordered_map<const char*, std::unique_ptr<Operator>> by_name;
};

}  // namespace

const Operator& operator_of(const at::RecordFunction& function) {
  // The name lies in the operator's schema, so its address tells overloads apart. The
  // text is compared too: functions without a schema bring names of their own.
  static thread_local auto* seen = new std::unordered_map<const char*, const Operator*>();
  const char* name = function.name();
  const auto found = seen->find(name);
  if (found != seen->end() && std::strcmp(found->second->name.c_str(), name) == 0) return *found->second;

  static auto* table = new Table();
  const std::lock_guard<std::mutex> guard(table->lock);
  std::unique_ptr<Operator>& place = table->by_name[name];
  if (place == nullptr || place->name != name) {
    if (place != nullptr) place.release();  // others may still look at it
    place = std::make_unique<Operator>();
    place->name = name;
    try {
      const std::optional<c10::OperatorName> full = function.operator_name();
      if (full.has_value()) place->handle = c10::Dispatcher::singleton().findSchema(*full);
      if (place->handle.has_value()) classify(*place);
    } catch (...) {
      place->kind = Operator::Kind::kIgnored;
    }
  }
  (*seen)[name] = place.get();
  return *place;
}

}  // namespace trompe::values
