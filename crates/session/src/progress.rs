//! How a long operation tells its caller where it is. The session never prints.

/// Parts of a run that may take a noticeable time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Looking at the Python environment of the job.
    Checking,
    /// Decoding the framework's device code (once per installation of it).
    KernelDatabase,
    /// The user's command runs and owns the terminal.
    Running,
    /// Merging the worker traces.
    Collating,
    /// Pricing operations and simulating the job.
    Simulating,
    /// Writing the report's files.
    Writing,
}

impl Stage {
    /// What is being done, for people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Checking => "checking the Python environment",
            Self::KernelDatabase => "reading the kernels of this PyTorch (once per installation)",
            Self::Running => "running the command",
            Self::Collating => "reading the trace",
            Self::Simulating => "simulating",
            Self::Writing => "writing the report",
        }
    }
}

/// Where progress goes.
pub trait Progress {
    /// A stage begins; the stage before it is over.
    fn stage(&mut self, stage: Stage);
    /// Something that the user should know at once.
    fn note(&mut self, text: &str);
}

/// Nobody listens.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn stage(&mut self, _: Stage) {}
    fn note(&mut self, _: &str) {}
}
