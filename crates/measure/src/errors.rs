//! Errors of predictions against measurements, by group.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use trompe_base::{Bytes, DType};
use trompe_estimate::table::key;
use trompe_estimate::{Basis, Estimate, KernelEstimator, Physics, Stack};
use trompe_hardware::DeviceSheet;
use trompe_trace::descriptor::{Descriptor, Direction, Work};

use crate::Sample;

/// Worst rows that a group names.
const WORST: usize = 5;

/// The label of a group over all that was measured of a family on a device.
pub const ALL: &str = "all";

/// Rows that a group's plot shows at most.
const POINTS: usize = 200;

/// Prices an operation under the conditions of a measurement.
pub trait Pricing {
    /// The estimate.
    fn price(&self, sample: &Sample, operation: &Descriptor) -> Estimate;
}

impl Pricing for Stack {
    fn price(&self, sample: &Sample, operation: &Descriptor) -> Estimate {
        self.under(operation, &sample.device, &sample.conditions)
    }
}

/// One row against its prediction, whole times with the launch cost that the row contains.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Measured seconds.
    pub measured: f64,
    /// Predicted seconds, and the interval.
    pub predicted: f64,
    /// Low end.
    pub low: f64,
    /// High end.
    pub high: f64,
    /// Seconds by the physics model alone.
    pub physics: f64,
    /// Seconds by a roofline: the larger of operations over peak and bytes over bandwidth.
    pub roofline: f64,
    /// What the prediction rests on, the weakest of several.
    pub basis: Basis,
    /// The method that answered.
    pub method: String,
    /// Doublings from the nearest training shape.
    pub distance: Option<f64>,
}

/// Compares `sample` with what `pricing` and physics say.
#[must_use]
pub fn compare(sample: &Sample, pricing: &dyn Pricing, physics: &Physics) -> Compared {
    let estimates: Vec<Estimate> =
        sample.operations.iter().map(|operation| pricing.price(sample, operation)).collect();
    let sum = |part: fn(&Estimate) -> trompe_base::Duration| -> f64 {
        sample.launch + estimates.iter().map(|estimate| part(estimate).as_secs_f64()).sum::<f64>()
    };
    let weakest = estimates.iter().max_by_key(|estimate| estimate.basis);
    Compared {
        measured: sample.seconds,
        predicted: sum(|e| e.time),
        low: sum(|e| e.low),
        high: sum(|e| e.high),
        physics: sample.launch
            + sample
                .operations
                .iter()
                .map(|operation| physics.estimate(operation, &sample.device).time.as_secs_f64())
                .sum::<f64>(),
        roofline: sample.operations.iter().map(|operation| roofline(operation, &sample.device)).sum(),
        basis: weakest.map_or(Basis::Fallback, |estimate| estimate.basis),
        method: weakest.map(|estimate| estimate.method.clone().into_owned()).unwrap_or_default(),
        distance: estimates.iter().filter_map(|estimate| estimate.distance).reduce(f64::max),
    }
}

impl Compared {
    /// Prediction over measurement, less one.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }
}

/// A row that is far off.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Worst {
    /// Line in the file.
    pub line: u64,
    /// The operation in short.
    pub operation: String,
    /// Measured microseconds.
    pub measured_us: f64,
    /// Predicted microseconds.
    pub predicted_us: f64,
    /// Signed error as a share.
    pub error: f64,
    /// What is likely behind it.
    pub reason: String,
}

/// Errors of the rows of one group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// First part of the source.
    pub source: String,
    /// Device as the table calls it.
    pub gpu: String,
    /// Family.
    pub family: String,
    /// Element type, direction, size.
    pub label: String,
    /// Whether the shapes occur among the training rows, where the table says.
    pub shape_in_train: Option<bool>,
    /// Rows.
    pub rows: u64,
    /// Median absolute error as a share.
    pub median: f64,
    /// Mean absolute error as a share.
    pub mean: f64,
    /// 90 % quantile of the absolute error.
    pub p90: f64,
    /// Median signed error.
    pub bias: f64,
    /// Share of measurements inside the interval, which is meant to be 0.8.
    pub inside: f64,
    /// Median absolute error of physics alone.
    pub physics_median: f64,
    /// Median absolute error of a roofline.
    pub roofline_median: f64,
    /// Mean absolute difference between other measurements of the same operations and these; `None` without any.
    pub noise: Option<f64>,
    /// Rows that `noise` rests on.
    pub noise_rows: u64,
    /// Rows by what the prediction rests on.
    pub basis: BTreeMap<String, u64>,
    /// The worst rows.
    pub worst: Vec<Worst>,
    /// Some rows for a plot: measured and predicted seconds.
    pub points: Vec<[f64; 2]>,
}

/// Groups rows by source, device, family, label and whether their shapes were trained on.
///
/// `others` are all measurements that are known, for the noise: those of the rows themselves included.
#[must_use]
pub fn groups(rows: &[(&Sample, Compared)], others: &[Sample]) -> Vec<Group> {
    let same = repeats(others);
    let mut groups = BTreeMap::<_, Vec<&(&Sample, Compared)>>::new();
    for row in rows {
        let sample = row.0;
        let name =
            (sample.family(), sample.label.as_str(), &sample.gpu, sample.origin(), sample.shape_in_train);
        groups.entry(name).or_default().push(row);
    }
    groups.into_values().map(|rows| group(&rows, &same)).collect()
}

