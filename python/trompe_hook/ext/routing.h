// Who goes where, when nobody computed it.
//
// The indices that `topk`, `argmax`, `sort` or `multinomial` find in unknown values
// decide how large the products of a mixture of experts are. A policy makes them up:
//
//   balanced          every choice equally often (the default)
//   uniform[:seed]    drawn, all choices equally likely
//   zipf:S[:seed]     drawn, the choice of rank r with a weight of 1 / r^S
//   dirichlet:A[:seed] drawn, weights drawn from a symmetric Dirichlet distribution
//
// Draws depend on the seed, the row and the number of choices alone, so that a layer
// that is computed again in the backward pass routes as before.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trompe::routing {

struct Policy {
  enum class Kind { kBalanced, kUniform, kZipf, kDirichlet };
  Kind kind = Kind::kBalanced;
  double parameter = 1.0;
  uint64_t seed = 0;
};

// Reads a policy; false when the text is none.
bool parse(const std::string& text, Policy& policy);

// The policy of the calling thread: the innermost one pushed, or the process's.
const Policy& current();
void set_default(const Policy& policy);
void push(const Policy& policy);
void pop();

// `count` different choices out of `choices` for each of `rows` rows, row by row.
std::vector<int64_t> draw(const Policy& policy, int64_t rows, int64_t count, int64_t choices);

}  // namespace trompe::routing
