//! The orderly end of the process.

#![expect(unsafe_code, reason = "places a function in a section that the loader runs at exit")]

use crate::sink;

/// Runs after the destructors of all libraries that need this one, so their last calls are still recorded.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

extern "C" fn at_exit() {
    let _ = std::panic::catch_unwind(sink::end);
}
