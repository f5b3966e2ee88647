//! C strings that the caller may keep: each distinct text is made once and lives as long as the process.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

/// The address of `text` with a terminating zero.
pub(crate) fn keep(text: &str) -> u64 {
    static KEPT: Mutex<BTreeMap<String, CString>> = Mutex::new(BTreeMap::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = kept.get(text) {
        return found.as_ptr() as u64;
    }
    let made = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // The heap block of a C string does not move with the map's entry.
    let address = made.as_ptr() as u64;
    kept.insert(text.to_owned(), made);
    address
}
