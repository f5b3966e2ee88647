//! Sums over a trace.

use std::collections::BTreeMap;

use trompe_base::Bytes;
use trompe_trace::job::{Action, JobTrace};
use trompe_trace::reader::{Names, WorkerTrace};
use trompe_trace::record::Record;

use super::describe;

/// A name with how often it occurs and how long it took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// What is counted.
    pub name: String,
    /// How often.
    pub count: u64,
    /// Summed microseconds, where that means something.
    pub micros: f64,
}

/// Sums over a worker trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerStats {
    /// The process.
    pub pid: u32,
    /// Size of the file.
    pub bytes: Bytes,
    /// All records.
    pub records: u64,
    /// Threads.
    pub threads: usize,
    /// Seconds from the first to the last record.
    pub seconds: f64,
    /// Whether the process ended in an orderly way.
    pub ended: bool,
    /// Records that could not be written.
    pub dropped: u64,
    /// Records by kind, most first.
    pub kinds: Vec<Tally>,
    /// API functions with a record of each call, most first.
    pub functions: Vec<Tally>,
    /// API functions with the number of all calls, also those without a record, most first; classes in the name.
    pub counts: Vec<Tally>,
    /// Kernels by launches, most first.
    pub kernels: Vec<Tally>,
    /// Facts about the process.
    pub facts: BTreeMap<String, String>,
}

/// Sums up a worker trace.
#[must_use]
pub fn worker_stats(trace: &WorkerTrace) -> WorkerStats {
    let names = Names::collect(trace);
    let mut stats = WorkerStats {
        pid: trace.pid(),
        bytes: Bytes(trace.len() as u64),
        ended: names.ended,
        facts: names.meta.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        ..WorkerStats::default()
    };
    let mut kinds = Tallies::default();
    let mut functions = Tallies::default();
    let mut counts = Tallies::default();
    let mut kernels = Tallies::default();
    let mut threads = std::collections::BTreeSet::new();
    let (mut first, mut last) = (u64::MAX, 0);
    for entry in trace.entries() {
        stats.records += 1;
        threads.insert(entry.thread);
        first = first.min(entry.stamp.begin);
        last = last.max(entry.stamp.begin + u64::from(entry.stamp.ticks));
        let micros = names.clock.length_nanos(u64::from(entry.stamp.ticks)) / 1e3;
        kinds.add(describe::kind(&entry.record).to_owned(), 1, micros);
        if let Some(api) = entry.record.api() {
            functions.add(describe::api_name(&names, api), 1, micros);
        }
        match entry.record {
            Record::Launch { kernel, .. } => {
                let name = names.kernels.get(&kernel).map_or("an unannounced kernel", |kernel| kernel.name);
                kernels.add(name.to_owned(), 1, 0.0);
            }
            Record::ApiCount { api, calls } => {
                let name = names.apis.get(&u32::from(api)).copied().unwrap_or("an unannounced function");
                counts.add(name.to_owned(), calls, 0.0);
            }
            Record::Dropped { records, .. } => stats.dropped += records,
            _ => {}
        }
    }
    stats.threads = threads.len();
    stats.seconds = names.clock.length_nanos(last.saturating_sub(first.min(last))) / 1e9;
    stats.kinds = kinds.sorted();
    stats.functions = functions.sorted();
    stats.counts = counts.sorted();
    stats.kernels = kernels.sorted();
    stats
}

/// Sums over a job trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobStats {
    /// Ranks, and how many of them ran.
    pub ranks: (usize, usize),
    /// Distinct behaviours.
    pub templates: usize,
    /// Communicators.
    pub communicators: usize,
    /// Host events of the first template.
    pub events: usize,
    /// Distinct operations of the first template.
    pub operations: usize,
    /// Steps of the first template and how many of them are warm-up.
    pub steps: (usize, usize),
    /// Launches by family of operation, most first.
    pub families: Vec<Tally>,
    /// Facts about the recording.
    pub facts: BTreeMap<String, String>,
}

/// Sums up a job trace.
#[must_use]
pub fn job_stats(job: &JobTrace) -> JobStats {
    let mut stats = JobStats {
        ranks: (job.ranks.len(), job.ranks.iter().filter(|rank| rank.emulated).count()),
        templates: job.templates.len(),
        communicators: job.communicators.len(),
        facts: job.facts.clone(),
        ..JobStats::default()
    };
    let Some(template) = job.templates.first() else { return stats };
    stats.events = template.events.len();
    stats.operations = template.operations.len();
    stats.steps = (template.steps.count(), template.steps.warmup);
    let mut families = Tallies::default();
    for event in &template.events {
        match &event.action {
            Action::Enqueue { operation, .. } => {
                let family = template.operations.get(*operation as usize).map(|o| o.descriptor.family());
                families.add(family.unwrap_or("unknown").to_owned(), 1, 0.0);
            }
            Action::Collective { .. } => families.add("collective".to_owned(), 1, 0.0),
            Action::Graph { operations, .. } => {
                families.add("graph".to_owned(), 1, 0.0);
                families.add("in graphs".to_owned(), operations.len() as u64, 0.0);
            }
            _ => {}
        }
    }
    stats.families = families.sorted();
    stats
}

#[derive(Default)]
struct Tallies(BTreeMap<String, (u64, f64)>);

impl Tallies {
    fn add(&mut self, name: String, count: u64, micros: f64) {
        let entry = self.0.entry(name).or_default();
        entry.0 += count;
        entry.1 += micros;
    }

    fn sorted(self) -> Vec<Tally> {
        let tally = |(name, (count, micros))| Tally { name, count, micros };
        let mut tallies: Vec<_> = self.0.into_iter().map(tally).collect();
        tallies.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        tallies
    }
}
