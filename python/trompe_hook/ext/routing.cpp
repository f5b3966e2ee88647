// Policies for choices that nobody computed: see routing.h.

#include "routing.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <random>
#include <sstream>

namespace trompe::routing {
namespace {

std::mutex default_lock;
Policy default_policy;

std::vector<Policy>& stack() {
  static thread_local std::vector<Policy>* policies = nullptr;
  if (policies == nullptr) policies = new std::vector<Policy>();
  return *policies;
}

// SplitMix64: a number that looks random from one that does not.
uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15ull;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

// In (0, 1).
double uniform(uint64_t value) { return (static_cast<double>(mix(value) >> 11) + 0.5) / 9007199254740992.0; }

// Logarithms of the choices' weights. Which choice is the most popular one is drawn.
std::vector<double> weights(const Policy& policy, int64_t choices) {
  std::vector<double> found(static_cast<size_t>(choices), 0.0);
  std::mt19937_64 random(mix(policy.seed ^ static_cast<uint64_t>(choices)));
  if (policy.kind == Policy::Kind::kZipf) {
    std::vector<size_t> order(found.size());
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    for (size_t rank = 0; rank < order.size(); ++rank) {
      found[order[rank]] = -policy.parameter * std::log(static_cast<double>(rank + 1));
    }
  } else if (policy.kind == Policy::Kind::kDirichlet) {
    std::gamma_distribution<double> gamma(policy.parameter, 1.0);
    for (double& weight : found) weight = std::log(std::max(gamma(random), 1e-300));
  }
  return found;
}

}  // namespace

bool parse(const std::string& text, Policy& policy) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ':');) parts.push_back(part);
  if (parts.empty()) return false;
  Policy found;
  size_t next = 1;
  const bool shaped = parts[0] == "zipf" || parts[0] == "dirichlet";
  if (parts[0] == "balanced") {
    found.kind = Policy::Kind::kBalanced;
  } else if (parts[0] == "uniform") {
    found.kind = Policy::Kind::kUniform;
  } else if (shaped) {
    found.kind = parts[0] == "zipf" ? Policy::Kind::kZipf : Policy::Kind::kDirichlet;
  } else {
    return false;
  }
  try {
    if (shaped && parts.size() > next) found.parameter = std::stod(parts[next++]);
    if (parts.size() > next) found.seed = std::stoull(parts[next++]);
  } catch (...) {
    return false;
  }
  if (parts.size() > next || !std::isfinite(found.parameter) || found.parameter <= 0) return false;
  policy = found;
  return true;
}

const Policy& current() {
  if (!stack().empty()) return stack().back();
  static thread_local Policy copy;
  const std::lock_guard<std::mutex> guard(default_lock);
  copy = default_policy;
  return copy;
}

void set_default(const Policy& policy) {
  const std::lock_guard<std::mutex> guard(default_lock);
  default_policy = policy;
}

void push(const Policy& policy) { stack().push_back(policy); }

void pop() {
  if (!stack().empty()) stack().pop_back();
}

std::vector<int64_t> draw(const Policy& policy, int64_t rows, int64_t count, int64_t choices) {
  std::vector<int64_t> chosen(static_cast<size_t>(rows * count));
  if (choices <= 0) return chosen;
  count = std::min(count, choices);
  if (policy.kind == Policy::Kind::kBalanced || count == choices) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t k = 0; k < count; ++k) chosen[row * count + k] = (row * count + k) % choices;
    }
    return chosen;
  }
  // Without replacement: the largest of log(weight) + Gumbel noise (Kool et al. 2019,
  // "Stochastic Beams and Where to Find Them").
  const std::vector<double> logarithms = weights(policy, choices);
  std::vector<std::pair<double, int64_t>> keys(static_cast<size_t>(choices));
  for (int64_t row = 0; row < rows; ++row) {
    const uint64_t base = mix(policy.seed + 1) ^ mix(static_cast<uint64_t>(row) << 20);
    for (int64_t choice = 0; choice < choices; ++choice) {
      const double noise = -std::log(-std::log(uniform(base + static_cast<uint64_t>(choice))));
      keys[choice] = {-(logarithms[choice] + noise), choice};
    }
    std::partial_sort(keys.begin(), keys.begin() + count, keys.end());
    for (int64_t k = 0; k < count; ++k) chosen[row * count + k] = keys[k].second;
  }
  return chosen;
}

}  // namespace trompe::routing
