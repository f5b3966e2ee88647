//! Makes the crate compile again when a sheet is added or taken away: the compiler sees only those that it has read.

fn main() {
    println!("cargo:rerun-if-changed=sheets");
}
