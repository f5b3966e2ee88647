//! Forks: locks are held across them, and a child begins a record file of its own.

#![expect(unsafe_code, reason = "registers handlers with the C library")]

use std::cell::RefCell;
use std::sync::Once;

use crate::process::Held;
use crate::sink;

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Watches for forks from now on.
pub(crate) fn watch() {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        // SAFETY: the handlers are functions of this library, which is never unloaded.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    });
}

extern "C" fn before() {
    let held = Held::take();
    let _ = HELD.try_with(|place| place.replace(Some(held)));
}

extern "C" fn in_parent() {
    let _ = HELD.try_with(RefCell::take);
}

extern "C" fn in_child() {
    let _ = HELD.try_with(RefCell::take);
    sink::forked_child();
}
