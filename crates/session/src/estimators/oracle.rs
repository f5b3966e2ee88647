//! Measured kernel times of the same job in place of predictions: a trace of PyTorch's profiler from a real GPU.
//!
//! With it, what is left of the error is the simulation's own (host, streams, collectives), not the kernels'.
//!
//! A kernel is found by its name without template arguments, its grid and its block; a matrix product of a library, whose
//! kernel the emulator never sees, by the shapes of the operator that launched it; a copy or fill by its direction and
//! size. Several measurements of one kernel give their median, and their 10 and 90 % quantiles as interval. What the
//! trace does not hold keeps its prediction; the report says for how much of the kernel time that is so.

use std::collections::BTreeMap;
use std::path::Path;

use trompe_base::Duration;
use trompe_estimate::{Basis, Estimate};
use trompe_interop::kineto::{self, DeviceEventKind, KinetoTrace, Operator, Shape};
use trompe_trace::descriptor::{Descriptor, Place};
use trompe_trace::job::Operation;

use crate::SessionError;

/// Times by what identifies a kernel.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    kernels: BTreeMap<Kernel, Vec<u64>>,
    products: BTreeMap<Product, Vec<u64>>,
    moves: BTreeMap<(&'static str, u64), Vec<u64>>,
}

/// Name, grid and block.
type Kernel = (String, [u32; 3], [u32; 3]);

/// Smaller and larger side of the result, contraction, batch.
type Product = [u64; 4];

impl Oracle {
    /// Reads traces, one per rank or several of one.
    ///
    /// # Errors
    /// When a file is no such trace or holds no kernel.
    pub fn read(paths: &[impl AsRef<Path>]) -> Result<Self, SessionError> {
        let mut oracle = Self::default();
        for path in paths {
            let path = path.as_ref();
            let bad = |reason: String| SessionError::BadOracle { path: path.to_owned(), reason };
            let trace = kineto::read(path).map_err(|error| bad(error.to_string()))?;
            let before = oracle.count();
            oracle.add(&trace);
            if oracle.count() == before {
                return Err(bad("it holds no kernel; was `ProfilerActivity.CUDA` on?".to_owned()));
            }
        }
        oracle.sort();
        Ok(oracle)
    }

    fn count(&self) -> usize {
        let lists = self.kernels.values().chain(self.products.values()).chain(self.moves.values());
        lists.map(Vec::len).sum()
    }

    fn sort(&mut self) {
        let lists =
            self.kernels.values_mut().chain(self.products.values_mut()).chain(self.moves.values_mut());
        lists.for_each(|list| list.sort_unstable());
    }

    fn add(&mut self, trace: &KinetoTrace) {
        let launches = trace.launches();
        // A library may run several kernels for one product: they belong together.
        let mut by_operator = BTreeMap::<usize, u64>::new();
        for (event, launch) in trace.device_events.iter().zip(&launches) {
            match event.kind {
                DeviceEventKind::Kernel if event.collective.is_none() => {
                    if let (Some(grid), Some(block)) = (event.grid, event.block) {
                        let key = (base_name(&event.name).to_owned(), grid, block);
                        self.kernels.entry(key).or_default().push(event.duration_ns);
                    }
                    if let Some(operator) = launch.operator {
                        *by_operator.entry(operator).or_default() += event.duration_ns;
                    }
                }
                DeviceEventKind::Copy | DeviceEventKind::Fill => {
                    if let (Some(way), Some(bytes)) = (way(&event.name), event.bytes) {
                        self.moves.entry((way, bytes)).or_default().push(event.duration_ns);
                    }
                }
                _ => {}
            }
        }
        for (operator, nanoseconds) in by_operator {
            if let Some(product) = product(&trace.operators[operator]) {
                self.products.entry(product).or_default().push(nanoseconds);
            }
        }
    }

    /// The measured time of `operation`; `None` when the trace does not hold it.
    #[must_use]
    pub fn estimate(&self, operation: &Operation) -> Option<Estimate> {
        let times = match (&operation.descriptor, operation.launch) {
            (Descriptor::Copy(copy), _) => {
                let way = match (copy.from, copy.to) {
                    (Place::Device, Place::Device) => "DtoD",
                    (Place::Device, Place::Peer) | (Place::Peer, Place::Device) => "PtoP",
                    (Place::Device | Place::Peer, _) => "DtoH",
                    _ => "HtoD",
                };
                self.moves.get(&(way, copy.bytes.0))?
            }
            (Descriptor::Set(set), _) => self.moves.get(&("Memset", set.bytes.0))?,
            (_, Some(launch)) => {
                let name = base_name(&operation.short_name).to_owned();
                self.kernels.get(&(name, launch.grid, launch.block))?
            }
            (Descriptor::Gemm(g), None) => self.products.get(&[g.m.min(g.n), g.m.max(g.n), g.k, g.batch])?,
            _ => return None,
        };
        let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize].max(1) as f64;
        let median = at(0.5);
        let spread = [at(0.1) / median, at(0.9) / median];
        let estimate = Estimate::new(median * 1e-9, spread, "measured.oracle", Basis::Measured).at(Some(0.0));
        (estimate.time > Duration::ZERO).then_some(estimate)
    }
}

