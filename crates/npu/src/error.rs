//! What can go wrong: while a program is read ([`LoadError`]), resolved ([`ProgramError`]) and run ([`RunError`]).

use std::fmt;

use thiserror::Error;

/// A file cannot be read as what it should be.
#[derive(Debug, Error)]
pub enum LoadError {
    /// Not JSON, cut short, or not of the schema.
    #[error("the file is not valid: {0}; docs/npu has the schemas of programs and jobs")]
    Json(String),
    /// Some other file.
    #[error("the file's `format` is `{found}`, not `{expected}`; is it the right file?")]
    Format {
        /// What the file says.
        found: String,
        /// What it should say.
        expected: &'static str,
    },
    /// A file of another version.
    #[error("the file has version {found}, this build reads version {expected}; build the program again")]
    Version {
        /// What the file says.
        found: u64,
        /// What it should say.
        expected: u32,
    },
    /// A job that contradicts itself.
    #[error("the job makes no sense: {0}")]
    Job(String),
    /// No such device.
    #[error("no device is called `{name}`; known are {known}, or give the path of a TOML file")]
    UnknownDevice {
        /// What was asked for.
        name: String,
        /// All names.
        known: String,
    },
    /// No such profile.
    #[error(
        "no profile is called `{name}`; known are `reference` and `calibrated`, or give the path of a TOML file"
    )]
    UnknownProfile {
        /// What was asked for.
        name: String,
    },
    /// A TOML sheet that cannot be read.
    #[error("the sheet `{name}` is not valid: {problem}")]
    Sheet {
        /// Which sheet.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// A `.npy` file that cannot be read or written.
    #[error("tensor `{tensor}`: {problem}")]
    Array {
        /// Whose data it was to be.
        tensor: String,
        /// What is wrong and what to do.
        problem: String,
    },
}

/// Where in a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// Lane or micro program.
    pub list: String,
    /// Index in its list.
    pub index: usize,
    /// Name of the instruction.
    pub op: String,
    /// Where the program says that it comes from.
    pub at: Option<String>,
}

impl fmt::Display for Site {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}[{}] `{}`", self.list, self.index, self.op)?;
        self.at.as_ref().map_or(Ok(()), |at| write!(out, " ({at})"))
    }
}

/// A program that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// An instruction is wrong.
    #[error("{site}: {problem}")]
    Instruction {
        /// Which.
        site: Box<Site>,
        /// What is wrong and what to do.
        problem: String,
    },
    /// One operand of an instruction is wrong.
    #[error("{site}, operand `{operand}`: {problem}")]
    Operand {
        /// Which instruction.
        site: Box<Site>,
        /// Which operand.
        operand: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A tensor is wrong.
    #[error("tensor `{tensor}`: {problem}")]
    Tensor {
        /// Which.
        tensor: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A memory is too small.
    #[error(
        "tensor `{tensor}` exceeds {bank}: {request} bytes at {used} of {capacity}; make tiles smaller or place tensors \
         that do not live together at one offset"
    )]
    Capacity {
        /// The tensor that did not fit.
        tensor: String,
        /// The memory.
        bank: &'static str,
        /// Bytes asked for.
        request: u64,
        /// Offset at which it would begin.
        used: u64,
        /// Bytes the memory has.
        capacity: u64,
    },
    /// Something about the whole program.
    #[error("{0}")]
    Whole(String),
}

