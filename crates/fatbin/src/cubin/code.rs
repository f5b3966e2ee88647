//! What a kernel's machine code is made of: instructions by class, in all and inside of loops.
//!
//! Since `sm_70` an instruction has 16 bytes. Its operation is in the lowest nine bits (three more say what kind of
//! operands follow), and the numbers mean the same on all generations since; the table here was read off the output of
//! NVIDIA's disassembler for `sm_80`, `sm_90` and `sm_100` (the cubins of PyTorch's linear-algebra library, and PTX with one
//! instruction of each kind). A loop is what a branch backwards spans; branches of code that was moved out of line look
//! alike, so "inside of loops" is an upper bound.

/// Bytes of an instruction.
const INSTRUCTION: usize = 16;

/// A class of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Class {
    /// Matrix products: `HMMA`, `IMMA`, `DMMA`, `HGMMA`, `IGMMA`, `QGMMA`, `UTC*MMA`.
    Tensor,
    /// `LDG`, `LDGSTS`, and the copy engine's `UTMALDG` and `UBLKCP`.
    GlobalLoad,
    /// `STG`, `UTMASTG`.
    GlobalStore,
    /// `LDS`, `LDSM`.
    SharedLoad,
    /// `STS`, `STSM`.
    SharedStore,
    /// `LDL`, `STL`: spilled registers.
    Local,
    /// `ATOM*`, `RED`.
    Atomic,
    Float32,
    /// `HADD2` and its like.
    Float16,
    Float64,
    /// `MUFU`: reciprocals, roots, exponentials, sines.
    Special,
    Convert,
    /// Integers and bits, also on the uniform data path.
    Integer,
    /// `BAR`, `BRA`, `EXIT`, and its like.
    Control,
    /// Moves, shuffles, and everything else.
    Other,
}

impl Class {
    /// All classes, in order.
    pub const ALL: [Self; 15] = [
        Self::Tensor,
        Self::GlobalLoad,
        Self::GlobalStore,
        Self::SharedLoad,
        Self::SharedStore,
        Self::Local,
        Self::Atomic,
        Self::Float32,
        Self::Float16,
        Self::Float64,
        Self::Special,
        Self::Convert,
        Self::Integer,
        Self::Control,
        Self::Other,
    ];

    /// The class's name in traces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tensor => "tensor",
            Self::GlobalLoad => "global_load",
            Self::GlobalStore => "global_store",
            Self::SharedLoad => "shared_load",
            Self::SharedStore => "shared_store",
            Self::Local => "local",
            Self::Atomic => "atomic",
            Self::Float32 => "float32",
            Self::Float16 => "float16",
            Self::Float64 => "float64",
            Self::Special => "special",
            Self::Convert => "convert",
            Self::Integer => "integer",
            Self::Control => "control",
            Self::Other => "other",
        }
    }

    /// The class of an operation; `None` for one that does nothing (`NOP`).
    const fn of(operation: u16) -> Option<Self> {
        Some(match operation {
            0x118 => return None,
            0x037 | 0x03c | 0x03f | 0x1ea | 0x1f0 | 0x1f1 | 0x1f3 => Self::Tensor,
            0x181 | 0x1ae | 0x1b4 | 0x1ba => Self::GlobalLoad,
            0x186 | 0x1b5 => Self::GlobalStore,
            0x184 | 0x03b => Self::SharedLoad,
            0x188 | 0x044 => Self::SharedStore,
            0x183 | 0x187 => Self::Local,
            0x18c | 0x18e | 0x1a3 | 0x1a8 | 0x1a9 => Self::Atomic,
            0x008 | 0x009 | 0x00b | 0x020 | 0x021 | 0x023 | 0x049 | 0x04b => Self::Float32,
            0x030 | 0x031 | 0x032 | 0x035 => Self::Float16,
            0x028..=0x02b => Self::Float64,
            0x108 => Self::Special,
            0x03e | 0x045 | 0x105 | 0x106 | 0x110 => Self::Convert,
            0x007
            | 0x00c
            | 0x010..=0x013
            | 0x016
            | 0x017
            | 0x019
            | 0x01c
            | 0x024..=0x027
            | 0x036
            | 0x046
            | 0x048 => Self::Integer,
            0x080..=0x0bf | 0x100 | 0x109 => Self::Integer,
            0x11a
            | 0x11b
            | 0x11d
            | 0x141..=0x150
            | 0x15c
            | 0x15d
            | 0x1af
            | 0x1b2
            | 0x1b7
            | 0x1c5
            | 0x1c6
            | 0x1e9 => Self::Control,
            _ => Self::Other,
        })
    }
}

