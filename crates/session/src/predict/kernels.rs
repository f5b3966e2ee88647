//! The kernels of a step by total time, and what their times rest on.

use std::collections::BTreeMap;

use trompe_cluster::OperationUse;
use trompe_results::{CallSeen, Coverage, Kernel, Method, MethodShare, SustainedClock, UnknownKernel};
use trompe_trace::job::{Action, RankTemplate};

use super::pricing::Priced;

/// All launches of one kernel in the used steps.
#[derive(Clone, Debug, Default)]
struct Group {
    kernel: Kernel,
    launches: u64,
    /// Seconds by method, to name the one that most time comes from.
    by_method: BTreeMap<Method, f64>,
    /// Launches by caller.
    callers: BTreeMap<String, u64>,
    longest: f64,
}

/// A template's operations with their prices and uses, and the number of used steps.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    pub(super) template: &'a RankTemplate,
    pub(super) priced: &'a [Priced],
    pub(super) uses: &'a [OperationUse],
    pub(super) steps: usize,
}

impl Table<'_> {
    fn rows(&self) -> impl Iterator<Item = (usize, &Priced, &OperationUse)> {
        let rows = self.priced.iter().zip(self.uses).enumerate();
        rows.map(|(row, (priced, used))| (row, priced, used)).filter(|(_, _, used)| used.launches > 0)
    }

    /// Kernels, longest first.
    pub(super) fn kernels(&self) -> Vec<Kernel> {
        let steps = self.steps.max(1) as f64;
        let mut groups = BTreeMap::<(&str, &str), Group>::new();
        for (row, priced, used) in self.rows() {
            let operation = &self.template.operations[row];
            let launches = used.launches as f64 / steps;
            let seconds = priced.price.time.as_secs_f64() * launches;
            let group = groups.entry((&operation.short_name, operation.descriptor.family())).or_default();
            group.launches += used.launches;
            *group.by_method.entry(priced.method).or_default() += seconds;
            let site = used.site.and_then(|site| self.template.sites.get(site as usize));
            if let Some(site) = site.filter(|site| !site.operator.is_empty()) {
                *group.callers.entry(site.operator.clone()).or_default() += used.launches;
            }
            let kernel = &mut group.kernel;
            kernel.seconds += seconds;
            kernel.low += priced.price.low.as_secs_f64() * launches;
            kernel.high += priced.price.high.as_secs_f64() * launches;
            kernel.flops = add(kernel.flops, priced.flops.map(|flops| flops * launches));
            kernel.bytes = add(kernel.bytes, priced.bytes.map(|bytes| bytes * launches));
            // What is said once about a group is said of its longest member.
            if seconds > group.longest || group.longest == 0.0 {
                group.longest = seconds;
                kernel.symbol.clone_from(&operation.name);
                kernel.kind = used.kind;
                kernel.bound = priced.bound;
                kernel.note.clone_from(&priced.note);
            }
        }
        let total: f64 = groups.values().map(|group| group.kernel.seconds).sum();
        let mut kernels: Vec<_> = groups
            .into_iter()
            .map(|((name, family), group)| group.finish(name, family, steps, total))
            .collect();
        kernels.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.name.cmp(&b.name)));
        kernels
    }

    /// What the kernel times rest on.
    pub(super) fn coverage(&self) -> Coverage {
        let steps = self.steps.max(1) as f64;
        let mut methods = Method::ALL.map(|method| MethodShare { method, ..MethodShare::default() });
        let mut unknown = BTreeMap::<(&str, &str), (u64, f64)>::new();
        let (mut lowest, mut slowed) = (1.0_f64, 0.0);
        for (row, priced, used) in self.rows() {
            let seconds = priced.price.time.as_secs_f64() * used.launches as f64 / steps;
            if priced.clock < 1.0 && used.launches > 0 {
                lowest = lowest.min(priced.clock);
                slowed += seconds;
            }
            let method = &mut methods[priced.method as usize];
            method.count += used.launches;
            method.seconds += seconds;
            if priced.method == Method::Fallback {
                let name = self.template.operations[row].short_name.as_str();
                let entry = unknown.entry((name, priced.note.as_deref().unwrap_or_default())).or_default();
                entry.0 += used.launches;
                entry.1 += seconds;
            }
        }
        let total: f64 = methods.iter().map(|method| method.seconds).sum();
        for method in &mut methods {
            method.count = (method.count as f64 / steps).round() as u64;
            method.share = if total > 0.0 { method.seconds / total } else { 0.0 };
        }
        let mut unknown_kernels: Vec<_> = unknown
            .into_iter()
            .map(|((name, rule), (launches, seconds))| UnknownKernel {
                name: name.to_owned(),
                count: per_step(launches, steps),
                seconds,
                rule: rule.to_owned(),
            })
            .collect();
        unknown_kernels.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.name.cmp(&b.name)));
        Coverage {
            methods: methods.to_vec(),
            sustained_clock: (slowed > 0.0)
                .then(|| SustainedClock { lowest_share: lowest, kernel_time_share: slowed / total }),
            kernels_with_shapes_share: self.with_shapes(),
            unknown_kernels,
            unsupported_calls: calls(self.template, "unsupported", "it got the library's own error code"),
            accepted_calls: calls(self.template, "accepted", "it returned success and did nothing"),
        }
    }

    /// Share of launches in the used steps that a framework operator made.
    fn with_shapes(&self) -> Option<f64> {
        let steps = &self.template.steps;
        let begin = *steps.boundaries.get(steps.count().saturating_sub(self.steps))?;
        let events = &self.template.events[begin..*steps.boundaries.last()?];
        let launches = events.iter().filter(|event| matches!(event.action, Action::Enqueue { .. }));
        let named =
            |site: u32| self.template.sites.get(site as usize).is_some_and(|s| !s.operator.is_empty());
        let (known, all) =
            launches.fold((0_u64, 0_u64), |(known, all), e| (known + u64::from(named(e.site)), all + 1));
        (all > 0).then(|| known as f64 / all as f64)
    }
}

