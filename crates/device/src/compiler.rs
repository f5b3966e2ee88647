//! NVRTC: programs that are "compiled" to an image without code.
//!
//! Nothing is compiled: the image is text that names the kernels whose parameters the source tells. A module loader
//! that meets it takes kernels by whatever name they are asked for.

mod signature;
mod structure;

use std::collections::BTreeMap;
use std::fmt::Write;

pub use signature::signatures;

use crate::handle::{HandleTable, Kind, NotLive};

/// How every image begins.
const HEAD: &str = "trompe: compiled at run time, without code for any device\n";

/// The kernels that an image of ours names, with the sizes of their leading parameters in bytes; `None` when `text` is
/// no such image.
pub fn kernels(text: &str) -> Option<impl Iterator<Item = (&str, Vec<u32>)>> {
    let lines = text.strip_prefix(HEAD)?.lines();
    Some(lines.filter_map(|line| {
        let (sizes, name) = line.split_once(' ')?;
        let sizes: Option<_> = sizes.split(',').filter(|s| !s.is_empty()).map(|s| s.parse().ok()).collect();
        Some((name, sizes?))
    }))
}

/// A program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Its text.
    pub source: String,
    /// The texts of the headers that came with it.
    pub headers: Vec<String>,
    /// Its name, often empty.
    pub name: String,
    /// Name expressions and their lowered names.
    names: BTreeMap<String, String>,
    /// What it was compiled to.
    pub compiled: Option<String>,
}

impl Program {
    /// Asks for the lowered name of an expression before compilation.
    pub fn add_name(&mut self, expression: &str) {
        let lowered = lowered(expression);
        self.names.insert(expression.to_owned(), lowered);
    }

    /// The image, without the terminating zero: its kernels by the names under which they are asked for.
    #[must_use]
    pub fn image(&self) -> String {
        let known = signatures(&self.source, &self.headers);
        // A kernel without a name expression goes by its own name.
        let named = self.names.values().map(|name| (name.as_str(), base(name)));
        let mut image = HEAD.to_owned();
        for (name, base) in named.chain(known.keys().map(|name| (name.as_str(), name.as_str()))) {
            if let Some(sizes) = known.get(base) {
                let sizes: Vec<_> = sizes.iter().map(u32::to_string).collect();
                let _ = writeln!(image, "{} {name}", sizes.join(","));
            }
        }
        image
    }

    /// The lowered name of an expression that was added.
    #[must_use]
    pub fn lowered_name(&self, expression: &str) -> Option<&str> {
        self.names.get(expression).map(String::as_str)
    }
}

/// The name under which the kernel of an expression is asked for: the expression on one line. A real compiler mangles
/// it together with the types of its parameters; nobody but the module loader reads it, and so a trace shows the name
/// that the program wrote.
fn lowered(expression: &str) -> String {
    expression.trim().trim_start_matches('&').split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A name without template arguments and scopes.
fn base(name: &str) -> &str {
    let name = name.split('<').next().unwrap_or(name).trim_end();
    name.rsplit("::").next().unwrap_or(name)
}

/// Programs by handle.
#[derive(Debug)]
pub struct Compilers {
    table: HandleTable<Program>,
}

impl Default for Compilers {
    fn default() -> Self {
        Self::new()
    }
}

impl Compilers {
    /// No programs yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { table: HandleTable::new(Kind::Compiler) }
    }

    /// Creates a program.
    pub fn create(&mut self, source: String, headers: Vec<String>, name: String) -> u64 {
        self.table.insert(Program { source, headers, name, ..Program::default() }).0
    }

    /// A program.
    ///
    /// # Errors
    /// When it is not live.
    pub fn get(&mut self, handle: u64) -> Result<&mut Program, NotLive> {
        self.table.get_mut(handle)
    }

    /// Destroys a program.
    ///
    /// # Errors
    /// When it is not live.
    pub fn destroy(&mut self, handle: u64) -> Result<(), NotLive> {
        self.table.remove(handle).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lowered_to_what_was_written() {
        let mut compilers = Compilers::new();
        let handle = compilers.create("source".to_owned(), Vec::new(), String::new());
        let program = compilers.get(handle).unwrap();
        program.add_name("&at::f<float, 4>");
        assert_eq!(program.lowered_name("&at::f<float, 4>"), Some("at::f<float, 4>"));
        assert_eq!(program.lowered_name("g"), None);
        compilers.destroy(handle).unwrap();
        assert!(compilers.get(handle).is_err());
    }

    #[test]
    fn images_tell_the_parameters() {
        let source = "template <class T> __global__ void f(T *x, int n) {} extern \"C\" __global__ void g(float *x) {}";
        let mut program = Program { source: source.to_owned(), ..Program::default() };
        program.add_name("at::f<float,\n 4>");
        let image = program.image();
        let read: Vec<_> = kernels(&image).unwrap().collect();
        let expected = [("at::f<float, 4>", vec![8, 4]), ("f", vec![8, 4]), ("g", vec![8])];
        assert_eq!(read, expected);
        assert!(kernels(".version 8.0").is_none());
    }
}