/// Instructions of a kernel by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    /// Anywhere, in the order of [`Class::ALL`].
    all: [u32; Class::ALL.len()],
    /// Inside of a loop.
    looped: [u32; Class::ALL.len()],
    /// Multiply-adds of the matrix products: anywhere, and inside of a loop.
    multiplies: (u64, u64),
}

impl Instructions {
    /// Instructions of a class.
    #[must_use]
    pub const fn count(&self, class: Class) -> u32 {
        self.all[class as usize]
    }

    /// Those of them that a loop may repeat.
    #[must_use]
    pub const fn looped(&self, class: Class) -> u32 {
        self.looped[class as usize]
    }

    /// Multiply-adds that a warp's matrix products do: anywhere in the code, and those inside of loops. Types decide how
    /// long a product's rows are; half precision is assumed.
    #[must_use]
    pub const fn multiplies(&self) -> (u64, u64) {
        self.multiplies
    }

    /// Instructions of all classes.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.all.iter().sum()
    }

    /// The classes that occur, as text: `tensor 64 (64 in loops), integer 120 (31 in loops)`.
    #[must_use]
    pub fn describe(&self) -> String {
        let of = |class: &Class| {
            let (all, looped) = (self.count(*class), self.looped(*class));
            let part = if looped > 0 { format!(" ({looped} in loops)") } else { String::new() };
            (all > 0).then(|| format!("{} {all}{part}", class.name()))
        };
        let (all, looped) = self.multiplies;
        let multiplies = (all > 0).then(|| format!("multiply-adds {all} ({looped} in loops)"));
        Class::ALL.iter().filter_map(of).chain(multiplies).collect::<Vec<_>>().join(", ")
    }
}

/// Counts the instructions of a code section for an architecture (`sm_90` is 90).
#[must_use]
pub fn count(code: &[u8], arch: u32) -> Instructions {
    const BRANCH: u16 = 0x147;
    let words = || {
        code.chunks_exact(INSTRUCTION).map(|bytes| u128::from_le_bytes(bytes.try_into().unwrap_or_default()))
    };
    let operation = |word: u128| (word & 0x1ff) as u16;
    let instructions = code.len() / INSTRUCTION;
    // How many loops begin at, and end after, each instruction.
    let mut begins = vec![0_i32; instructions + 1];
    for (index, word) in words().enumerate().filter(|(_, word)| operation(*word) == BRANCH) {
        let target = index as i64 + 1 + displacement(word, arch) / INSTRUCTION as i64;
        // The branch to itself behind every kernel's end is no loop.
        if (0..index as i64).contains(&target) {
            begins[target as usize] += 1;
            begins[index + 1] -= 1;
        }
    }
    let mut found = Instructions::default();
    let mut depth = 0;
    for (index, word) in words().enumerate() {
        depth += begins[index];
        // Sections are filled up with zeros.
        let Some(class) = Class::of(operation(word)).filter(|_| word != 0) else { continue };
        found.all[class as usize] += 1;
        found.looped[class as usize] += u32::from(depth > 0);
        if class == Class::Tensor {
            let multiplies = multiplies(word);
            found.multiplies.0 += multiplies;
            found.multiplies.1 += if depth > 0 { multiplies } else { 0 };
        }
    }
    found
}

