//! Errors by group, as a Markdown table.

use std::collections::BTreeMap;
use std::fmt;

use trompe_base::Duration;
use trompe_estimate::Estimate;
use trompe_hardware::DeviceSheet;
use trompe_trace::descriptor::Descriptor;

/// Errors of each group.
#[derive(Default)]
pub(crate) struct Table(BTreeMap<String, Vec<Error>>);

struct Error {
    /// Prediction over measurement, less one.
    relative: f64,
    /// The same for a roofline.
    roofline: f64,
    /// The measurement lies in the interval.
    inside: bool,
}

impl Table {
    /// Compares the sum of `estimates` with the `seconds` that they took together.
    pub(crate) fn add(&mut self, group: String, estimates: Vec<Estimate>, seconds: f64, roofline: f64) {
        let sum =
            |part: fn(&Estimate) -> Duration| estimates.iter().map(part).sum::<Duration>().as_secs_f64();
        self.0.entry(group).or_default().push(Error {
            relative: sum(|e| e.time) / seconds - 1.0,
            roofline: roofline / seconds - 1.0,
            inside: (sum(|e| e.low)..=sum(|e| e.high)).contains(&seconds),
        });
    }
}

/// The roofline of `operation`: the larger of operations over peak and bytes over bandwidth.
pub(crate) fn roofline(operation: &Descriptor, device: &DeviceSheet) -> f64 {
    let (dtype, bytes) = match operation {
        Descriptor::Gemm(g) => {
            let (a, b, c) = (g.m * g.k * g.a.size(), g.k * g.n * g.b.size(), g.m * g.n * g.c.size());
            (g.a, g.batch * (a + b + c))
        }
        Descriptor::Attention(a) => {
            let q = a.heads * a.seq_q + a.kv_heads * a.seq_kv;
            (a.dtype, a.batch * q * (a.head_dim + a.head_dim_v) * a.dtype.size())
        }
        Descriptor::Convolution(c) => {
            let size = |channels: u64, extents: &[u64]| c.batch * channels * extents.iter().product::<u64>();
            (c.dtype, (size(c.in_channels, &c.input) + size(c.out_channels, &c.output)) * c.dtype.size())
        }
        Descriptor::Elementwise(e) => (e.dtype, e.work.bytes().0),
        Descriptor::Normalization(n) => (n.dtype, n.work.bytes().0),
        Descriptor::Softmax(r) => (r.dtype, r.work.bytes().0),
        Descriptor::Embedding(e) => (e.dtype, e.work.bytes().0),
        _ => return f64::NAN,
    };
    let arithmetic = operation.matmul_flops().as_f64() / device.matrix_peak(dtype).0;
    arithmetic.max(bytes as f64 / device.memory.bandwidth.0)
}

fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share).round() as usize]
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| family | what | device | source | rows | median | p90 | bias | in interval | roofline median |"
        )?;
        writeln!(f, "|---|---|---|---|---:|---:|---:|---:|---:|---:|")?;
        for (group, errors) in &self.0 {
            let mut absolute: Vec<f64> = errors.iter().map(|e| e.relative.abs()).collect();
            let mut signed: Vec<f64> = errors.iter().map(|e| e.relative).collect();
            let mut roofline: Vec<f64> = errors.iter().map(|e| e.roofline.abs()).collect();
            let inside = errors.iter().filter(|e| e.inside).count() as f64 / errors.len() as f64;
            writeln!(
                f,
                "| {group} | {} | {:.1} % | {:.1} % | {:+.1} % | {:.0} % | {:.0} % |",
                errors.len(),
                100.0 * quantile(&mut absolute, 0.5),
                100.0 * quantile(&mut absolute, 0.9),
                100.0 * quantile(&mut signed, 0.5),
                100.0 * inside,
                100.0 * quantile(&mut roofline, 0.5),
            )?;
        }
        Ok(())
    }
}
