//! How long a collective takes on the links of a cluster.
//!
//! What it is: a [`Fabric`] (what joins the devices, from a cluster sheet), a [`Placement`] (which devices take part),
//! a tuner that chooses algorithm and protocol as NCCL does ([`tuner`]), constants fitted to public measurements that
//! price the choice ([`Constants`]), all joined in a [`NetworkModel`]; [`flow`] shares links between transfers that
//! overlap; [`readers`] take a fabric from what other tools print.
//!
//! What it is not: it launches nothing and waits for nobody (`cluster` does), knows no trace and no record, and reads
//! no file: texts are handed in.
//!
//! Invariants: the same call has the same price; a price is never zero for two or more ranks; more bytes or slower
//! links never make one algorithm faster. The *choice* between algorithms follows NCCL's own estimate, which is not
//! always the fastest, so a larger message can take less time at a switch-over, as on real machines.

mod constants;
mod demand;
mod fabric;
mod features;
mod fit;
pub mod flow;
mod model;
mod operation;
mod pairs;
mod placement;
mod profile;
pub mod readers;
pub mod tuner;

pub use constants::{Bend, Carrier, Constants, ConstantsError, FabricConstants, NetworkConstants, Term};
pub use demand::Demand;
pub use fabric::{Fabric, Inside, Layout, Wire};
pub use features::Features;
pub use fit::{Fitted, Sample, fit};
pub use model::{Estimate, Method, NetworkModel};
pub use operation::Operation;
pub use pairs::{NotSquare, Pairs};
pub use placement::Placement;
pub use profile::{LEAST, Profile, ProfileError, Score, profile};
