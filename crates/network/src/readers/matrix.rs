//! The matrix that `nvidia-smi topo -m` prints.
//!
//! Rows and columns are devices (`GPU0`) and adapters (`NIC0`, or a name such as `mlx5_0`). `NV#` is a bond of # NVLink
//! links; `PIX`, `PXB`, `PHB`, `NODE`, `SYS` are ways over PCIe. `nvidia-smi` prints the same `NV#` whether links go from
//! device to device or through switches, but where every pair has the same number and a device would otherwise need more
//! links than NVLink generations have (18), they must be shared, which only switches do.

use super::NodeLinks;

/// Why a text is no such matrix.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatrixError {
    /// No line with columns.
    #[error("there is no line of column names with `GPU0`; give the whole output of `nvidia-smi topo -m`")]
    NoHeader,
    /// A row that is too short.
    #[error("row `{row}` has {found} entries for {expected} columns; give the output unwrapped")]
    Row {
        /// Its name.
        row: String,
        /// Entries that it has.
        found: usize,
        /// Columns.
        expected: usize,
    },
    /// Fewer rows of devices than columns.
    #[error("{found} rows for {expected} devices; give the whole output of `nvidia-smi topo -m`")]
    Rows {
        /// Rows of devices.
        found: usize,
        /// Columns of devices.
        expected: usize,
    },
    /// An entry that is not known.
    #[error("row `{row}` has `{entry}`, which is neither `X`, `NV#`, `PIX`, `PXB`, `PHB`, `NODE` nor `SYS`")]
    Entry {
        /// Its row.
        row: String,
        /// The entry.
        entry: String,
    },
}

/// The most NVLink links that one device has (Hopper and Blackwell).
const MOST_LINKS: u32 = 18;

/// Reads the output of `nvidia-smi topo -m`.
///
/// # Errors
/// When the text has no such matrix.
pub fn read_matrix(text: &str) -> Result<NodeLinks, MatrixError> {
    let text = without_escapes(text);
    let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let header = lines
        .by_ref()
        .find(|words| words.first().is_some_and(|word| is_numbered(word, "GPU")))
        .ok_or(MatrixError::NoHeader)?;
    let devices = header.iter().take_while(|word| is_numbered(word, "GPU")).count();
    // What follows the devices are adapters, until the columns in words ("CPU Affinity", …).
    let adapters = header[devices..].iter().take_while(|word| is_adapter(word)).count();
    let mut links = Vec::new();
    for words in lines {
        let Some(name) = words.first().filter(|word| is_numbered(word, "GPU")) else { continue };
        let entries = &words[1..];
        if entries.len() < devices {
            let row = (*name).to_owned();
            return Err(MatrixError::Row { row, found: entries.len(), expected: devices });
        }
        let row: Result<Vec<u32>, MatrixError> =
            entries[..devices].iter().map(|entry| links_of(name, entry)).collect();
        links.push(row?);
        if links.len() == devices {
            break;
        }
    }
    if links.len() < devices {
        return Err(MatrixError::Rows { found: links.len(), expected: devices });
    }
    let most = links.iter().map(|row| row.iter().sum::<u32>()).max().unwrap_or(0);
    Ok(NodeLinks {
        devices: devices as u32,
        links,
        switched: most > MOST_LINKS,
        adapters: adapters as u32,
        adapter_gigabits: None,
    })
}

fn links_of(row: &str, entry: &str) -> Result<u32, MatrixError> {
    let unknown = || MatrixError::Entry { row: row.to_owned(), entry: entry.to_owned() };
    match entry {
        "X" | "PIX" | "PXB" | "PHB" | "NODE" | "SYS" | "SOC" => Ok(0),
        _ => entry.strip_prefix("NV").and_then(|count| count.parse().ok()).ok_or_else(unknown),
    }
}

fn is_numbered(word: &str, prefix: &str) -> bool {
    word.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

fn is_adapter(word: &str) -> bool {
    is_numbered(word, "NIC") || word.rsplit_once('_').is_some_and(|(_, n)| n.parse::<u32>().is_ok())
}

/// The text without the escape sequences that underline the header on a terminal.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\u{1b}' {
            plain.push(character);
        } else if characters.next() == Some('[') {
            // Parameters, then one letter.
            characters.by_ref().find(char::is_ascii_alphabetic);
        }
    }
    plain
}