/// Groups rows by family and device alone: label [`ALL`], the sources joined, no plot.
#[must_use]
pub fn summary(rows: &[(&Sample, Compared)], others: &[Sample]) -> Vec<Group> {
    let same = repeats(others);
    let mut groups = BTreeMap::<_, Vec<&(&Sample, Compared)>>::new();
    for row in rows {
        groups.entry((row.0.family(), &row.0.gpu)).or_default().push(row);
    }
    let whole = |rows: Vec<&(&Sample, Compared)>| {
        let sources: BTreeSet<&str> = rows.iter().map(|row| row.0.origin()).collect();
        Group {
            source: sources.into_iter().collect::<Vec<_>>().join(", "),
            label: ALL.to_owned(),
            shape_in_train: None,
            points: Vec::new(),
            ..group(&rows, &same)
        }
    };
    groups.into_values().map(whole).collect()
}

/// Source and seconds of every measurement of an operation on a device.
fn repeats(others: &[Sample]) -> BTreeMap<u64, Vec<(&str, f64)>> {
    let mut same = BTreeMap::<u64, Vec<(&str, f64)>>::new();
    for other in others.iter().filter(|other| other.operations.len() == 1) {
        let entry = same.entry(key(&other.operations[0], &other.device)).or_default();
        entry.push((&other.source, other.seconds));
    }
    same
}

