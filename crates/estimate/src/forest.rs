//! Regression trees: what a trained model computes.
//!
//! A node either asks whether a feature is at most a threshold and goes to one of two later nodes, or is a leaf with a
//! value. The answer is `base` plus the sum of the leaves (gradient boosting) or their mean (random forest). Trees are
//! data: they are checked once, when they are made, and walked without checks that can fail.

use serde::{Deserialize, Serialize};

/// Trees in the form in which trainers hand them over and people can read them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// Feature that each node asks about; negative for leaves.
    pub feature: Vec<i16>,
    /// Threshold: at most this goes left.
    pub threshold: Vec<f32>,
    /// Left successor, larger than the node itself; zero for leaves.
    pub left: Vec<u32>,
    /// Right successor.
    pub right: Vec<u32>,
    /// Value of each leaf.
    pub value: Vec<f32>,
}

/// How trees are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Combination {
    /// Gradient boosting: the sum.
    Sum,
    /// Random forest: the mean.
    Mean,
}

/// A node of the flat form: 16 bytes, so that four share a cache line.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// Threshold of a question, value of a leaf.
    number: f32,
    /// Feature; [`LEAF`] for leaves.
    feature: u32,
    left: u32,
    right: u32,
}

const LEAF: u32 = u32::MAX;

/// Checked trees, ready to be walked.
#[derive(Clone, Debug)]
pub struct Forest {
    nodes: Vec<Node>,
    roots: Vec<u32>,
    base: f64,
    scale: f64,
}

/// Why trees are no forest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForestError {
    /// The arrays of a tree have different lengths or are empty.
    #[error("tree {tree}: its arrays have different lengths or are empty")]
    Ragged {
        /// Which tree.
        tree: usize,
    },
    /// A node asks for a feature that does not exist.
    #[error("tree {tree}, node {node}: there is no feature {feature}")]
    NoFeature {
        /// Which tree.
        tree: usize,
        /// Which node.
        node: usize,
        /// Which feature.
        feature: i16,
    },
    /// A successor does not come after its node, or does not exist.
    #[error("tree {tree}, node {node}: its successors are not later nodes of the tree")]
    BadSuccessor {
        /// Which tree.
        tree: usize,
        /// Which node.
        node: usize,
    },
    /// A number is not finite.
    #[error("tree {tree}, node {node}: a number is not finite")]
    NotFinite {
        /// Which tree.
        tree: usize,
        /// Which node.
        node: usize,
    },
    /// There are no trees.
    #[error("there are no trees")]
    Empty,
}

impl Forest {
    /// Checks `trees` over `features` features.
    ///
    /// # Errors
    /// When the trees are not trees or ask for features that do not exist.
    pub fn new(
        trees: &[Tree],
        features: usize,
        base: f64,
        combination: Combination,
    ) -> Result<Self, ForestError> {
        if trees.is_empty() {
            return Err(ForestError::Empty);
        }
        let (mut nodes, mut roots) = (Vec::new(), Vec::new());
        for (index, tree) in trees.iter().enumerate() {
            let length = tree.feature.len();
            let lengths = [tree.threshold.len(), tree.left.len(), tree.right.len(), tree.value.len()];
            if length == 0 || lengths.iter().any(|other| *other != length) {
                return Err(ForestError::Ragged { tree: index });
            }
            let first = nodes.len() as u32;
            roots.push(first);
            for node in 0..length {
                let feature = tree.feature[node];
                let number = if feature < 0 { tree.value[node] } else { tree.threshold[node] };
                if !number.is_finite() {
                    return Err(ForestError::NotFinite { tree: index, node });
                }
                if feature < 0 {
                    nodes.push(Node { number, feature: LEAF, left: 0, right: 0 });
                    continue;
                }
                if feature as usize >= features {
                    return Err(ForestError::NoFeature { tree: index, node, feature });
                }
                let (left, right) = (tree.left[node], tree.right[node]);
                let later = |successor: u32| successor as usize > node && (successor as usize) < length;
                if !later(left) || !later(right) {
                    return Err(ForestError::BadSuccessor { tree: index, node });
                }
                nodes.push(Node {
                    number,
                    feature: feature as u32,
                    left: first + left,
                    right: first + right,
                });
            }
        }
        let scale = match combination {
            Combination::Sum => 1.0,
            Combination::Mean => 1.0 / roots.len() as f64,
        };
        Ok(Self { nodes, roots, base, scale })
    }

