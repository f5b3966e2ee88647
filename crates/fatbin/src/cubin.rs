//! One cubin: an ELF file for the GPU, read for its kernels' shapes and limits.
//!
//! Where the facts lie (read off cubins that `nvcc` wrote; NVIDIA publishes no specification):
//!
//! | fact | place |
//! |---|---|
//! | kernel name | section `.text.<name>` with a matching `.nv.info.<name>` |
//! | parameters | `.nv.info.<name>`, attributes `KPARAM_INFO` (0x17) and, for big structs, `KPARAM_INFO_V2` (0x45) |
//! | registers per thread | global `.nv.info`, attribute `REGCOUNT` (0x2f); before that, top byte of `.text`'s `sh_info` |
//! | local memory per thread | global `.nv.info`, attribute `FRAME_SIZE` (0x11) |
//! | launch bounds | `.nv.info.<name>`, attribute `MAX_THREADS` (0x05), or `REQNTID` (0x10) |
//! | static shared memory | size of `.nv.shared.<name>` |
//! | constant bank 0 | size of `.nv.constant0.<name>`: driver area plus parameters |
//! | code size | size of `.text.<name>` (16 bytes per instruction since `sm_70`) |

mod attributes;
pub mod code;

use std::collections::BTreeMap;

use object::Endianness;
use object::elf::{FileHeader64, SHT_NOBITS};
use object::read::elf::{FileHeader, SectionHeader, SectionTable, Sym, SymbolTable};

use self::attributes::Attribute;
use self::code::Instructions;

/// One parameter of a kernel, in the order of its declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parameter {
    /// Bytes from the start of the parameter area.
    pub offset: u32,
    /// Bytes that the parameter takes: the size of the C++ type.
    pub size: u32,
}

/// What a cubin says about one kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelInfo {
    /// By position.
    pub parameters: Vec<Parameter>,
    /// Registers per thread; 0 when the cubin does not say.
    pub registers: u32,
    /// Bytes of statically declared shared memory per block.
    pub static_shared: u32,
    /// Bytes of stack frame in local memory per thread.
    pub local_memory: u32,
    /// Upper limit of threads per block from launch bounds; 0 when none is declared.
    pub max_threads: u32,
    /// Bytes of constant bank 0: the driver's area and the parameters.
    pub constant_bank: u32,
    /// Bytes of machine code.
    pub code: u32,
    /// What the code is made of; nothing is counted when the facts come from a database.
    pub instructions: Instructions,
}

impl KernelInfo {
    /// Bytes of the whole parameter area.
    #[must_use]
    pub fn parameter_bytes(&self) -> u32 {
        self.parameters
            .iter()
            .map(|parameter| parameter.offset.saturating_add(parameter.size))
            .max()
            .unwrap_or(0)
    }
}

/// Why a cubin could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CubinError {
    /// Not a readable ELF file.
    #[error("no readable ELF image of {bytes} bytes: {reason}; the module is not a cubin or was cut short")]
    Elf {
        /// Size of the image.
        bytes: usize,
        /// What the ELF reader stumbled over.
        reason: object::read::Error,
    },
}

/// Whether `image` begins as a cubin does.
#[must_use]
pub fn is_cubin(image: &[u8]) -> bool {
    image.starts_with(b"\x7fELF\x02\x01")
}

/// Size in bytes of the cubin that begins at `image`, from its section and program header tables; `None` when
/// `image` is no cubin or ends before them. For callers that are handed a bare pointer.
#[must_use]
pub fn image_size(image: &[u8]) -> Option<u64> {
    let u64_at = |at: usize| Some(u64::from_le_bytes(image.get(at..at + 8)?.try_into().ok()?));
    let u16_at = |at: usize| Some(u64::from(u16::from_le_bytes(image.get(at..at + 2)?.try_into().ok()?)));
    if !is_cubin(image) {
        return None;
    }
    let programs = u64_at(32)?.checked_add(u16_at(54)? * u16_at(56)?)?;
    let sections = u64_at(40)?.checked_add(u16_at(58)? * u16_at(60)?)?;
    Some(programs.max(sections))
}

/// The kernels of one cubin by mangled name.
///
/// # Errors
/// When `image` is no ELF file or its section table lies outside of it. Broken attributes of one kernel cost
/// only that kernel's facts.
pub fn kernels(image: &[u8]) -> Result<BTreeMap<&str, KernelInfo>, CubinError> {
    Reader::new(image)
        .map(|reader| reader.kernels())
        .map_err(|reason| CubinError::Elf { bytes: image.len(), reason })
}

type Elf = FileHeader64<Endianness>;

struct Reader<'a> {
    endian: Endianness,
    image: &'a [u8],
    sections: SectionTable<'a, Elf>,
    symbols: SymbolTable<'a, Elf>,
    flags: u32,
}

