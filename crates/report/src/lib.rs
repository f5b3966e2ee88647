//! The report a person reads, drawn from [`trompe_results`] and nothing else.
//!
//! What it is: [`text()`] for a terminal, and [`html`], one self-contained page (no network, no fonts, no library) with
//! charts, the timeline of a step, and every table of the report; [`kernel_run`], the same two for one simulated kernel.
//!
//! What it is not: it predicts nothing, reads no file, knows no terminal (the caller says how wide it is and whether
//! it shows colours), and prints nothing.
//!
//! Every text in a report may come from a stranger's program (script and kernel names, notes with file names). In
//! terminal text control characters are replaced; the page shows texts only as text nodes, and its data block cannot
//! be closed from inside.

mod clean;
pub mod kernel_run;
mod page;
mod quantity;
mod study;
mod text;

pub use page::html;
pub use study::{Table, study_html, study_table, study_text};
pub use text::{Style, text};
