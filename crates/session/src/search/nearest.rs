//! When everything is out of memory: how much the trials that came nearest really need.

use std::sync::atomic::Ordering;
use std::time::Duration;

use trompe_results::study::{TrialOrigin, TrialStatus};
use trompe_results::{Note, Severity};
use trompe_search::study::Proposal;

use super::SearchProgress;
use super::drive::Drive;

impl Drive<'_> {
    /// When everything is out of memory: how much the trials that came nearest really need.
    pub(super) fn measure_nearest_miss(&mut self, progress: &mut dyn SearchProgress) -> Vec<Note> {
        const LOOKED_AT: usize = 2;
        if self.study.best().is_some() || self.interrupted.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let ran_out = self.study.trials().iter().filter_map(|trial| {
            let outcome = trial.outcome.as_ref()?;
            let ran = trial.origin != TrialOrigin::Pruned && outcome.status == TrialStatus::OutOfMemory;
            ran.then_some((outcome.missing_bytes.unwrap_or(u64::MAX), trial.number))
        });
        let mut nearest: Vec<(u64, u32)> = ran_out.collect();
        nearest.sort_unstable();
        let mut notes = Vec::new();
        for (_, number) in nearest.into_iter().take(LOOKED_AT) {
            progress.note(&format!("nothing fits; measuring what trial {number} needs"));
            let trial = &self.study.trials()[number as usize];
            let Ok(job) = self.plan.space.job.resolve(&trial.values) else { continue };
            let proposal = Proposal {
                number,
                point: trial.point.clone(),
                values: trial.values.clone(),
                job,
                best_seconds: None,
            };
            let Ok(mut order) = self.order(&proposal) else { continue };
            order.unlimited = true;
            if self.pool.submit(order).is_err() {
                continue;
            }
            let reply = loop {
                match self.pool.next(Duration::from_millis(200)) {
                    Ok(None) if !self.interrupted.load(Ordering::Relaxed) => {}
                    Ok(reply) => break reply,
                    Err(_) => break None,
                }
            };
            let Some(missing) = reply.and_then(|reply| reply.outcome.missing_bytes) else { continue };
            let text = self.study.text(&self.study.trials()[number as usize].point);
            let gib = missing as f64 / f64::from(1 << 30);
            notes.push(Note {
                severity: Severity::Info,
                code: "nearest-miss".to_owned(),
                text: format!("Trial {number} ({text}) would fit with {gib:.1} GiB more on each device."),
                action: None,
            });
        }
        notes
    }
}
