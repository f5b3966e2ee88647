//! Kernels compiled at run time (Triton, NVRTC): known by their geometry, parameters and machine code.
//!
//! Which pointer is read and which written is not visible. Each pointer parameter that lies in an allocation counts
//! once with what is left of that allocation: an upper estimate of the traffic. Without such pointers the tensors of the
//! operator stand in, where one launched the kernel. Code that reads and writes outside of loops only moves at most 16 bytes
//! a thread with each such instruction: a gather or a scatter touches little of the tensors that it is given.
//!
//! With matrix instructions the operations are theirs. How often a loop runs is not in the code, so they follow from the
//! three largest tensors, taken as the operands and the result of one product of half-precision numbers:
//! `m·k`, `k·n` and `m·n` elements multiply to `(m·n·k)²`. For an attention that is an estimate; where there are no three
//! tensors, the code is taken to run once.

use trompe_base::{Bytes, Flops};
use trompe_trace::descriptor::{Compiled, Descriptor, Triton, Work};

use super::other::pointed_at;
use super::{Kernel, unclaimed};
use crate::operator::MOST_ELEMENTS;

/// Bytes of an element of a matrix product.
const ELEMENT: f64 = 2.0;

/// Bytes that one instruction moves for a thread at most.
const WIDEST: u64 = 16;

/// Describes kernels of modules loaded at run time.
pub(super) fn describe(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    if !kernel.from_module {
        return None;
    }
    let mut sizes = pointed_at(kernel, MOST_ELEMENTS);
    let mut work = Work { read: Bytes(sizes.iter().sum()), written: Bytes::ZERO, flops: Flops::ZERO };
    if sizes.is_empty() {
        work = kernel.context.call().map(|call| unclaimed(call, MOST_ELEMENTS)).unwrap_or_default();
    }
    let (blocks, threads) = (kernel.blocks(), kernel.threads());
    let (registers, shared) = (kernel.registers, kernel.shared);
    let Some(code) = kernel.code.and_then(Code::parse) else {
        return Some(Descriptor::Triton(Triton { work, blocks, threads, registers, shared }));
    };
    if code.multiplies > 0 {
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let product: f64 = sizes.iter().take(3).map(|size| *size as f64 / ELEMENT).product();
        let once = blocks as f64 * f64::from(threads.div_ceil(32)) * code.multiplies as f64;
        let multiplies = if sizes.len() >= 3 { product.sqrt() } else { once };
        work.flops = Flops((2.0 * multiplies) as u64);
    }
    let Code { multiplies, slots, all_slots, accesses } = code;
    if let Some(accesses) = accesses {
        let most = accesses.saturating_mul(WIDEST * u64::from(threads)).saturating_mul(blocks);
        work.read = Bytes(work.read.0.min(most));
    }
    Some(Descriptor::Compiled(Compiled {
        work,
        blocks,
        threads,
        registers,
        shared,
        multiplies,
        slots,
        all_slots,
    }))
}

/// What the machine code is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Code {
    multiplies: u64,
    slots: u32,
    all_slots: u32,
    /// Instructions that read or write device memory, where none of them is in a loop.
    accesses: Option<u64>,
}

impl Code {
    /// Reads `tensor 64 (64 in loops), integer 120, multiply-adds 8192 (8192 in loops); …`, as the preloaded library
    /// writes it.
    fn parse(text: &str) -> Option<Self> {
        let mut multiplies = (0, 0);
        let (mut slots, mut accesses) = ((0_u64, 0_u64), Some(0));
        for part in text.split(';').next()?.split(", ") {
            let mut words = part.split(' ');
            let (name, all) = (words.next()?, words.next()?.parse::<u64>().ok()?);
            let looped = words.next().and_then(|word| word.strip_prefix('(')?.parse().ok()).unwrap_or(0);
            if matches!(name, "global_load" | "global_store" | "atomic" | "local") {
                accesses = accesses.filter(|_| looped == 0).map(|others: u64| others.saturating_add(all));
            }
            if name == "multiply-adds" {
                multiplies = (all, looped);
            } else {
                let weight = weight(name);
                slots = (slots.0 + weight * all, slots.1 + weight * looped);
            }
        }
        let (own, of_loop) = if multiplies.1 > 0 { (multiplies.1, slots.1) } else { (multiplies.0, slots.0) };
        let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let accesses = accesses.filter(|accesses| *accesses > 0);
        Some(Self { multiplies: own, slots: narrow(of_loop), all_slots: narrow(slots.0), accesses })
    }
}

/// Issue slots that an instruction of a class takes: one, or what its pipe makes the next one wait. The matrix products
/// are counted by their multiply-adds.
fn weight(class: &str) -> u64 {
    match class {
        "tensor" => 0,
        "special" | "global_load" | "global_store" | "atomic" | "local" => 8,
        "float64" | "convert" | "shared_load" | "shared_store" => 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, multiplies: u64, slots: u32, all_slots: u32, accesses: Option<u64>) {
        let code = Code { multiplies, slots, all_slots, accesses };
        assert_eq!(Code::parse(text), Some(code), "{text}");
    }

    #[test]
    fn code_is_read_as_the_library_writes_it() {
        check(
            "global_load 2, integer 10, control 1; 32 registers, 0 bytes of local memory",
            0,
            27,
            27,
            Some(2),
        );
        check("global_load 2, global_store 1, integer 10", 0, 34, 34, Some(3));
        check("global_load 2 (1 in loops), global_store 1, integer 10", 0, 34, 34, None);
        check(
            "tensor 8 (8 in loops), shared_load 4 (2 in loops), integer 9 (1 in loops), multiply-adds 4096 (4096 in loops)",
            4096,
            9,
            25,
            None,
        );
        check("tensor 8, special 1, multiply-adds 4096", 4096, 8, 8, None);
        assert_eq!(Code::parse("nonsense"), None);
        assert_eq!(Code::parse(""), None);
    }
}
