//! Names for people of operations that are not kernel launches.

use trompe_trace::descriptor::{Descriptor, Direction, Place};

/// A short name from what the operation does; `symbol` where that says nothing.
pub(crate) fn of(descriptor: &Descriptor, symbol: &str) -> String {
    match descriptor {
        Descriptor::Gemm(g) => {
            let letter = |transposed| if transposed { 't' } else { 'n' };
            let batch = if g.batch > 1 { format!("{}x", g.batch) } else { String::new() };
            let (a, b) = (letter(g.transpose_a), letter(g.transpose_b));
            format!("gemm_{a}{b}<{batch}{}x{}x{}, {}>", g.m, g.n, g.k, g.a)
        }
        Descriptor::Convolution(c) => {
            let which = match c.direction {
                Direction::Forward => "forward",
                Direction::Backward => "dgrad",
                Direction::WeightGradient => "wgrad",
            };
            let kernel = extents(&c.kernel);
            format!(
                "convolution_{which}<{}x{}x{}, {kernel}, {}>",
                c.batch,
                c.in_channels,
                extents(&c.input),
                c.dtype
            )
        }
        Descriptor::Attention(a) => {
            let which = if a.direction == Direction::Forward { "forward" } else { "backward" };
            format!("attention_{which}<{}x{}x{}x{}, {}>", a.batch, a.heads, a.seq_q, a.head_dim, a.dtype)
        }
        Descriptor::Rnn(r) => {
            let cell = match r.gates {
                4 => "lstm",
                3 => "gru",
                _ => "rnn",
            };
            let which = match r.direction {
                Direction::Forward => "forward",
                Direction::Backward => "dgrad",
                Direction::WeightGradient => "wgrad",
            };
            format!("{cell}_{which}<{}x{}x{}, {}>", r.steps, r.batch, r.hidden, r.dtype)
        }
        Descriptor::Copy(c) => format!("copy<{} to {}>", place(c.from), place(c.to)),
        Descriptor::Set(_) => "memset".to_owned(),
        Descriptor::Normalization(n) => {
            let which = if n.direction == Direction::Forward { "forward" } else { "backward" };
            format!("batch_norm_{which}<{}x{}, {}>", n.rows, n.cols, n.dtype)
        }
        _ => symbol.to_owned(),
    }
}

/// The beginning of a longer text.
pub(crate) fn brief(text: &str) -> String {
    const LENGTH: usize = 60;
    if text.chars().count() <= LENGTH {
        text.to_owned()
    } else {
        text.chars().take(LENGTH - 1).chain(['…']).collect()
    }
}

fn extents(list: &[u64]) -> String {
    list.iter().map(u64::to_string).collect::<Vec<_>>().join("x")
}

const fn place(place: Place) -> &'static str {
    match place {
        Place::Device => "device",
        Place::Peer => "peer",
        Place::Pinned => "pinned",
        Place::Pageable => "pageable",
    }
}
