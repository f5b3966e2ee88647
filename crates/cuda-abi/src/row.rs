//! What one line of an API table says.

/// Number of an API function; stable within a build, and named in each trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiId(pub u16);

impl ApiId {
    /// The id as an index into a table over all functions.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a call of the function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Emulated by a handler and recorded with its entry and exit time.
    Recorded,
    /// Emulated by a handler; called so often that calls are only counted.
    Quiet,
    /// Answers success after its out-parameter actions; recorded by name.
    Accepted,
    /// Answers the library's "not supported" code and says so once.
    Unsupported,
    /// A data object, not a function.
    Data,
}

/// What an accepted function does to one of its out-parameters (null pointers are left alone).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Writes a zero of 8 bytes (`size_t`, `int64_t`, pointer).
    ZeroUsize,
    /// Writes a zero of 4 bytes.
    ZeroI32,
    /// Writes a one of 4 bytes.
    OneI32,
    /// Writes a fresh opaque handle.
    Handle,
}

/// One row: a symbol of a library and what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Exported name.
    pub symbol: &'static str,
    /// What a call does.
    pub class: Class,
    /// Out-parameter actions of an accepted function: index among the integer and pointer arguments, and action.
    pub actions: &'static [(usize, Action)],
}

/// One library: its file and its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Library {
    /// Short name, as used in trace and coverage (`cudart`).
    pub name: &'static str,
    /// Shared-object name that a program needs.
    pub soname: &'static str,
    /// Symbol-version node of its symbols, if it has one.
    pub version_node: Option<&'static str>,
    /// Id of the first row.
    pub base: u16,
    /// All rows, in table order.
    pub rows: &'static [Row],
}