impl<'a> Reader<'a> {
    fn new(image: &'a [u8]) -> object::read::Result<Self> {
        let header = Elf::parse(image)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, image)?;
        let symbols = sections.symbols(endian, image, object::elf::SHT_SYMTAB)?;
        Ok(Self { endian, image, sections, symbols, flags: header.e_flags(endian) })
    }

    fn kernels(&self) -> BTreeMap<&'a str, KernelInfo> {
        let mut kernels = BTreeMap::<&str, KernelInfo>::new();
        for (name, section) in self.named_sections() {
            if let Some(kernel) = name.strip_prefix(".nv.info.") {
                kernel_attributes(self.data(section), kernels.entry(kernel).or_default());
            }
        }
        let mut global: &[u8] = &[];
        for (name, section) in self.named_sections() {
            let size = u32::try_from(section.sh_size(self.endian)).unwrap_or(u32::MAX);
            if name == ".nv.info" {
                global = self.data(section);
            } else if let Some(info) = name.strip_prefix(".text.").and_then(|kernel| kernels.get_mut(kernel))
            {
                info.code = size;
                info.instructions = code::count(self.data(section), self.arch());
                info.registers = section.sh_info(self.endian) >> 24;
            } else if let Some(info) =
                name.strip_prefix(".nv.shared.").and_then(|kernel| kernels.get_mut(kernel))
            {
                info.static_shared = size;
            } else if let Some(info) =
                name.strip_prefix(".nv.constant0.").and_then(|kernel| kernels.get_mut(kernel))
            {
                info.constant_bank = size;
            }
        }
        // Device functions that are not kernels have attributes too, but no code section of their own.
        kernels.retain(|_, info| info.code > 0);
        self.global_attributes(global, &mut kernels);
        kernels
    }

    /// The architecture, which the ELF header's flags name: in the lowest byte, or since CUDA 13 in the one above it.
    fn arch(&self) -> u32 {
        let flags = self.flags;
        if flags & 0xff == 0 || flags >> 24 != 0 { flags >> 8 & 0xff } else { flags & 0xff }
    }

    fn named_sections(&self) -> impl Iterator<Item = (&'a str, &'a <Elf as FileHeader>::SectionHeader)> {
        self.sections.iter().filter_map(|section| {
            let name = self.sections.section_name(self.endian, section).ok()?;
            Some((std::str::from_utf8(name).ok()?, section))
        })
    }

    fn data(&self, section: &<Elf as FileHeader>::SectionHeader) -> &'a [u8] {
        if section.sh_type(self.endian) == SHT_NOBITS {
            return &[];
        }
        section.data(self.endian, self.image).unwrap_or(&[])
    }

    fn global_attributes(&self, data: &[u8], kernels: &mut BTreeMap<&'a str, KernelInfo>) {
        for attribute in attributes::iterate(data) {
            let Attribute::OfSymbol { symbol, fact } = attribute else { continue };
            let Some(name) = self.symbol_name(symbol) else { continue };
            let Some(info) = kernels.get_mut(name) else { continue };
            match fact {
                attributes::SymbolFact::Registers(count) => info.registers = count,
                attributes::SymbolFact::FrameSize(bytes) => info.local_memory = bytes,
            }
        }
    }

    fn symbol_name(&self, index: u32) -> Option<&'a str> {
        let symbol = self.symbols.symbol(object::SymbolIndex(index as usize)).ok()?;
        std::str::from_utf8(symbol.name(self.endian, self.symbols.strings()).ok()?).ok()
    }
}

/// Largest parameter area that CUDA allows, in bytes: 32,764 since CUDA 12.1 on `sm_70` and later.
/// Source: CUDA C++ Programming Guide, "Function Parameters".
const PARAMETER_AREA: u32 = 32_764;

/// An upper bound of parameters per kernel: more cannot have distinct bytes.
const PARAMETER_COUNT: u16 = PARAMETER_AREA as u16;

fn kernel_attributes(data: &[u8], info: &mut KernelInfo) {
    let mut parameters = BTreeMap::new();
    for attribute in attributes::iterate(data) {
        match attribute {
            Attribute::Parameter { ordinal, offset, size } if ordinal < PARAMETER_COUNT => {
                parameters.insert(ordinal, Parameter { offset: u32::from(offset), size });
            }
            Attribute::ThreadLimit(limit) => info.max_threads = limit,
            Attribute::Parameter { .. } | Attribute::OfSymbol { .. } | Attribute::Other => {}
        }
    }
    // A gap in the ordinals or an area beyond CUDA's limit is a broken table: no layout is better than a wrong one.
    let whole = parameters.keys().copied().eq(0..parameters.len() as u16);
    let sane = parameters.values().all(|parameter| {
        u64::from(parameter.offset) + u64::from(parameter.size) <= u64::from(PARAMETER_AREA)
    });
    if whole && sane {
        info.parameters = parameters.into_values().collect();
    }
}

#[cfg(test)]
mod tests;
