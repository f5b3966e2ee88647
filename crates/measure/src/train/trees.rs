//! Regression trees from rows: gradient boosting and random forests over histograms.
//!
//! Each feature is cut into at most [`BINS`] bins of equal weight. A tree grows leaf by leaf, always splitting the leaf
//! whose split gains most (Friedman, "Greedy function approximation", 2001; leaf-wise growth and histogram subtraction
//! as in LightGBM, Ke et al., 2017): with sums `G` of residuals and `H` of weights, a split gains
//! `G_l²/(H_l+λ) + G_r²/(H_r+λ) − G²/(H+λ)`. One thread and a seeded generator: the same rows give the same trees.

use trompe_base::Rng;
use trompe_estimate::forest::{Combination, Tree};

/// Bins of a feature.
const BINS: usize = 128;

/// What to fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Boosting adds trees up, a forest takes their mean.
    pub combination: Combination,
    /// Trees.
    pub trees: usize,
    /// Leaves of a tree.
    pub leaves: usize,
    /// Share of each tree's correction that is taken (boosting).
    pub rate: f64,
    /// Fewest rows of a leaf.
    pub rows: usize,
    /// Share of the features that a tree sees.
    pub features: f64,
    /// Added to the weight of each leaf.
    pub lambda: f64,
    /// Seed.
    pub seed: u64,
}

impl Settings {
    /// Settings for `rows` rows.
    #[must_use]
    pub fn for_rows(combination: Combination, rows: usize) -> Self {
        let large = rows >= 5000;
        let leaves = (rows / 40).clamp(4, if large { 255 } else { 31 });
        match combination {
            Combination::Sum => Self {
                combination,
                trees: if large { 250 } else { 120 },
                leaves,
                rate: 0.08,
                rows: if large { 8 } else { 4 },
                features: 0.6,
                lambda: 1.0,
                seed: 1,
            },
            Combination::Mean => Self {
                combination,
                trees: 60,
                leaves: (rows / 4).clamp(4, 2000),
                rate: 1.0,
                rows: 2,
                features: 0.7,
                lambda: 0.0,
                seed: 1,
            },
        }
    }
}

/// Rows to fit to: features by row, targets and weights.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Features of each row.
    pub features: &'a [&'a [f32]],
    /// Target of each row.
    pub targets: &'a [f64],
    /// Weight of each row.
    pub weights: &'a [f64],
}

/// Features as bins, and the upper bound of each bin.
struct Binned {
    columns: Vec<Vec<u8>>,
    cuts: Vec<Vec<f32>>,
}

impl Binned {
    fn new(features: &[&[f32]]) -> Self {
        let count = features.first().map_or(0, |row| row.len());
        let (mut columns, mut cuts) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for feature in 0..count {
            let mut sorted: Vec<f32> = features.iter().map(|row| row[feature]).collect();
            sorted.sort_by(f32::total_cmp);
            let mut bounds = Vec::with_capacity(BINS);
            for bin in 1..BINS {
                let at = bin * sorted.len() / BINS;
                let (below, above) = (sorted[at.saturating_sub(1)], sorted[at.min(sorted.len() - 1)]);
                if below < above {
                    bounds.push(below + (above - below) / 2.0);
                }
            }
            let mut distinct = sorted;
            distinct.dedup();
            if distinct.len() <= BINS {
                bounds = distinct.windows(2).map(|pair| pair[0] + (pair[1] - pair[0]) / 2.0).collect();
            }
            bounds.dedup();
            let bin = |row: &&[f32]| bounds.partition_point(|bound| *bound < row[feature]) as u8;
            columns.push(features.iter().map(bin).collect());
            cuts.push(bounds);
        }
        Self { columns, cuts }
    }
}

/// Sums over the rows of a leaf with one bin of one feature.
#[derive(Clone, Copy, Default)]
struct Sums {
    gradient: f64,
    weight: f64,
    rows: u32,
}

/// The best split of a leaf.
#[derive(Clone, Copy)]
struct Split {
    gain: f64,
    feature: usize,
    bin: usize,
}

struct Leaf {
    node: usize,
    rows: Vec<u32>,
    sums: Sums,
    histogram: Vec<Sums>,
    split: Option<Split>,
}

