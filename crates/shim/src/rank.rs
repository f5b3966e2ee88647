//! Ranks that begin as forks of a prepared process.
//!
//! `trompe run` has one Python process import the framework and forks the ranks from it. Nothing of the library's state may
//! depend on that process's environment then: the prepared process asks here whether it can still be forked, and each
//! child begins anew, with the variables that were set for it.

#![expect(unsafe_code, unreachable_pub, reason = "exports C functions under their own names")]

use std::panic::catch_unwind;

use crate::common::function;
use crate::{environment, fork, libs, process, sink};

/// Prepares this process for being forked into ranks. 0 when that can be done; 1 when a device is already in use.
#[unsafe(no_mangle)]
pub extern "C" fn trompe_prepare_ranks() -> i32 {
    let prepared = catch_unwind(|| {
        fork::watch();
        function::prepare();
        process::is_in_use()
    });
    i32::from(prepared.unwrap_or(true))
}

/// Begins anew in a child of a prepared process, after its environment was set.
#[unsafe(no_mangle)]
pub extern "C" fn trompe_begin_rank() {
    let _ = catch_unwind(|| {
        environment::forget();
        sink::begin_again();
        process::renew();
        libs::renew();
    });
}