impl Group {
    fn finish(self, name: &str, family: &str, steps: f64, total: f64) -> Kernel {
        let most = |a: &(&Method, &f64), b: &(&Method, &f64)| a.1.total_cmp(b.1).then(b.0.cmp(a.0));
        let method = self.by_method.iter().max_by(most).map_or(Method::Fallback, |(method, _)| *method);
        let caller = self.callers.into_iter().rev().max_by_key(|(_, launches)| *launches);
        Kernel {
            name: name.to_owned(),
            family: family.replace('_', " "),
            count: per_step(self.launches, steps),
            share: if total > 0.0 { self.kernel.seconds / total } else { 0.0 },
            method,
            caller: caller.map(|(caller, _)| caller),
            ..self.kernel
        }
    }
}

/// Launches per step; what was launched at all counts at least once.
fn per_step(launches: u64, steps: f64) -> u64 {
    ((launches as f64 / steps).round() as u64).max(1)
}

fn add(sum: Option<f64>, part: Option<f64>) -> Option<f64> {
    match (sum, part) {
        (Some(sum), Some(part)) => Some(sum + part),
        (one, other) => one.or(other),
    }
}

/// Calls of functions of one class; names are `library/symbol/class`.
fn calls(template: &RankTemplate, class: &str, effect: &str) -> Vec<CallSeen> {
    let parts = |name: &str| -> Option<(String, String)> {
        let mut parts = name.split('/');
        let (library, symbol) = (parts.next()?, parts.next()?);
        (parts.next()? == class).then(|| (format!("lib{library}"), symbol.to_owned()))
    };
    let seen = template.calls.iter().filter(|(_, count)| *count > 0).filter_map(|(name, count)| {
        let (library, symbol) = parts(name)?;
        Some(CallSeen { library, symbol, count: *count, effect: effect.to_owned() })
    });
    seen.collect()
}
