//! Whether two ranks do the same.
//!
//! Host times never repeat exactly and do not count. Nor does the order in which threads that go their own way happened
//! to make their calls in the recorded run: each of their queues is compared by itself, operations and sites by what they
//! are instead of by their rows (which are numbered in that order), and hand-overs by where they were given.

use std::collections::BTreeMap;

use trompe_trace::job::{Action, HostEvent, RankTemplate};

/// See the module's documentation.
pub(crate) fn same(a: &RankTemplate, b: &RankTemplate) -> bool {
    let alike = a.streams == b.streams
        && a.steps.count() == b.steps.count()
        && a.steps.warmup == b.steps.warmup
        && a.memory.peak_total == b.memory.peak_total
        && a.memory.peak_allocated == b.memory.peak_allocated
        && a.events.len() == b.events.len();
    if !alike {
        return false;
    }
    if a.queues().is_single() && b.queues().is_single() {
        let equal = |(x, y): (&HostEvent, &HostEvent)| {
            (x.call, x.site, &x.action, x.thread) == (y.call, y.site, &y.action, y.thread)
        };
        return a.operations == b.operations
            && a.sites == b.sites
            && a.steps == b.steps
            && a.events.iter().zip(&b.events).all(equal);
    }
    let (a, b) = (Queues::of(a), Queues::of(b));
    a.rows.len() == b.rows.len()
        && a.rows.iter().zip(&b.rows).all(|((queue, rows), (other, others))| {
            queue == other
                && rows.len() == others.len()
                && rows.iter().zip(others).all(|(row, other)| a.equal(*row, &b, *other))
        })
}

/// The calls of a rank by queue.
struct Queues<'a> {
    template: &'a RankTemplate,
    rows: BTreeMap<u16, Vec<usize>>,
    /// By hand-over the queue that gives it, and the place there.
    given: BTreeMap<u32, (u16, usize)>,
}

impl<'a> Queues<'a> {
    fn of(template: &'a RankTemplate) -> Self {
        let queues = template.queues();
        let mut found = Self { template, rows: BTreeMap::new(), given: BTreeMap::new() };
        for (row, event) in template.events.iter().enumerate() {
            let queue = queues.queue(event.thread);
            let rows = found.rows.entry(queue).or_default();
            if let Action::Give { token } = event.action {
                found.given.entry(token).or_insert((queue, rows.len()));
            }
            rows.push(row);
        }
        found
    }

    fn equal(&self, row: usize, other: &Self, other_row: usize) -> bool {
        let (x, y) = (&self.template.events[row], &other.template.events[other_row]);
        let operation = |a: &u32, b: &u32| {
            self.template.operations.get(*a as usize) == other.template.operations.get(*b as usize)
        };
        let action = match (&x.action, &y.action) {
            (
                Action::Enqueue { stream, operation: a, blocking },
                Action::Enqueue { stream: stream_b, operation: b, blocking: blocking_b },
            ) => stream == stream_b && blocking == blocking_b && operation(a, b),
            (Action::Graph { stream, operations: a }, Action::Graph { stream: stream_b, operations: b }) => {
                stream == stream_b && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| operation(a, b))
            }
            (Action::Give { .. }, Action::Give { .. }) => true,
            (Action::Take { token: a }, Action::Take { token: b }) => self.given.get(a) == other.given.get(b),
            (a, b) => a == b,
        };
        action && x.call == y.call && site_of(self.template, x) == site_of(other.template, y)
    }
}

fn site_of<'t>(template: &'t RankTemplate, event: &HostEvent) -> Option<&'t trompe_trace::job::Site> {
    template.sites.get(event.site as usize)
}
