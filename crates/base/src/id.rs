//! Typed ids: an index of one kind is never taken for another.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident($inner:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The id as an index into a table.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    )*};
}

ids! {
    /// A process's place in the whole job, `0..world_size`.
    Rank(u32);
    /// A device's index inside its process, as `cudaSetDevice` counts it.
    DeviceIndex(u32);
    /// A CUDA stream of one process; announced in its trace with its device and kind.
    StreamId(u32);
    /// A CUDA event of one process; unique for the life of the process.
    EventId(u32);
    /// A row of a kernel table.
    KernelId(u32);
    /// A host thread of one process, numbered by first appearance.
    ThreadIndex(u32);
}
