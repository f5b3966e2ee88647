//! NVRTC: programs that are "compiled" to an image without code.
//!
//! Nothing is compiled: the image names no kernel, and a module loader that meets it takes kernels by whatever name
//! they are asked for.

use std::collections::BTreeMap;

use crate::handle::{HandleTable, Kind, NotLive};

/// The image of every program: text that says what it is, with a terminating zero.
pub const IMAGE: &[u8] = b"trompe: compiled at run time, without code for any device\0";

/// A program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Its text.
    pub source: String,
    /// Its name, often empty.
    pub name: String,
    /// Name expressions and their lowered names.
    names: BTreeMap<String, String>,
    /// Whether it was compiled.
    pub compiled: bool,
}

impl Program {
    /// Asks for the lowered name of an expression before compilation.
    pub fn add_name(&mut self, expression: &str) {
        let lowered = lowered(expression);
        self.names.insert(expression.to_owned(), lowered);
    }

    /// The lowered name of an expression that was added.
    #[must_use]
    pub fn lowered_name(&self, expression: &str) -> Option<&str> {
        self.names.get(expression).map(String::as_str)
    }
}

/// A symbol-like name for an expression: what is no letter or digit becomes an underscore. A real compiler mangles the name,
/// which takes the types of its parameters; nobody but the module loader reads it.
fn lowered(expression: &str) -> String {
    let expression = expression.trim().trim_start_matches('&');
    expression.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
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
    pub fn create(&mut self, source: String, name: String) -> u64 {
        self.table.insert(Program { source, name, ..Program::default() }).0
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
    fn names_are_lowered_to_symbols() {
        let mut compilers = Compilers::new();
        let handle = compilers.create("source".to_owned(), String::new());
        let program = compilers.get(handle).unwrap();
        program.add_name("&at::f<float, 4>");
        assert_eq!(program.lowered_name("&at::f<float, 4>"), Some("at__f_float__4_"));
        assert_eq!(program.lowered_name("g"), None);
        compilers.destroy(handle).unwrap();
        assert!(compilers.get(handle).is_err());
    }
}
