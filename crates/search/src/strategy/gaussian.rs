//! A Gaussian process over points: what a loss probably is where nothing was tried (Rasmussen and Williams,
//! "Gaussian Processes for Machine Learning", 2006, algorithm 2.1).

/// Observations and the kernel that explains them.
#[derive(Clone, Debug)]
pub(super) struct Process {
    inputs: Vec<Vec<f64>>,
    /// Length scale of each dimension.
    scales: Vec<f64>,
    noise: f64,
    mean: f64,
    variance: f64,
    /// Lower Cholesky factor of the kernel matrix, row by row.
    factor: Vec<Vec<f64>>,
    /// Kernel matrix⁻¹ × (outputs − mean).
    weights: Vec<f64>,
    /// Logarithm of the likelihood of the observations, up to a constant.
    pub(super) evidence: f64,
}

impl Process {
    /// Fits observations with given length scales; `None` when the kernel matrix is singular.
    pub(super) fn fit(inputs: &[Vec<f64>], outputs: &[f64], scales: &[f64], noise: f64) -> Option<Self> {
        let count = outputs.len();
        let mean = outputs.iter().sum::<f64>() / count as f64;
        let centred: Vec<f64> = outputs.iter().map(|y| y - mean).collect();
        let mut factor: Vec<Vec<f64>> = Vec::with_capacity(count);
        for i in 0..count {
            let mut row = Vec::with_capacity(i + 1);
            for j in 0..=i {
                let own = if i == j { 1.0 + noise } else { kernel(&inputs[i], &inputs[j], scales) };
                let other: &[f64] = if i == j { &row } else { &factor[j] };
                let sum = own - dot(&row[..j], &other[..j]);
                if i == j {
                    if sum <= 0.0 {
                        return None;
                    }
                    row.push(sum.sqrt());
                } else {
                    row.push(sum / factor[j][j]);
                }
            }
            factor.push(row);
        }
        let half = forward(&factor, &centred);
        let variance = (dot(&half, &half) / count as f64).max(1e-12);
        let weights = backward(&factor, &half);
        let determinant: f64 = factor.iter().enumerate().map(|(i, row)| row[i].ln()).sum();
        let evidence = -0.5 * count as f64 * variance.ln() - determinant;
        Some(Self {
            inputs: inputs.to_vec(),
            scales: scales.to_vec(),
            noise,
            mean,
            variance,
            factor,
            weights,
            evidence,
        })
    }

    /// Mean and standard deviation of the loss at a point.
    pub(super) fn at(&self, input: &[f64]) -> (f64, f64) {
        let near: Vec<f64> = self.inputs.iter().map(|other| kernel(input, other, &self.scales)).collect();
        let mean = self.mean + dot(&near, &self.weights);
        let half = forward(&self.factor, &near);
        let left = (1.0 + self.noise - dot(&half, &half)).max(1e-12);
        (mean, (self.variance * left).sqrt())
    }

    /// The mean alone.
    pub(super) fn mean_at(&self, input: &[f64]) -> f64 {
        let near = self.inputs.iter().zip(&self.weights);
        self.mean + near.map(|(other, weight)| weight * kernel(input, other, &self.scales)).sum::<f64>()
    }
}

/// Matérn kernel with ν = 5/2 over scaled distance: smooth, but not too smooth for step times.
fn kernel(a: &[f64], b: &[f64], scales: &[f64]) -> f64 {
    let square: f64 = a.iter().zip(b).zip(scales).map(|((a, b), scale)| ((a - b) / scale).powi(2)).sum();
    let distance = (5.0 * square).sqrt();
    (1.0 + distance + distance * distance / 3.0) * (-distance).exp()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Solves `factor × x = b`.
fn forward(factor: &[Vec<f64>], b: &[f64]) -> Vec<f64> {
    let mut x = Vec::with_capacity(b.len());
    for (row, b) in factor.iter().zip(b) {
        let known = dot(&row[..x.len()], &x);
        x.push((b - known) / row[x.len()]);
    }
    x
}

/// Solves `factorᵀ × x = b`.
fn backward(factor: &[Vec<f64>], b: &[f64]) -> Vec<f64> {
    let mut x = b.to_vec();
    for i in (0..x.len()).rev() {
        x[i] /= factor[i][i];
        let (above, own) = x.split_at_mut(i);
        for (j, value) in above.iter_mut().enumerate() {
            *value -= factor[i][j] * own[0];
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observations_are_explained_and_far_points_are_uncertain() {
        let inputs: Vec<Vec<f64>> = (0..8).map(|i| vec![f64::from(i) / 8.0]).collect();
        let outputs: Vec<f64> = inputs.iter().map(|x| (6.0 * x[0]).sin()).collect();
        let process = Process::fit(&inputs, &outputs, &[0.3], 1e-6).unwrap();
        for (input, output) in inputs.iter().zip(&outputs) {
            let (mean, deviation) = process.at(input);
            assert!((mean - output).abs() < 1e-3 && deviation < 1e-2, "{mean} {output} {deviation}");
            assert!((process.mean_at(input) - mean).abs() < 1e-9);
        }
        let (between, _) = process.at(&[0.44]);
        assert!((between - (6.0_f64 * 0.44).sin()).abs() < 0.02, "{between}");
        assert!(process.at(&[3.0]).1 > 0.3);
    }

    #[test]
    fn the_right_length_scale_has_more_evidence() {
        let inputs: Vec<Vec<f64>> = (0..20).map(|i| vec![f64::from(i) / 20.0]).collect();
        let outputs: Vec<f64> = inputs.iter().map(|x| (20.0 * x[0]).sin()).collect();
        let evidence = |scale| Process::fit(&inputs, &outputs, &[scale], 1e-4).unwrap().evidence;
        assert!(evidence(0.1) > evidence(2.0) && evidence(0.1) > evidence(0.005));
    }
}
