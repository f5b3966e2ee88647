// `aten::equal` as three operators that can be observed: see `values.h`.

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/all.h>
#include <ATen/ops/eq.h>
#include <c10/util/Exception.h>

#include "values.h"

namespace trompe::values {
namespace {

bool equal(const at::Tensor& left, const at::Tensor& right) {
  TORCH_CHECK(left.device() == right.device(), "Cannot compare two tensors on different devices. Got: ",
              left.device(), " and ", right.device());
  if (left.sizes() != right.sizes()) return false;
  if (left.numel() == 0) return true;
  return at::all(at::eq(left, right)).item().toBool();
}

// PyTorch warns when an operator's kernel is replaced; here that is intended.
class Silence : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

}  // namespace

void replace_equal() {
  static auto* silence = new Silence();
  const c10::WarningUtils::WarningHandlerGuard quiet(silence);
  try {
    static auto* registration = new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().registerImpl(
        c10::OperatorName("aten::equal", ""), c10::DispatchKey::CUDA,
        c10::KernelFunction::makeFromUnboxedRuntimeFunction(&equal),
        c10::impl::CppSignature::make<bool(const at::Tensor&, const at::Tensor&)>(), nullptr, "trompe"));
    (void)registration;
  } catch (...) {
    // The original goes on comparing zeros.
  }
}

}  // namespace trompe::values