/// Multiply-adds per warp of a matrix instruction. A warp's own product is 16 × 8 × 16; four warps share one of 64 × N × 16,
/// whose N is in bits 53 to 58 in units of eight; the tensor memory's product has its shape in a register, and a tile of
/// 128 × 128 × 16 is assumed.
const fn multiplies(word: u128) -> u64 {
    match word & 0x1ff {
        0x1f0 | 0x1f1 | 0x1f3 => 64 / 4 * 16 * 8 * ((word >> 53 & 0x3f) as u64 + 1),
        0x1ea => 128 * 128 * 16,
        0x03f => 8 * 8 * 4,
        _ => 16 * 8 * 16,
    }
}

/// Bytes from the end of a branch to its target. Before `sm_90` they are in bits 32 to 79; since then, in units of four
/// bytes, in bits 16 to 23 and, above them, 34 to 81.
fn displacement(word: u128, arch: u32) -> i64 {
    let signed = |value: u128, bits: u32| (value << (128 - bits)) as i128 >> (128 - bits);
    if arch < 90 {
        return signed(word >> 32 & ((1 << 48) - 1), 48) as i64;
    }
    let low = word >> 16 & 0xff;
    let high = word >> 34 & ((1 << 48) - 1);
    (signed(high << 8 | low, 56) * 4) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| u128::from(*word).to_le_bytes()).collect()
    }

    #[test]
    fn branches_of_both_forms_are_measured() {
        // As disassembled: 0x2b40 BRA 0x2ba0 and 0x4870 BRA 0x5150 (sm_90), 0x4870 BRA 0x4b00 (sm_80).
        assert_eq!(displacement(0x0014_0947, 90), 0x2ba0 - 0x2b50);
        assert_eq!(displacement(0x0000_0008_0034_8947, 90), 0x5150 - 0x4880);
        assert_eq!(displacement(0x0000_0280_0000_9947, 80), 0x4b00 - 0x4880);
        // 0x3370 BRA 0x1720 (sm_90), both words.
        assert_eq!(displacement(0x000f_ea00_0383_ffff_ffff_ffe0_00e8_7947, 90), 0x1720 - 0x3380);
        assert_eq!(displacement(0x000f_c000_0383_ffff_ffff_fff0_0000_7947, 80), -16);
    }

    #[test]
    fn products_of_warp_groups_are_measured() {
        // As disassembled: HGMMA.64x8x16, HGMMA.64x128x16, HGMMA.64x256x16 (sm_90).
        for (word, columns) in
            [(0x0000_0000_0818_79f0, 8), (0x01e0_0000_0818_79f0, 128), (0x03e0_0000_0818_79f0, 256)]
        {
            assert_eq!(multiplies(word), 16 * columns * 16);
        }
    }

    #[test]
    fn classes_are_counted_and_loops_found() {
        // LDG; loop: HMMA, FFMA, BRA back over the three; STG, EXIT, and a NOP.
        let back = 0xffff_ffd0_0000_7947;
        let mut bytes = code(&[0x7981, 0x723c, 0x7223, back, 0x7986, 0x794d, 0x7918]);
        // The branch's upper word continues its sign.
        bytes[3 * INSTRUCTION + 8..3 * INSTRUCTION + 10].copy_from_slice(&[0xff, 0xff]);
        let found = count(&bytes, 80);
        let pair = |class| (found.count(class), found.looped(class));
        assert_eq!(pair(Class::Tensor), (1, 1));
        assert_eq!(pair(Class::Float32), (1, 1));
        assert_eq!(pair(Class::Control), (2, 1));
        assert_eq!(pair(Class::GlobalLoad), (1, 0));
        assert_eq!(found.total(), 6);
        assert_eq!(
            found.describe(),
            "tensor 1 (1 in loops), global_load 1, global_store 1, float32 1 (1 in loops), control 2 (1 in loops), \
             multiply-adds 2048 (2048 in loops)"
        );
    }
}