/// A run that ended early.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    /// The program cannot run on the device.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// An input is missing or of the wrong type or size.
    #[error("input `{tensor}`: {problem}")]
    Input {
        /// Which.
        tensor: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// An instruction failed.
    #[error("core {core}, cycle {cycle}, {site}: {fault}")]
    Instruction {
        /// The core.
        core: u32,
        /// The cycle.
        cycle: u64,
        /// The instruction.
        site: Box<Site>,
        /// What happened.
        fault: Fault,
    },
    /// Work is left and nothing can run.
    #[error("deadlock: nothing can run and {} actors wait\n{}", waits.len(), list(waits))]
    Deadlock {
        /// Every blocked actor.
        waits: Vec<BlockedActor>,
    },
    /// Two cores touch the same bytes and nothing orders them.
    #[error(
        "cores {} and {} both touch byte {offset} of `{tensor}`, in {} and {}, and nothing orders them; use a collective \
         (`allcube`, `allvec`), atomics, or other bytes", cores[0], cores[1], sites[0], sites[1]
    )]
    Race {
        /// The tensor.
        tensor: String,
        /// First byte that both touch.
        offset: u64,
        /// The cores.
        cores: [u32; 2],
        /// Their instructions.
        sites: Box<[Site; 2]>,
    },
    /// A flag was set and never taken.
    #[error("after the last instruction {0}; every set needs its wait")]
    Unconsumed(String),
}

fn list(waits: &[BlockedActor]) -> String {
    waits.iter().map(|wait| format!("  {wait}")).collect::<Vec<_>>().join("\n")
}

/// One edge of the wait-for graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedActor {
    /// `core0.cube.MTE2`.
    pub actor: String,
    /// The instruction that waits.
    pub site: Site,
    /// The event, flag or phase, with its counts.
    pub waits_for: String,
    /// Who could have set it.
    pub setters: Vec<String>,
}

impl fmt::Display for BlockedActor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let setters = if self.setters.is_empty() { "nothing".to_owned() } else { self.setters.join(", ") };
        write!(
            out,
            "{} at {} waits for {}; it could be set by {setters}",
            self.actor, self.site, self.waits_for
        )
    }
}

/// Two accesses that no event orders.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{this} of byte {offset} of {space} (`{tensor}`) on {here} is not ordered against the {other} by {other_site} on \
     {there}; add an event from {there} to {here}"
)]
pub struct Hazard {
    /// The tensor.
    pub tensor: String,
    /// The memory.
    pub space: &'static str,
    /// First byte that both touch.
    pub offset: u64,
    /// `read` or `write`: what the failing instruction does.
    pub this: &'static str,
    /// What the other one did.
    pub other: &'static str,
    /// Pipe of the failing instruction.
    pub here: String,
    /// Pipe of the other one.
    pub there: String,
    /// The other instruction.
    pub other_site: Site,
}

/// Why an instruction failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
pub enum Fault {
    #[error("operand `{operand}` is {problem}")]
    Operand { operand: String, problem: String },
    #[error("operand `{operand}` needs bytes {start}..{end} of `{tensor}`, which ends at {limit}")]
    Range { operand: String, tensor: String, start: i64, end: i64, limit: u64 },
    #[error("operand `{operand}` begins at byte {offset}, which is not a multiple of {alignment}")]
    Alignment { operand: String, offset: u64, alignment: u64 },
    #[error("{quantity} is {value}; the device takes at most {limit}")]
    Limit { quantity: String, value: i64, limit: u64 },
    #[error("element types do not fit: {0}")]
    Types(String),
    #[error(
        "reads {bytes} bytes of `{tensor}` at byte {offset} of {space} that nothing has written; initialise them first"
    )]
    Poison { tensor: String, space: &'static str, offset: u64, bytes: u32 },
    #[error(transparent)]
    Hazard(Box<Hazard>),
    #[error("sets {what}, which is already set; wait for it first")]
    DoubleSet { what: String },
    #[error("{what} has {tokens} tokens outstanding; the device holds {limit}")]
    Tokens { what: String, tokens: usize, limit: usize },
    #[error("division by zero")]
    DivisionByZero,
    #[error("a loop's step is zero")]
    ZeroStep,
    #[error("index {index} is outside `{list}` of {length}")]
    Index { list: String, index: i64, length: usize },
    #[error("more than {budget} instructions ran; raise the budget if the kernel is meant to be this long")]
    Budget { budget: u64 },
    #[error(
        "more than {limit} tasks wait on one core's pipes; let the control lane wait (`barrier`) now and then"
    )]
    Backlog { limit: usize },
    #[error("{0}")]
    Other(String),
}
