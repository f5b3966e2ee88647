//! Streaming-multiprocessor architectures and which of several to take for a given device.

use std::fmt;

/// An architecture number as in `sm_90`: ten times the major compute capability plus the minor one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SmArch(pub u32);

impl SmArch {
    /// Major compute capability: 9 for `sm_90`.
    #[must_use]
    pub const fn major(self) -> u32 {
        self.0 / 10
    }

    /// Minor compute capability: 6 for `sm_86`.
    #[must_use]
    pub const fn minor(self) -> u32 {
        self.0 % 10
    }

    /// The best of `candidates` for a device of this architecture.
    ///
    /// CUDA runs a cubin on a device of the same major architecture and an equal or higher minor one. So the
    /// choice is the highest such candidate. When there is none, a real device could not run the library, but
    /// the layout of kernel parameters still is what the host code was compiled for; then the highest lower
    /// candidate is taken, or else the lowest higher one, and [`Choice::Foreign`] says so.
    #[must_use]
    pub fn choose(self, candidates: impl IntoIterator<Item = SmArch> + Clone) -> Option<Choice> {
        let lower = candidates.clone().into_iter().filter(|arch| *arch <= self).max();
        match lower {
            Some(arch) if arch.major() == self.major() => Some(Choice::Native(arch)),
            Some(arch) => Some(Choice::Foreign(arch)),
            None => candidates.into_iter().min().map(Choice::Foreign),
        }
    }
}

impl fmt::Display for SmArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.0)
    }
}

/// What [`SmArch::choose`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Code that the device can run.
    Native(SmArch),
    /// Code of another major architecture: good for parameter layouts, not for register counts.
    Foreign(SmArch),
}

impl Choice {
    /// The architecture chosen.
    #[must_use]
    pub const fn arch(self) -> SmArch {
        match self {
            Self::Native(arch) | Self::Foreign(arch) => arch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(device: u32, have: &[u32], expect: Option<Choice>) {
        assert_eq!(SmArch(device).choose(have.iter().map(|&arch| SmArch(arch))), expect);
    }

    #[test]
    fn takes_the_nearest_lower_of_the_same_major() {
        const WHEEL: &[u32] = &[75, 80, 86, 90, 100, 120];
        check(90, WHEEL, Some(Choice::Native(SmArch(90))));
        check(89, WHEEL, Some(Choice::Native(SmArch(86))));
        check(80, WHEEL, Some(Choice::Native(SmArch(80))));
        check(103, WHEEL, Some(Choice::Native(SmArch(100))));
        check(121, WHEEL, Some(Choice::Native(SmArch(120))));
    }

    #[test]
    fn falls_back_to_another_major() {
        check(70, &[75, 80], Some(Choice::Foreign(SmArch(75))));
        check(90, &[80, 100], Some(Choice::Foreign(SmArch(80))));
        check(90, &[], None);
    }
}
