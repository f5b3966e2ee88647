//! Measured kernel times of the same job in place of predictions: a trace of PyTorch's profiler from a real GPU.
//!
//! With it, what is left of the error is the simulation's own (host, streams, collectives), not the kernels'.
//!
//! An operation is looked for in this order: by what it computes, where shapes were recorded (products, convolutions,
//! attention, norms, passes over memory, copies); by name, grid and block; by its place among those of its kind within a
//! step (the third convolution forward is the third one there), where step and trace hold equally many of them. Several
//! measurements give their median, and their 10 and 90 % quantiles as interval. What is found in none of these ways keeps
//! its prediction; the report says for how much of the kernel time that is so.

use std::collections::BTreeMap;
use std::path::Path;

use trompe_base::Duration;
use trompe_estimate::table::canonical;
use trompe_estimate::{Basis, Estimate};
use trompe_interop::kineto;
use trompe_trace::descriptor::{Descriptor, Direction};
use trompe_trace::job::{Action, JobTrace, Operation, RankTemplate};

use crate::SessionError;
use crate::calibration::{Observed, base, observe};

/// Times by what identifies a kernel, in seconds.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    operations: BTreeMap<String, Vec<f64>>,
    /// By name, with and without what it works on.
    kernels: BTreeMap<Kernel, Vec<f64>>,
    /// In order of launch, by kind; one list per trace.
    order: Vec<BTreeMap<String, Vec<f64>>>,
}

/// Name, grid and block.
type Kernel = (String, [u32; 3], [u32; 3]);

/// For each template and operation the time that its place in a step gives, in seconds.
pub type Placed = Vec<BTreeMap<u32, Vec<f64>>>;

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
            let (observed, _) = observe(&trace);
            if observed.is_empty() {
                return Err(bad("it holds no kernel; was `ProfilerActivity.CUDA` on?".to_owned()));
            }
            oracle.add(&observed);
        }
        let lists = oracle.operations.values_mut().chain(oracle.kernels.values_mut());
        lists.for_each(|list| list.sort_by(f64::total_cmp));
        Ok(oracle)
    }

    fn add(&mut self, observed: &[Observed]) {
        let steps = observed.iter().any(|one| one.step.is_some());
        let mut order = BTreeMap::<String, Vec<f64>>::new();
        for one in observed {
            if one.exact {
                self.operations.entry(text(&one.descriptor)).or_default().push(one.seconds);
            }
            if let Some((grid, block)) = one.launch {
                for name in [one.kernel.as_str(), base(&one.kernel)] {
                    self.kernels.entry((name.to_owned(), grid, block)).or_default().push(one.seconds);
                }
            }
            if !steps || one.step.is_some() {
                order.entry(one.class.clone()).or_default().push(one.seconds);
            }
        }
        self.order.push(order);
    }

    /// The times that the places in a step of `job` give.
    #[must_use]
    pub fn place(&self, job: &JobTrace) -> Placed {
        job.templates.iter().map(|template| self.place_in(template)).collect()
    }

    fn place_in(&self, template: &RankTemplate) -> BTreeMap<u32, Vec<f64>> {
        let mut placed = BTreeMap::<u32, Vec<f64>>::new();
        let [.., begin, end] = template.steps.boundaries[..] else { return placed };
        let mut kinds = BTreeMap::<String, Vec<u32>>::new();
        for event in template.events.get(begin..end).unwrap_or_default() {
            if let Action::Enqueue { operation, .. } = event.action {
                kinds.entry(kind(&template.operations[operation as usize])).or_default().push(operation);
            }
        }
        for (kind, operations) in kinds {
            for times in self.order.iter().filter_map(|order| order.get(&kind)) {
                if times.len().is_multiple_of(operations.len()) {
                    for (at, seconds) in times.iter().enumerate() {
                        placed.entry(operations[at % operations.len()]).or_default().push(*seconds);
                    }
                }
            }
        }
        placed.values_mut().for_each(|list| list.sort_by(f64::total_cmp));
        placed
    }

    /// The measured time of `operation`, which is number `row` of template `template`; `None` when the trace does not hold
    /// it.
    #[must_use]
    pub fn estimate(&self, operation: &Operation, placed: Option<&Vec<f64>>) -> Option<Estimate> {
        let by_name = || {
            let launch = operation.launch?;
            let find = |name: &str| self.kernels.get(&(name.to_owned(), launch.grid, launch.block));
            find(&operation.short_name).or_else(|| find(base(&operation.short_name)))
        };
        let times = self.operations.get(&text(&operation.descriptor)).or_else(by_name).or(placed)?;
        let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
        let median = at(0.5);
        let spread = [at(0.1) / median, at(0.9) / median];
        let estimate = Estimate::new(median, spread, "measured.oracle", Basis::Measured).at(Some(0.0));
        (estimate.time > Duration::ZERO).then_some(estimate)
    }
}

/// An operation as a key, without what does not decide its time.
fn text(operation: &Descriptor) -> String {
    serde_json::to_string(&canonical(operation)).expect("plain data has a JSON form")
}

/// What tells an operation from others in the order of a step, as traces of the profiler are told apart.
fn kind(operation: &Operation) -> String {
    match (&operation.descriptor, operation.launch) {
        (Descriptor::Convolution(c), None) => {
            let direction = match c.direction {
                Direction::Forward => "forward",
                Direction::Backward => "backward",
                Direction::WeightGradient => "weight_gradient",
            };
            format!("convolution {direction}")
        }
        (Descriptor::Copy(_) | Descriptor::Set(_), _) | (_, None) => operation.descriptor.family().to_owned(),
        _ => base(&operation.short_name).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use trompe_base::Bytes;
    use trompe_base::{StreamId, ThreadIndex};
    use trompe_trace::descriptor::{Copy, Other, Place, Work};
    use trompe_trace::job::{CallClass, HostEvent, Launch, Steps};

    use super::*;

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
        let found = oracle.estimate(&operation(other.clone(), 2), None).unwrap();
        assert_eq!((found.time, found.basis), (Duration::from_micros(12), Basis::Measured));
        assert!(oracle.estimate(&operation(other.clone(), 3), None).is_none());
        let copy =
            |bytes| Descriptor::Copy(Copy { from: Place::Pinned, to: Place::Device, bytes: Bytes(bytes) });
        assert_eq!(oracle.estimate(&operation(copy(64), 0), None).unwrap().time, Duration::from_micros(3));
        assert!(oracle.estimate(&operation(copy(65), 0), None).is_none());
        // Of three kernels of that name in a step, the second is the second one there, whatever its grid.
        let event = |operation: u32| HostEvent {
            thread: ThreadIndex(0),
            gap: Duration::ZERO,
            call: CallClass::Launch,
            site: 0,
            action: Action::Enqueue { stream: StreamId(0), operation, blocking: false },
        };
        let template = RankTemplate {
            operations: (5..8).map(|grid| operation(other.clone(), grid)).collect(),
            events: (0..3).map(event).collect(),
            steps: Steps { boundaries: vec![0, 3], ..Steps::default() },
            ..RankTemplate::default()
        };
        let job = JobTrace { templates: vec![template], ..JobTrace::default() };
        let placed = oracle.place(&job);
        let found = oracle.estimate(&job.templates[0].operations[1], placed[0].get(&1)).unwrap();
        assert_eq!(found.time, Duration::from_micros(14));
        std::fs::write(&path, "{\"traceEvents\": []}").unwrap();
        assert!(matches!(Oracle::read(&[&path]), Err(SessionError::BadOracle { .. })));
    }
}