/// Fits trees to `rows`; empty without rows.
#[must_use]
pub fn fit(rows: Rows<'_>, settings: &Settings) -> Vec<Tree> {
    let count = rows.targets.len();
    if count == 0 {
        return Vec::new();
    }
    let binned = Binned::new(rows.features);
    let mut random = Rng::new(settings.seed);
    let mut answers = vec![0.0; count];
    let mut trees = Vec::with_capacity(settings.trees);
    for _ in 0..settings.trees {
        let used: Vec<usize> =
            (0..binned.columns.len()).filter(|_| random.unit() < settings.features).collect();
        let (mut residuals, mut weights) = (vec![0.0; count], vec![0.0; count]);
        for row in 0..count {
            let drawn = match settings.combination {
                Combination::Sum => f64::from(u8::from(random.unit() < 0.8)),
                Combination::Mean => poisson(&mut random),
            };
            weights[row] = rows.weights[row] * drawn;
            residuals[row] = weights[row] * (rows.targets[row] - answers[row]);
        }
        let grower =
            Grower { binned: &binned, used: &used, residuals: &residuals, weights: &weights, settings };
        let tree = grower.grow();
        if settings.combination == Combination::Sum {
            for (row, answer) in answers.iter_mut().enumerate() {
                *answer += walk(&tree, rows.features[row]);
            }
        }
        trees.push(tree);
    }
    trees
}

fn walk(tree: &Tree, features: &[f32]) -> f64 {
    let mut node = 0;
    while tree.feature[node] >= 0 {
        let left = features[tree.feature[node] as usize] <= tree.threshold[node];
        node = if left { tree.left[node] } else { tree.right[node] } as usize;
    }
    f64::from(tree.value[node])
}

/// How often a row is drawn in a sample of the same size with replacement.
fn poisson(random: &mut Rng) -> f64 {
    let (mut product, mut count) = (random.unit(), 0.0);
    while product > (-1.0_f64).exp() {
        product *= random.unit();
        count += 1.0;
    }
    count
}

struct Grower<'a> {
    binned: &'a Binned,
    used: &'a [usize],
    residuals: &'a [f64],
    weights: &'a [f64],
    settings: &'a Settings,
}

