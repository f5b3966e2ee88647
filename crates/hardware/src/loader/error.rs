//! What can be wrong with a name or a sheet.

use std::path::PathBuf;

/// Why no sheet can be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HardwareError {
    /// No built-in sheet has this name.
    #[error("no device, node or cluster is called `{name}`{}; known: {}; a path to a `.toml` file works too",
        nearest.as_ref().map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default(), known.join(", "))]
    UnknownName {
        /// What was asked for.
        name: String,
        /// The nearest known name, when one is near.
        nearest: Option<String>,
        /// All names.
        known: Vec<String>,
    },
    /// The name exists but is another kind of sheet.
    #[error("`{name}` is a {found} but a {expected} is needed here")]
    Kind {
        /// The name.
        name: String,
        /// Its kind.
        found: String,
        /// The kind that is needed.
        expected: &'static str,
    },
    /// A count after the colon is not a positive number.
    #[error(
        "`{count}` in `{spec}` is no count; write a positive number, as in `dgx-h100:4` or `h100-sxm:8x4`"
    )]
    Count {
        /// The whole specification.
        spec: String,
        /// The part that is wrong.
        count: String,
    },
    /// More devices than the node has places.
    #[error(
        "{asked} devices do not fit in one `{node}` node, which holds {holds}; write `{device}:{holds}x{nodes}` for {nodes} nodes"
    )]
    TooManyDevices {
        /// How many were asked for.
        asked: u32,
        /// The node.
        node: String,
        /// How many it holds.
        holds: u32,
        /// The device.
        device: String,
        /// How many nodes would hold them.
        nodes: u32,
    },
    /// A file cannot be read.
    #[error("cannot read the sheet `{}`: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Not TOML.
    #[error("`{sheet}` is no valid TOML: {error}")]
    Syntax {
        /// The sheet.
        sheet: String,
        /// Why.
        error: Box<toml::de::Error>,
    },
    /// A number without a source.
    #[error(
        "`{path}` in `{sheet}` has no source; write `{path} = {{ value = …, unit = \"…\", source = \"…\" }}`"
    )]
    Unsourced {
        /// The sheet.
        sheet: String,
        /// The field.
        path: String,
    },
    /// A source key that the sheet does not explain.
    #[error("`{path}` in `{sheet}` cites `{cited}`, which `[sources]` does not explain")]
    UnknownSource {
        /// The sheet.
        sheet: String,
        /// The field.
        path: String,
        /// The source it cites.
        cited: String,
    },
    /// A field that no sheet of this kind has.
    #[error("`{path}` in `{sheet}` is not a field of a {kind} sheet; its numbers are: {known}")]
    UnknownField {
        /// The sheet.
        sheet: String,
        /// The field.
        path: String,
        /// The kind of sheet.
        kind: &'static str,
        /// All fields.
        known: String,
    },
    /// A unit that does not measure this field.
    #[error("`{path}` in `{sheet}` is given in `{unit}` but is measured in one of: {expected}")]
    Unit {
        /// The sheet.
        sheet: String,
        /// The field.
        path: String,
        /// The unit that was written.
        unit: String,
        /// The units that would do.
        expected: String,
    },
    /// A value out of its range or of another type.
    #[error("`{path}` in `{sheet}` is `{value}`, but must be {expected}")]
    Value {
        /// The sheet.
        sheet: String,
        /// The field.
        path: String,
        /// What was written.
        value: String,
        /// What it must be.
        expected: &'static str,
    },
    /// A field is missing.
    #[error("the sheet `{sheet}` is not complete: {message}; add it, or inherit it with `base = \"…\"`")]
    Incomplete {
        /// The sheet.
        sheet: String,
        /// Which field.
        message: String,
    },
    /// Sheets that inherit from each other in a circle.
    #[error("`{sheet}` inherits from itself through `base`")]
    Circle {
        /// One sheet of the circle.
        sheet: String,
    },
}
