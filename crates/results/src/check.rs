//! The invariants of a report, checked once by whoever has filled it.

use crate::{Report, VerdictStatus};

/// An invariant that a report breaks. It is always a bug in the program that filled it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Inconsistency {
    /// A number is NaN or infinite.
    #[error("`{field}` is {value}, not a finite number")]
    NotFinite {
        /// The field.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// A number is below zero.
    #[error("`{field}` is {value}, below zero")]
    Negative {
        /// The field.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// An interval does not hold its own prediction.
    #[error("`{field}` is {value}, outside of its interval {low}..{high}")]
    OutsideInterval {
        /// The field.
        field: &'static str,
        /// The prediction.
        value: f64,
        /// The lower end.
        low: f64,
        /// The upper end.
        high: f64,
    },
    /// Parts do not add up to their whole.
    #[error("the parts of `{field}` add up to {sum}, not to {whole}")]
    SumDiffers {
        /// The field.
        field: &'static str,
        /// The sum of the parts.
        sum: f64,
        /// What they should add up to.
        whole: f64,
    },
    /// A part is larger than its whole.
    #[error("`{part}` is {part_value}, larger than `{whole}`, which is {whole_value}")]
    PartExceedsWhole {
        /// The smaller field's name.
        part: &'static str,
        /// Its value.
        part_value: f64,
        /// The larger field's name.
        whole: &'static str,
        /// Its value.
        whole_value: f64,
    },
    /// The verdict does not agree with the rest.
    #[error("the verdict is `{}`, but {reason}", status.label())]
    VerdictDisagrees {
        /// The verdict.
        status: VerdictStatus,
        /// What contradicts it.
        reason: &'static str,
    },
}

/// How far sums of seconds may be off, relative to the whole: the rounding of many additions.
const TOLERANCE: f64 = 1e-6;

impl Report {
    /// Checks that every number is finite and not negative, intervals hold their predictions, parts add up to their
    /// wholes, and the verdict agrees with memory.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check(&self) -> Result<(), Inconsistency> {
        self.check_step()?;
        self.check_kernels()?;
        self.check_memory()
    }

    fn check_step(&self) -> Result<(), Inconsistency> {
        let Some(step) = &self.step_time else { return Ok(()) };
        interval("step_time", step.seconds, step.low, step.high)?;
        for part in &self.breakdown {
            amount("breakdown.seconds", part.seconds)?;
            amount("breakdown.kernel_seconds", part.kernel_seconds)?;
        }
        if !self.breakdown.is_empty() {
            sum("breakdown.seconds", self.breakdown.iter().map(|part| part.seconds), step.seconds)?;
        }
        if let Some(usage) = &self.device_use {
            amount("device_use.busy_seconds", usage.busy_seconds)?;
            amount("device_use.host_bound_seconds", usage.host_bound_seconds)?;
            let accounted = usage.busy_seconds + usage.host_bound_seconds;
            part("busy and host-bound seconds", accounted, "step_time.seconds", step.seconds)?;
        }
        if let Some(communication) = &self.communication {
            let (all, exposed) = (communication.seconds, communication.exposed_seconds);
            amount("communication.seconds", all)?;
            amount("communication.exposed_seconds", exposed)?;
            part("communication.exposed_seconds", exposed, "communication.seconds", all)?;
        }
        if let Some(path) = &self.critical_path {
            for owner in &path.owners {
                amount("critical_path.owners.seconds", owner.seconds)?;
            }
            sum("critical_path.owners.seconds", path.owners.iter().map(|owner| owner.seconds), path.seconds)?;
        }
        for rank in &self.ranks {
            for number in [rank.seconds, rank.busy_seconds, rank.host_bound_seconds, rank.bubble_seconds] {
                amount("ranks.seconds", number)?;
            }
            let parts = [rank.busy_seconds, rank.host_bound_seconds, rank.bubble_seconds];
            sum("ranks.seconds", parts.into_iter(), rank.seconds)?;
        }
        if let Some(flops) = &self.flops {
            amount("flops.mfu", flops.mfu)?;
            amount("flops.hfu", flops.hfu)?;
            part("flops.model_flops", flops.model_flops, "flops.hardware_flops", flops.hardware_flops)?;
        }
        Ok(())
    }

    fn check_kernels(&self) -> Result<(), Inconsistency> {
        for kernel in &self.kernels {
            interval("kernels.seconds", kernel.seconds, kernel.low, kernel.high)?;
            amount("kernels.share", kernel.share)?;
        }
        let methods = &self.coverage.methods;
        let covered: f64 = methods.iter().map(|row| row.seconds).sum();
        amount("coverage.methods.seconds", covered)?;
        if covered > 0.0 {
            sum("coverage.methods.share", methods.iter().map(|row| row.share), 1.0)?;
        }
        Ok(())
    }

    fn check_memory(&self) -> Result<(), Inconsistency> {
        let memory = &self.memory;
        let (allocated, reserved) = (memory.peak_allocated_bytes as f64, memory.peak_reserved_bytes as f64);
        part("memory.peak_allocated_bytes", allocated, "memory.peak_reserved_bytes", reserved)?;
        part("memory.peak_reserved_bytes", reserved, "memory.total_bytes", memory.total_bytes as f64)?;
        let status = self.verdict.status;
        if status == VerdictStatus::Fits && memory.total_bytes > memory.capacity_bytes {
            return Err(Inconsistency::VerdictDisagrees { status, reason: "memory exceeds the capacity" });
        }
        if (status == VerdictStatus::OutOfMemory) != self.verdict.out_of_memory.is_some() {
            let reason = "`verdict.out_of_memory` says otherwise";
            return Err(Inconsistency::VerdictDisagrees { status, reason });
        }
        Ok(())
    }
}

fn amount(field: &'static str, value: f64) -> Result<(), Inconsistency> {
    if !value.is_finite() {
        return Err(Inconsistency::NotFinite { field, value });
    }
    if value < 0.0 { Err(Inconsistency::Negative { field, value }) } else { Ok(()) }
}

fn interval(field: &'static str, value: f64, low: f64, high: f64) -> Result<(), Inconsistency> {
    for number in [value, low, high] {
        amount(field, number)?;
    }
    let holds = low <= value * (1.0 + TOLERANCE) && value <= high * (1.0 + TOLERANCE);
    if holds { Ok(()) } else { Err(Inconsistency::OutsideInterval { field, value, low, high }) }
}

fn sum(field: &'static str, parts: impl Iterator<Item = f64>, whole: f64) -> Result<(), Inconsistency> {
    let sum: f64 = parts.sum();
    let close = (sum - whole).abs() <= TOLERANCE * whole.abs().max(sum.abs());
    if close { Ok(()) } else { Err(Inconsistency::SumDiffers { field, sum, whole }) }
}

fn part(
    part: &'static str,
    part_value: f64,
    whole: &'static str,
    whole_value: f64,
) -> Result<(), Inconsistency> {
    if part_value <= whole_value * (1.0 + TOLERANCE) {
        return Ok(());
    }
    Err(Inconsistency::PartExceedsWhole { part, part_value, whole, whole_value })
}
