//! `cargo xtask coverage`: which functions of the CUDA libraries are there, and what a call of each does.
//!
//! The page comes from the API tables, from which the exported functions come as well, so it is never out of date.

use std::fmt::Write;

use trompe_cuda_abi::tables::LIBRARIES;
use trompe_cuda_abi::{Class, Row};

/// Prints the page as Markdown.
pub(crate) fn run() -> anyhow::Result<()> {
    print!("{}", page()?);
    Ok(())
}

/// Name, meaning, and which rows belong.
type Answer = (&'static str, &'static str, fn(&Row) -> bool);

const CLASSES: [Answer; 3] = [
    ("emulated", "does what its documentation says", |row| {
        matches!(row.class, Class::Recorded | Class::Quiet | Class::Data)
    }),
    ("accepted", "succeeds, sets its out-parameters, has no effect", |row| row.class == Class::Accepted),
    ("unsupported", "answers the library's \"not supported\" code and says so once", |row| {
        row.class == Class::Unsupported
    }),
];

fn page() -> Result<String, std::fmt::Error> {
    let mut text = String::from("# CUDA functions\n\n");
    for (class, meaning, _) in CLASSES {
        writeln!(text, "- *{class}*: {meaning}")?;
    }
    writeln!(text, "\n| library | file | emulated | accepted | unsupported |\n|---|---|---:|---:|---:|")?;
    for library in LIBRARIES {
        let counts = CLASSES.map(|(_, _, is_it)| library.rows.iter().filter(|row| is_it(row)).count());
        let [emulated, accepted, unsupported] = counts;
        let (name, soname) = (library.name, library.soname);
        writeln!(text, "| {name} | `{soname}` | {emulated} | {accepted} | {unsupported} |")?;
    }
    for library in LIBRARIES {
        writeln!(text, "\n## {}", library.name)?;
        for (class, _, is_it) in CLASSES {
            let mut symbols: Vec<&str> =
                library.rows.iter().filter(|row| is_it(row)).map(|row| row.symbol).collect();
            symbols.sort_unstable();
            if !symbols.is_empty() {
                writeln!(text, "\n{class}: {}", symbols.join(", "))?;
            }
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_function_is_on_the_page_once() {
        let page = super::page().expect("text can be written");
        let mut words = std::collections::BTreeMap::new();
        for word in page.split([' ', '\n', ',']) {
            *words.entry(word).or_insert(0) += 1;
        }
        for row in trompe_cuda_abi::tables::LIBRARIES.iter().flat_map(|library| library.rows) {
            assert_eq!(words.get(row.symbol), Some(&1), "{}", row.symbol);
        }
    }
}
