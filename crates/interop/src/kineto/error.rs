//! Why a file is no readable profiler trace.

use std::path::{Path, PathBuf};

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum KinetoError {
    /// The file itself.
    #[error("cannot be read: {0}")]
    Io(#[source] std::io::Error),
    /// The text or its compression ends early.
    #[error(
        "ends after {events} complete events (line {line}): the file is cut short; copy it again, or let the profiler \
         finish (`prof.stop()`, or leave its `with` block) before the job ends"
    )]
    Truncated {
        /// Events read before.
        events: u64,
        /// Line where it ends.
        line: usize,
    },
    /// The compression is damaged.
    #[error("is damaged gzip after {events} complete events: {detail}; copy it again in binary mode")]
    Compression {
        /// Events read before.
        events: u64,
        /// What the decoder says.
        detail: String,
    },
    /// Not JSON, or a value of the wrong form.
    #[error(
        "line {line}, column {column}, after {events} complete events: {detail}; is it a trace that `torch.profiler` \
         exported (`export_chrome_trace`)?"
    )]
    Malformed {
        /// Events read before.
        events: u64,
        /// Line.
        line: usize,
        /// Column.
        column: usize,
        /// What is wrong.
        detail: String,
    },
    /// JSON of another kind.
    #[error("has no `traceEvents`: {hint}")]
    Other {
        /// What it seems to be, and what to do.
        hint: &'static str,
    },
    /// A trace without anything of use.
    #[error(
        "has {events} events but neither operators nor device work: was it recorded with `activities=[CPU, CUDA]`?"
    )]
    Empty {
        /// Events of other kinds.
        events: u64,
    },
    /// Any of these, in a file.
    #[error("`{}` {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<KinetoError>,
    },
}

impl KinetoError {
    pub(super) fn in_file(self, path: &Path) -> Self {
        Self::File { path: path.to_owned(), source: Box::new(self) }
    }

    /// What the JSON reader met after `events` events.
    pub(super) fn from_json(error: &serde_json::Error, events: u64) -> Self {
        use serde_json::error::Category;
        let (line, column) = (error.line(), error.column());
        match error.classify() {
            Category::Eof => Self::Truncated { events, line },
            Category::Io if error.io_error_kind() == Some(std::io::ErrorKind::UnexpectedEof) => {
                Self::Truncated { events, line }
            }
            Category::Io => Self::Compression { events, detail: error.to_string() },
            Category::Syntax | Category::Data => {
                let text = error.to_string();
                // The position is told already.
                let detail = text.split(" at line ").next().unwrap_or_default().to_owned();
                Self::Malformed { events, line, column, detail }
            }
        }
    }
}
