//! The emulated node of this process, made at the first call that needs it.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use trompe_base::DeviceIndex;
use trompe_device::Machine;
use trompe_hardware::EmulatedNode;

use crate::backing::HostBacking;
use crate::cudart::register::{Registry, registry};
use crate::libs::{self, Libraries};
use crate::log::{Level, say};
use crate::sink::ForkLock;
use crate::{environment, fork};

/// The emulated device of this process.
pub(crate) type HostMachine = Machine<HostBacking>;

static MACHINE: OnceLock<Mutex<HostMachine>> = OnceLock::new();

/// The process's machine, locked.
pub(crate) fn machine() -> MutexGuard<'static, HostMachine> {
    let machine = MACHINE.get_or_init(|| {
        fork::watch();
        let visible = environment::visible_devices();
        Mutex::new(Machine::new(HostBacking, read_node(), visible.as_deref()))
    });
    // A panic inside a handler is answered at the door; the bookkeeping stays usable.
    machine.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether some device has a context: work of this process may depend on it, so a fork of it is no fresh process.
pub(crate) fn is_in_use() -> bool {
    MACHINE.get().is_some_and(|machine| {
        let machine = machine.lock().unwrap_or_else(PoisonError::into_inner);
        (0..machine.device_count()).any(|device| machine.is_active(DeviceIndex(device)))
    })
}

/// Makes the node anew from the environment, if it was made and no device of it is in use.
pub(crate) fn renew() {
    if let Some(machine) = MACHINE.get() {
        registry().forget_kernels();
        let visible = environment::visible_devices();
        let fresh = Machine::new(HostBacking, read_node(), visible.as_deref());
        *machine.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
    }
}

/// The node that `TROMPE_CONFIG` describes; without one there is no device, and one line says why.
fn read_node() -> Option<EmulatedNode> {
    let Some(path) = &environment::get().config else {
        say(Level::Warning, "no GPU to pretend: `TROMPE_CONFIG` is not set; start the job with `trompe run`");
        return None;
    };
    let node = std::fs::read_to_string(path)
        .map_err(|error| error.to_string())
        .and_then(|text| EmulatedNode::from_json(&text).map_err(|error| error.to_string()));
    match node {
        Ok(node) => Some(node),
        Err(error) => {
            say(Level::Warning, &format!("no GPU to pretend: `{}`: {error}", path.display()));
            None
        }
    }
}

/// All locks of the library, held while the process forks so that none is left locked in the child.
pub(crate) struct Held {
    _libraries: Option<MutexGuard<'static, Libraries>>,
    _machine: Option<MutexGuard<'static, HostMachine>>,
    _registry: MutexGuard<'static, Registry>,
    _sink: ForkLock,
}

impl Held {
    /// Waits for the locks in the order in which calls take them.
    pub(crate) fn take() -> Self {
        let libraries = libs::hold();
        let machine = MACHINE.get().map(|machine| machine.lock().unwrap_or_else(PoisonError::into_inner));
        Self { _libraries: libraries, _machine: machine, _registry: registry(), _sink: ForkLock::take() }
    }
}