    /// The answer for `features`, which has as many numbers as the forest was made for.
    #[must_use]
    pub fn predict(&self, features: &[f32]) -> f64 {
        let sum: f64 = self.roots.iter().map(|root| f64::from(self.walk(*root, features))).sum();
        self.base + self.scale * sum
    }

    /// Trees.
    #[must_use]
    pub fn trees(&self) -> usize {
        self.roots.len()
    }

    /// Nodes of all trees.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    fn walk(&self, root: u32, features: &[f32]) -> f32 {
        let mut node = self.nodes[root as usize];
        while node.feature != LEAF {
            let next = if features[node.feature as usize] <= node.number { node.left } else { node.right };
            node = self.nodes[next as usize];
        }
        node.number
    }

    /// What each feature contributes to the answer for `features`, base included as the last entry: along each path the
    /// change of the subtree's mean is credited to the feature that was asked (Saabas, "Interpreting random forests",
    /// 2014). The entries add up to [`predict`](Self::predict).
    #[must_use]
    pub fn contributions(&self, features: &[f32]) -> Vec<f64> {
        let means = self.means();
        let mut shares = vec![0.0; features.len() + 1];
        shares[features.len()] = self.base;
        for root in &self.roots {
            let mut at = *root as usize;
            shares[features.len()] += self.scale * means[at];
            while self.nodes[at].feature != LEAF {
                let node = self.nodes[at];
                let feature = node.feature as usize;
                let next = if features[feature] <= node.number { node.left } else { node.right } as usize;
                shares[feature] += self.scale * (means[next] - means[at]);
                at = next;
            }
        }
        shares
    }

    /// The mean of the leaves under each node, every leaf alike.
    fn means(&self) -> Vec<f64> {
        let mut sums = vec![(0.0, 0.0); self.nodes.len()];
        // Successors come later, so a backward pass sees them first.
        for (at, node) in self.nodes.iter().enumerate().rev() {
            sums[at] = if node.feature == LEAF {
                (f64::from(node.number), 1.0)
            } else {
                let (left, right): ((f64, f64), (f64, f64)) =
                    (sums[node.left as usize], sums[node.right as usize]);
                (left.0 + right.0, left.1 + right.1)
            };
        }
        sums.into_iter().map(|(sum, count)| sum / count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feature 0 at most 1: −1, otherwise feature 1 at most 5: 2, otherwise 3.
    fn tree() -> Tree {
        Tree {
            feature: vec![0, -1, 1, -1, -1],
            threshold: vec![1.0, 0.0, 5.0, 0.0, 0.0],
            left: vec![1, 0, 3, 0, 0],
            right: vec![2, 0, 4, 0, 0],
            value: vec![0.0, -1.0, 0.0, 2.0, 3.0],
        }
    }

    #[test]
    fn trees_are_walked_and_combined() {
        let check = |combination, features: [f32; 2], expect: f64| {
            let forest = Forest::new(&[tree(), tree()], 2, 0.5, combination).unwrap();
            assert!((forest.predict(&features) - expect).abs() < 1e-12, "{features:?}");
            let shares: f64 = forest.contributions(&features).iter().sum();
            assert!((shares - expect).abs() < 1e-9, "contributions of {features:?}");
        };
        check(Combination::Sum, [1.0, 0.0], -1.5);
        check(Combination::Sum, [1.1, 5.0], 4.5);
        check(Combination::Mean, [1.1, 5.1], 3.5);
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let check = |change: fn(&mut Tree), expect: ForestError| {
            let mut bad = tree();
            change(&mut bad);
            assert_eq!(Forest::new(&[bad], 2, 0.0, Combination::Sum).unwrap_err(), expect);
        };
        check(|t| t.left[2] = 2, ForestError::BadSuccessor { tree: 0, node: 2 });
        check(|t| t.right[0] = 9, ForestError::BadSuccessor { tree: 0, node: 0 });
        check(|t| t.feature[2] = 2, ForestError::NoFeature { tree: 0, node: 2, feature: 2 });
        check(|t| t.value[3] = f32::NAN, ForestError::NotFinite { tree: 0, node: 3 });
        check(|t| t.value.truncate(1), ForestError::Ragged { tree: 0 });
        assert_eq!(Forest::new(&[], 2, 0.0, Combination::Sum).unwrap_err(), ForestError::Empty);
    }
}