impl Grower<'_> {
    fn grow(&self) -> Tree {
        let mut tree =
            Tree { feature: vec![], threshold: vec![], left: vec![], right: vec![], value: vec![] };
        let rows: Vec<u32> =
            (0..self.weights.len() as u32).filter(|row| self.weights[*row as usize] > 0.0).collect();
        let mut leaves = vec![self.leaf(self.node(&mut tree), rows, None)];
        while leaves.len() < self.settings.leaves {
            let gain = |leaf: &Leaf| leaf.split.map_or(0.0, |split| split.gain);
            let best = (0..leaves.len())
                .fold(0, |best, at| if gain(&leaves[at]) > gain(&leaves[best]) { at } else { best });
            let Some(split) = leaves[best].split else { break };
            let parent = leaves.swap_remove(best);
            let column = &self.binned.columns[split.feature];
            let (left, right): (Vec<u32>, Vec<u32>) =
                parent.rows.iter().partition(|row| usize::from(column[**row as usize]) <= split.bin);
            let (first, second) = (self.node(&mut tree), self.node(&mut tree));
            tree.feature[parent.node] = split.feature as i16;
            tree.threshold[parent.node] = self.binned.cuts[split.feature][split.bin];
            tree.left[parent.node] = first as u32;
            tree.right[parent.node] = second as u32;
            // The larger part's histogram is what the smaller one leaves of the parent's.
            let (small, large) = if left.len() <= right.len() {
                ((first, left), (second, right))
            } else {
                ((second, right), (first, left))
            };
            let small = self.leaf(small.0, small.1, None);
            let rest = parent.histogram.iter().zip(&small.histogram).map(|(whole, part)| Sums {
                gradient: whole.gradient - part.gradient,
                weight: whole.weight - part.weight,
                rows: whole.rows - part.rows,
            });
            let large = self.leaf(large.0, large.1, Some(rest.collect()));
            leaves.extend([small, large]);
        }
        for leaf in leaves {
            let value = leaf.sums.gradient / (leaf.sums.weight + self.settings.lambda).max(1e-12);
            tree.value[leaf.node] = (value * self.settings.rate) as f32;
        }
        tree
    }

    fn node(&self, tree: &mut Tree) -> usize {
        tree.feature.push(-1);
        tree.threshold.push(0.0);
        tree.left.push(0);
        tree.right.push(0);
        tree.value.push(0.0);
        tree.feature.len() - 1
    }

    fn leaf(&self, node: usize, rows: Vec<u32>, histogram: Option<Vec<Sums>>) -> Leaf {
        let histogram = histogram.unwrap_or_else(|| self.histogram(&rows));
        let mut sums = Sums::default();
        for row in &rows {
            sums.gradient += self.residuals[*row as usize];
            sums.weight += self.weights[*row as usize];
            sums.rows += 1;
        }
        let split = self.split(&histogram, sums);
        Leaf { node, rows, sums, histogram, split }
    }

    fn histogram(&self, rows: &[u32]) -> Vec<Sums> {
        let mut histogram = vec![Sums::default(); self.used.len() * BINS];
        for (slot, feature) in self.used.iter().enumerate() {
            let (column, bins) =
                (&self.binned.columns[*feature], &mut histogram[slot * BINS..(slot + 1) * BINS]);
            for row in rows {
                let bin = &mut bins[usize::from(column[*row as usize])];
                bin.gradient += self.residuals[*row as usize];
                bin.weight += self.weights[*row as usize];
                bin.rows += 1;
            }
        }
        histogram
    }

    fn split(&self, histogram: &[Sums], all: Sums) -> Option<Split> {
        let score =
            |gradient: f64, weight: f64| gradient * gradient / (weight + self.settings.lambda).max(1e-12);
        let fewest = self.settings.rows as u32;
        let whole = score(all.gradient, all.weight);
        let mut best: Option<Split> = None;
        for (slot, feature) in self.used.iter().enumerate() {
            let mut left = Sums::default();
            for bin in 0..self.binned.cuts[*feature].len() {
                let sums = histogram[slot * BINS + bin];
                left.gradient += sums.gradient;
                left.weight += sums.weight;
                left.rows += sums.rows;
                let right = all.rows - left.rows;
                if left.rows < fewest {
                    continue;
                }
                if right < fewest {
                    break;
                }
                let gain = score(left.gradient, left.weight)
                    + score(all.gradient - left.gradient, all.weight - left.weight)
                    - whole;
                if gain > best.map_or(1e-9, |best| best.gain) {
                    best = Some(Split { gain, feature: *feature, bin });
                }
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step and a slope over two features, with a third that says nothing.
    fn rows() -> (Vec<Vec<f32>>, Vec<f64>) {
        let mut random = Rng::new(7);
        let mut features = Vec::new();
        let mut targets = Vec::new();
        for _ in 0..2000 {
            let row: Vec<f32> = (0..3).map(|_| random.unit() as f32).collect();
            targets.push(if row[0] > 0.5 { 1.0 } else { 0.0 } + f64::from(row[1]));
            features.push(row);
        }
        (features, targets)
    }

    fn check(combination: Combination, most: f64) {
        let (features, targets) = rows();
        let views: Vec<&[f32]> = features.iter().map(Vec::as_slice).collect();
        let (train, test) = views.split_at(1500);
        let weights = vec![1.0; 1500];
        let settings = Settings::for_rows(combination, 1500);
        let rows = Rows { features: train, targets: &targets[..1500], weights: &weights };
        let trees = fit(rows, &settings);
        let again = fit(rows, &settings);
        assert_eq!(trees, again, "the same rows give the same trees");
        let forest = trompe_estimate::forest::Forest::new(&trees, 3, 0.0, combination).unwrap();
        let miss: f64 =
            test.iter().zip(&targets[1500..]).map(|(row, target)| (forest.predict(row) - target).abs()).sum();
        assert!(miss / 500.0 < most, "{combination:?}: mean error {}", miss / 500.0);
    }

    #[test]
    fn trees_learn_a_step_and_a_slope() {
        check(Combination::Sum, 0.03);
        // Three features: a third of the trees does not see the step at all.
        check(Combination::Mean, 0.2);
    }
}