/// A kernel's name without return type, namespaces, template arguments and parameters.
fn base_name(name: &str) -> &str {
    let name = name.strip_prefix("void ").unwrap_or(name);
    let end = name.find(['<', '(', ' ']).unwrap_or(name.len());
    let plain = &name[..end];
    plain.rsplit("::").next().unwrap_or(plain)
}

/// The direction of a copy by the name that the profiler gives it.
fn way(name: &str) -> Option<&'static str> {
    ["DtoD", "HtoD", "DtoH", "PtoP", "Memset"].into_iter().find(|way| name.contains(way))
}

/// The product that an operator computes, by the shapes of its arguments.
fn product(operator: &Operator) -> Option<Product> {
    let first = match operator.name.as_ref() {
        "aten::mm" | "aten::bmm" | "aten::linear" | "aten::matmul" => 0,
        "aten::addmm" | "aten::baddbmm" => 1,
        _ => return None,
    };
    let shape = |at: usize| match operator.shapes.get(at) {
        Some(Shape::Tensor(sizes)) => sizes
            .iter()
            .map(|size| u64::try_from(*size).ok().filter(|size| *size > 0))
            .collect::<Option<Vec<u64>>>(),
        _ => None,
    };
    let (a, b) = (shape(first)?, shape(first + 1)?);
    let (m, k, n, batch) = match (a.as_slice(), b.as_slice()) {
        (&[m, k], &[n, inner]) if operator.name.as_ref() == "aten::linear" && inner == k => (m, k, n, 1),
        (&[m, k], &[inner, n]) if inner == k => (m, k, n, 1),
        (&[batch, m, k], &[_, inner, n]) if inner == k => (m, k, n, batch),
        _ => return None,
    };
    Some([m.min(n), m.max(n), k, batch])
}

#[cfg(test)]
mod tests {
    use trompe_base::Bytes;
    use trompe_trace::descriptor::{Copy, Direction, Other, Work};
    use trompe_trace::job::Launch;

    use super::*;

    #[test]
    fn names_are_compared_without_their_decoration() {
        for (name, expect) in [
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::F, 3>(int, F)",
                "vectorized_elementwise_kernel",
            ),
            ("vectorized_elementwise_kernel<4, fill>", "vectorized_elementwise_kernel"),
            ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
            ("softmax_warp_forward FloatA", "softmax_warp_forward"),
        ] {
            assert_eq!(base_name(name), expect);
        }
    }

    #[test]
    fn kernels_copies_and_what_is_missing() {
        const TRACE: &str = r#"{"traceEvents": [
            {"ph": "X", "cat": "kernel", "name": "void k<int>(int)", "ts": 1, "dur": 10, "pid": 0, "tid": 7,
             "args": {"grid": [2, 1, 1], "block": [32, 1, 1], "correlation": 1, "stream": 7, "device": 0}},
            {"ph": "X", "cat": "kernel", "name": "void k<int>(int)", "ts": 21, "dur": 14, "pid": 0, "tid": 7,
             "args": {"grid": [2, 1, 1], "block": [32, 1, 1], "correlation": 2, "stream": 7, "device": 0}},
            {"ph": "X", "cat": "kernel", "name": "void k<int>(int)", "ts": 41, "dur": 12, "pid": 0, "tid": 7,
             "args": {"grid": [2, 1, 1], "block": [32, 1, 1], "correlation": 3, "stream": 7, "device": 0}},
            {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "ts": 61, "dur": 3, "pid": 0,
             "tid": 7, "args": {"bytes": 64, "correlation": 4, "stream": 7, "device": 0}}]}"#;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.json");
        std::fs::write(&path, TRACE).unwrap();
        let oracle = Oracle::read(&[&path]).unwrap();
        let operation = |descriptor: Descriptor, grid: u32| Operation {
            name: "_Z1k".to_owned(),
            short_name: "k<int>".to_owned(),
            descriptor,
            direction: Direction::Forward,
            launch: Some(Launch { grid: [grid, 1, 1], block: [32, 1, 1], shared: 0, registers: 0 }),
        };
        let other = Descriptor::Other(Other { work: Work::default(), blocks: 2, threads: 32 });
        let found = oracle.estimate(&operation(other.clone(), 2)).unwrap();
        assert_eq!((found.time, found.basis), (Duration::from_micros(12), Basis::Measured));
        assert!(oracle.estimate(&operation(other, 3)).is_none());
        let copy =
            |bytes| Descriptor::Copy(Copy { from: Place::Pinned, to: Place::Device, bytes: Bytes(bytes) });
        assert_eq!(oracle.estimate(&operation(copy(64), 0)).unwrap().time, Duration::from_micros(3));
        assert!(oracle.estimate(&operation(copy(65), 0)).is_none());
        std::fs::write(&path, "{\"traceEvents\": []}").unwrap();
        assert!(matches!(Oracle::read(&[&path]), Err(SessionError::BadOracle { .. })));
    }
}
