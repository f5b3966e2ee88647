//! What the framework side asks and says about the content of device memory.
//!
//! The observer executes tiny operators on the host and writes their results where the device's would lie; here it
//! learns which inputs mean something and notes what it wrote. Contents are numbered as in
//! [`Content::from_number`].

#![expect(unsafe_code, reason = "exports C functions")]
#![expect(unreachable_pub, reason = "exported symbols")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use trompe_device::memory::Content;

use crate::process::machine;

/// What [`trompe_content`] answers when nothing may be executed now, because a graph is being captured: its operations
/// run later.
const CAPTURING: u8 = 255;

/// What [`trompe_content_written`] is told of values that were computed as if unknown ones were 0: as unknown as those.
const SUPPOSED: u8 = 3;

/// What `bytes` of device memory hold: 0 unknown, 1 chosen by a policy, 2 what a real device would hold; 255 while a
/// graph is captured. Memory that is no device's always is what the program made it.
#[unsafe(no_mangle)]
pub extern "C" fn trompe_content(address: u64, bytes: u64) -> u8 {
    catch_unwind(|| {
        let machine = machine();
        if machine.graphs.is_capturing() { CAPTURING } else { machine.memory.content(address, bytes) as u8 }
    })
    .unwrap_or(0)
}

/// Notes that the framework side wrote `bytes` of device memory ([`SUPPOSED`]: what nobody knows), or (content 0) that
/// an operator did whose result is not computed.
#[unsafe(no_mangle)]
pub extern "C" fn trompe_content_written(address: u64, bytes: u64, content: u8) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let mut machine = machine();
        if !machine.memory.is_accessible(address, bytes) || machine.memory.device_of(address).is_none() {
            return;
        }
        let supposed = content == SUPPOSED;
        let content = if supposed { Content::Unknown } else { Content::from_number(content) };
        if supposed || content > Content::Unknown {
            machine.memory.mark_written(address, bytes);
        }
        machine.memory.note_content(address, bytes, content);
    }));
}
