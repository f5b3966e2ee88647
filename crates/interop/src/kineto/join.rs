//! Which call and which operator launched what, and where the steps are.

use std::collections::BTreeMap;

use super::{Annotation, KinetoTrace};

/// What launched a piece of device work, as places in the lists of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// The call of the runtime or driver.
    pub call: Option<usize>,
    /// The innermost operator around the call.
    pub operator: Option<usize>,
}

/// A step as the profiler marks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its number.
    pub number: u64,
    /// Start on the host.
    pub start_ns: i64,
    /// Duration on the host.
    pub duration_ns: u64,
}

impl KinetoTrace {
    /// For each device event what launched it.
    ///
    /// The call is found by the correlation. The operator is the innermost one that was open on the call's thread; the
    /// number that traces state (`External id`) serves where no call was recorded, because old traces repeat the
    /// correlation there.
    #[must_use]
    pub fn launches(&self) -> Vec<Launch> {
        let around = self.operators_of_calls();
        let by_correlation: BTreeMap<u64, usize> = self
            .runtime_calls
            .iter()
            .enumerate()
            .filter_map(|(i, call)| Some((call.correlation?, i)))
            .collect();
        let by_number: BTreeMap<u64, usize> = self
            .operators
            .iter()
            .enumerate()
            .filter_map(|(i, operator)| Some((operator.external_id?, i)))
            .collect();
        let launch = |event: &super::DeviceEvent| {
            let call = event.correlation.and_then(|number| by_correlation.get(&number)).copied();
            let stated = || {
                let number = event.external_id.filter(|&number| Some(number) != event.correlation)?;
                by_number.get(&number).copied()
            };
            Launch { call, operator: call.and_then(|call| around[call]).or_else(stated) }
        };
        self.device_events.iter().map(launch).collect()
    }

    /// For each operator the one around it on its thread.
    #[must_use]
    pub fn parents(&self) -> Vec<Option<usize>> {
        let mut open: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        let mut parents = Vec::with_capacity(self.operators.len());
        for (at, operator) in self.operators.iter().enumerate() {
            let stack = open.entry(operator.thread).or_default();
            while stack.last().is_some_and(|&other| self.end_of(other) <= operator.start_ns) {
                stack.pop();
            }
            let end = self.end_of(at);
            parents.push(stack.iter().rev().copied().find(|&other| self.end_of(other) >= end));
            stack.push(at);
        }
        parents
    }

    /// For each call of the runtime the innermost operator that was open on its thread.
    fn operators_of_calls(&self) -> Vec<Option<usize>> {
        let mut open: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        let mut next = 0;
        let mut around = Vec::with_capacity(self.runtime_calls.len());
        for call in &self.runtime_calls {
            // Both lists are in order of start.
            while self.operators.get(next).is_some_and(|operator| operator.start_ns <= call.start_ns) {
                let operator = &self.operators[next];
                let stack = open.entry(operator.thread).or_default();
                stack.retain(|&other| self.end_of(other) > operator.start_ns);
                stack.push(next);
                next += 1;
            }
            let stack = open.get(&call.thread).map_or(&[][..], Vec::as_slice);
            around.push(stack.iter().rev().copied().find(|&operator| self.end_of(operator) >= call.start_ns));
        }
        around
    }

    fn end_of(&self, operator: usize) -> i64 {
        let operator = &self.operators[operator];
        operator.start_ns.saturating_add_unsigned(operator.duration_ns)
    }

    /// The steps that the profiler marked (`ProfilerStep#N`, on the host). Until 2022 they were operators.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        let step = |name: &str, start_ns: i64, duration_ns: u64| {
            let number = name.strip_prefix("ProfilerStep#")?.parse().ok()?;
            Some(Step { number, start_ns, duration_ns })
        };
        let of_range = |range: &Annotation| step(&range.name, range.start_ns, range.duration_ns);
        let ranges = self.annotations.iter().filter(|range| !range.on_device).filter_map(of_range);
        let steps: Vec<Step> = ranges.collect();
        if !steps.is_empty() {
            return steps;
        }
        self.operators.iter().filter_map(|o| step(&o.name, o.start_ns, o.duration_ns)).collect()
    }
}