fn group(rows: &[&(&Sample, Compared)], same: &BTreeMap<u64, Vec<(&str, f64)>>) -> Group {
    let first = rows[0].0;
    let of = |value: fn(&Compared) -> f64| -> Vec<f64> {
        let mut all: Vec<f64> = rows.iter().map(|row| value(&row.1)).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let absolute = of(|c| c.error().abs());
    let count = rows.len() as f64;
    let mut basis = BTreeMap::new();
    for row in rows {
        *basis.entry(row.1.basis.name().to_owned()).or_insert(0) += 1;
    }
    let mut differences = Vec::new();
    for (sample, _) in rows {
        differences.extend(noise(sample, same));
    }
    let mut order: Vec<&&(&Sample, Compared)> = rows.iter().collect();
    order.sort_by(|a, b| b.1.error().abs().total_cmp(&a.1.error().abs()).then(a.0.line.cmp(&b.0.line)));
    let step = rows.len().div_ceil(POINTS).max(1);
    Group {
        source: first.origin().to_owned(),
        gpu: first.gpu.clone(),
        family: first.family().to_owned(),
        label: first.label.clone(),
        shape_in_train: first.shape_in_train,
        rows: rows.len() as u64,
        median: quantile(&absolute, 0.5),
        mean: absolute.iter().sum::<f64>() / count,
        p90: quantile(&absolute, 0.9),
        bias: quantile(&of(Compared::error), 0.5),
        inside: rows.iter().filter(|r| (r.1.low..=r.1.high).contains(&r.1.measured)).count() as f64 / count,
        physics_median: quantile(&of(|c| (c.physics / c.measured - 1.0).abs()), 0.5),
        roofline_median: quantile(&of(|c| (c.roofline / c.measured - 1.0).abs()), 0.5),
        noise: (!differences.is_empty()).then(|| differences.iter().sum::<f64>() / differences.len() as f64),
        noise_rows: differences.len() as u64,
        basis,
        worst: order.iter().take(WORST).map(|row| worst(row.0, &row.1, same)).collect(),
        points: rows.iter().step_by(step).map(|row| [row.1.measured, row.1.predicted]).collect(),
    }
}

/// How far another measurement of the same operation is from this one, the nearest of them.
fn noise(sample: &Sample, same: &BTreeMap<u64, Vec<(&str, f64)>>) -> Option<f64> {
    let [operation] = sample.operations.as_slice() else { return None };
    let others = same.get(&key(operation, &sample.device))?;
    let other = |(source, seconds): &&(&str, f64)| *source != sample.source || *seconds != sample.seconds;
    let apart = others.iter().filter(other).map(|(_, seconds)| (seconds / sample.seconds - 1.0).abs());
    apart.reduce(f64::min)
}

fn worst(sample: &Sample, compared: &Compared, same: &BTreeMap<u64, Vec<(&str, f64)>>) -> Worst {
    Worst {
        line: sample.line,
        operation: sample.operations.iter().map(describe).collect::<Vec<_>>().join(" + "),
        measured_us: compared.measured * 1e6,
        predicted_us: compared.predicted * 1e6,
        error: compared.error(),
        reason: reason(sample, compared, same),
    }
}

/// What is likely behind a large error, the most telling reason first.
fn reason(sample: &Sample, compared: &Compared, same: &BTreeMap<u64, Vec<(&str, f64)>>) -> String {
    if let Some(noise) = noise(sample, same)
        && noise > 0.5 * compared.error().abs()
    {
        return format!("another measurement of it differs by {:.0} %", noise * 100.0);
    }
    if (compared.low..=compared.high).contains(&compared.measured) {
        return "inside the interval".to_owned();
    }
    if sample.seconds < 10e-6 && sample.origin() == "vidur" {
        return "the source's clock has steps of 1 us".to_owned();
    }
    if sample.launch > 0.25 * sample.seconds {
        return "most of the time is the launch that it contains".to_owned();
    }
    if sample.conditions.cache_write && sample.seconds < 50e-6 {
        return "the time contains the write of a serving cache".to_owned();
    }
    match (compared.basis, compared.distance) {
        (Basis::Fallback, _) => "no model knows it".to_owned(),
        (Basis::Fitted | Basis::Assumed, _) => "outside what was measured: physics alone".to_owned(),
        (_, Some(distance)) if distance > 0.0 => {
            format!("{distance:.1} doublings from the nearest measured shape")
        }
        _ if compared.measured < 0.8 * compared.physics.min(compared.predicted) => {
            "faster than neighbouring shapes: another kernel was chosen".to_owned()
        }
        _ => "slower or faster than its neighbours: another kernel, or a disturbed measurement".to_owned(),
    }
}

/// An operation in short.
#[must_use]
pub fn describe(operation: &Descriptor) -> String {
    match operation {
        Descriptor::Gemm(g) => {
            let side = |transposed| if transposed { 'T' } else { 'N' };
            let batch = if g.batch > 1 { format!("{} x ", g.batch) } else { String::new() };
            let (a, b) = (side(g.transpose_a), side(g.transpose_b));
            format!("gemm {batch}{}x{}x{} {} {a}{b}", g.m, g.n, g.k, g.a)
        }
        Descriptor::Attention(a) => format!(
            "attention {}{} b{} h{}/{} q{} k{} d{} {}",
            if a.direction == Direction::Forward { "fwd" } else { "bwd" },
            if a.causal { " causal" } else { "" },
            a.batch,
            a.heads,
            a.kv_heads,
            a.seq_q,
            a.seq_kv,
            a.head_dim,
            a.dtype
        ),
        Descriptor::Convolution(c) => format!(
            "convolution {:?} n{} {}->{} {:?} k{:?} s{:?} {}",
            c.direction, c.batch, c.in_channels, c.out_channels, c.input, c.kernel, c.stride, c.dtype
        ),
        Descriptor::Normalization(n) => format!("{:?} norm {}x{} {}", n.kind, n.rows, n.cols, n.dtype),
        Descriptor::Softmax(r) => format!("softmax {}x{} {}", r.rows, r.cols, r.dtype),
        Descriptor::CrossEntropy(r) => format!("cross entropy {}x{} {}", r.rows, r.cols, r.dtype),
        Descriptor::Elementwise(e) => format!("element-wise {} {}", e.elements, e.dtype),
        Descriptor::Embedding(e) => format!("embedding {}x{} {}", e.tokens, e.width, e.dtype),
        other => other.family().to_owned(),
    }
}

/// The roofline of `operation`: the larger of operations over peak and ideal bytes over bandwidth.
#[must_use]
pub fn roofline(operation: &Descriptor, device: &DeviceSheet) -> f64 {
    let passes = |work: &Work| (DType::F32, work.bytes());
    let (dtype, bytes) = match operation {
        Descriptor::Gemm(g) => {
            let (a, b, c) = (g.m * g.k * g.a.size(), g.k * g.n * g.b.size(), g.m * g.n * g.c.size());
            (if g.compute == DType::Tf32 { DType::Tf32 } else { g.a }, Bytes(g.batch * (a + b + c)))
        }
        Descriptor::Attention(a) => {
            let positions = a.heads * a.seq_q + a.kv_heads * a.seq_kv;
            (a.dtype, Bytes(a.batch * positions * (a.head_dim + a.head_dim_v) * a.dtype.size()))
        }
        Descriptor::Convolution(c) => {
            let size = |channels: u64, extents: &[u64]| c.batch * channels * extents.iter().product::<u64>();
            let elements = size(c.in_channels, &c.input) + size(c.out_channels, &c.output);
            (c.dtype, Bytes(elements * c.dtype.size()))
        }
        Descriptor::Normalization(n) => passes(&n.work),
        Descriptor::Softmax(r) | Descriptor::CrossEntropy(r) => passes(&r.work),
        Descriptor::Elementwise(e) => passes(&e.work),
        Descriptor::Embedding(e) => passes(&e.work),
        Descriptor::Optimizer(o) => passes(&o.work),
        _ => return f64::NAN,
    };
    let arithmetic = operation.matmul_flops().as_f64() / device.matrix_peak(dtype).0;
    arithmetic.max(bytes.as_f64() / device.memory.bandwidth.0)
}

/// The value below which `share` of the ascending `values` lie.
#[must_use]
pub fn quantile(values: &[f64], share: f64) -> f64 {
    match values.len() {
        0 => f64::NAN,
        count => values[((count - 1) as f64 * share).round() as usize],
    }
}
