//! The backend interface: descriptors of some kind with numbered attributes.
//!
//! Setting an attribute to a descriptor takes a copy of it as it is then; later changes to or destruction of the original do
//! not matter. Copies share their content. Reading an attribute that holds descriptors copies them into descriptors
//! that the caller made.
//!
//! Attribute and kind numbers are cuDNN 9's, stated here as far as this crate reads them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::graph;
use super::{Dnn, DnnError, Object, Operation};

/// Attribute numbers (`cudnnBackendAttributeName_t`).
#[expect(missing_docs, reason = "the library's names without their prefix")]
pub mod attribute {
    pub const POINTWISE_MODE: i32 = 0;
    pub const CONVOLUTION_COMP_TYPE: i32 = 100;
    pub const CONVOLUTION_DILATIONS: i32 = 102;
    pub const CONVOLUTION_FILTER_STRIDES: i32 = 103;
    pub const CONVOLUTION_PRE_PADDINGS: i32 = 105;
    pub const ENGINEHEUR_MODE: i32 = 200;
    pub const ENGINEHEUR_OPERATION_GRAPH: i32 = 201;
    pub const ENGINEHEUR_RESULTS: i32 = 202;
    pub const ENGINECFG_ENGINE: i32 = 300;
    pub const ENGINECFG_INTERMEDIATE_INFO: i32 = 301;
    pub const ENGINECFG_KNOB_CHOICES: i32 = 302;
    pub const ENGINECFG_WORKSPACE_SIZE: i32 = 303;
    pub const ENGINECFG_SHARED_MEMORY_USED: i32 = 304;
    pub const EXECUTION_PLAN_ENGINE_CONFIG: i32 = 401;
    pub const EXECUTION_PLAN_WORKSPACE_SIZE: i32 = 402;
    pub const EXECUTION_PLAN_JSON_REPRESENTATION: i32 = 405;
    pub const CONVOLUTION_FORWARD_CONV_DESC: i32 = 702;
    pub const CONVOLUTION_FORWARD_W: i32 = 703;
    pub const CONVOLUTION_FORWARD_X: i32 = 704;
    pub const CONVOLUTION_FORWARD_Y: i32 = 705;
    pub const CONVOLUTION_BWD_DATA_CONV_DESC: i32 = 708;
    pub const CONVOLUTION_BWD_DATA_W: i32 = 709;
    pub const CONVOLUTION_BWD_DATA_DX: i32 = 710;
    pub const CONVOLUTION_BWD_DATA_DY: i32 = 711;
    pub const CONVOLUTION_BWD_FILTER_CONV_DESC: i32 = 714;
    pub const CONVOLUTION_BWD_FILTER_DW: i32 = 715;
    pub const CONVOLUTION_BWD_FILTER_X: i32 = 716;
    pub const CONVOLUTION_BWD_FILTER_DY: i32 = 717;
    pub const POINTWISE_PW_DESCRIPTOR: i32 = 750;
    pub const POINTWISE_XDESC: i32 = 751;
    pub const POINTWISE_BDESC: i32 = 752;
    pub const POINTWISE_YDESC: i32 = 753;
    pub const OPERATIONGRAPH_OPS: i32 = 801;
    pub const OPERATIONGRAPH_ENGINE_GLOBAL_COUNT: i32 = 802;
    pub const TENSOR_DATA_TYPE: i32 = 901;
    pub const TENSOR_DIMENSIONS: i32 = 902;
    pub const TENSOR_STRIDES: i32 = 903;
    pub const TENSOR_UNIQUE_ID: i32 = 906;
    pub const TENSOR_IS_VIRTUAL: i32 = 907;
    pub const ENGINE_OPERATION_GRAPH: i32 = 1300;
    pub const ENGINE_GLOBAL_INDEX: i32 = 1301;
    pub const ENGINE_KNOB_INFO: i32 = 1302;
    pub const ENGINE_NUMERICAL_NOTE: i32 = 1303;
    pub const ENGINE_LAYOUT_INFO: i32 = 1304;
    pub const ENGINE_BEHAVIOR_NOTE: i32 = 1305;
    pub const MATMUL_COMP_TYPE: i32 = 1500;
    pub const MATMUL_ADESC: i32 = 1520;
    pub const MATMUL_BDESC: i32 = 1521;
    pub const MATMUL_CDESC: i32 = 1522;
    pub const MATMUL_DESC: i32 = 1523;
    pub const KERNEL_CACHE_IS_ENGINECFG_KERNEL_CACHED: i32 = 2401;
    pub const SDPA_FWD_QDESC: i32 = 2800;
    pub const SDPA_FWD_KDESC: i32 = 2801;
    pub const SDPA_FWD_VDESC: i32 = 2802;
    pub const SDPA_FWD_DROPOUT_PROBABILITY: i32 = 2818;
    pub const SDPA_BWD_QDESC: i32 = 2851;
    pub const SDPA_BWD_KDESC: i32 = 2852;
    pub const SDPA_BWD_VDESC: i32 = 2853;
    pub const DIAGONAL_BAND_MASK_SHIFT_RIGHT_BOUND_DESC: i32 = 3004;
    pub const DIAGONAL_BAND_MASK_COMPARISON_MODE: i32 = 3007;
}

/// Descriptor kinds (`cudnnBackendDescriptorType_t`).
#[expect(missing_docs, reason = "the library's names without their prefix")]
pub mod kind {
    pub const ENGINE: i32 = 2;
    pub const ENGINECFG: i32 = 3;
    pub const EXECUTION_PLAN: i32 = 5;
    pub const CONVOLUTION_FORWARD: i32 = 10;
    pub const CONVOLUTION_BACKWARD_FILTER: i32 = 11;
    pub const CONVOLUTION_BACKWARD_DATA: i32 = 12;
    pub const OPERATION_POINTWISE: i32 = 13;
    pub const OPERATIONGRAPH: i32 = 15;
    pub const TENSOR: i32 = 17;
    pub const OPERATION_MATMUL: i32 = 19;
    pub const OPERATION_RNG: i32 = 33;
    pub const SDPA_FWD: i32 = 41;
    pub const SDPA_BWD: i32 = 43;
    pub const DIAGONAL_BAND_MASK: i32 = 44;
    pub const OPERATION_SOFTMAX: i32 = 45;
    /// One past the last kind of cuDNN 9.26.
    pub const END: i32 = 51;
}

/// `CUDNN_TYPE_BACKEND_DESCRIPTOR`.
pub const TYPE_DESCRIPTOR: i32 = 15;
const TYPE_INT64: i32 = 3;
const TYPE_DOUBLE: i32 = 5;
const HEURISTIC_FALLBACK: i32 = 2;
const NOTE_TENSOR_CORE: i32 = 0;

/// Number of engines that every graph has (see the module documentation of [`super`]).
const ENGINES: i64 = 2;

/// Bytes of one element of an attribute of the given `cudnnBackendAttributeType_t`.
#[must_use]
pub const fn element_size(type_number: i32) -> usize {
    match type_number {
        // Handle, 64-bit integer, double, pointer, descriptor.
        0 | 3 | 5 | 6 | 15 => 8,
        // Boolean, character.
        2 | 24 => 1,
        // Fraction: two 64-bit integers.
        26 => 16,
        _ => 4,
    }
}

#[derive(Clone, Debug)]
enum Data {
    Bytes(Vec<u8>),
    Descriptors(Vec<Option<Arc<Descriptor>>>),
}

#[derive(Clone, Debug)]
struct Attribute {
    type_number: i32,
    data: Data,
}

/// A backend descriptor.
#[derive(Clone, Debug)]
pub struct Descriptor {
    kind: i32,
    finalized: bool,
    attributes: BTreeMap<i32, Attribute>,
    /// Of a finalized plan: what it does.
    operation: Option<Arc<Operation>>,
}

/// The answer to a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Elements that there are.
    pub count: i64,
    /// The elements asked for; empty when they are descriptors (then the caller's were filled).
    pub bytes: Vec<u8>,
}

impl Answer {
    fn integer(value: i64) -> Self {
        Self { count: 1, bytes: value.to_le_bytes().to_vec() }
    }

    fn number(value: i32) -> Self {
        Self { count: 1, bytes: value.to_le_bytes().to_vec() }
    }
}

impl Descriptor {
    const fn new(kind: i32) -> Self {
        Self { kind, finalized: false, attributes: BTreeMap::new(), operation: None }
    }

    /// Its kind number.
    #[must_use]
    pub const fn kind(&self) -> i32 {
        self.kind
    }

    /// All elements of an integer attribute.
    #[must_use]
    pub fn integers(&self, name: i32) -> Vec<i64> {
        self.bytes(name, TYPE_INT64).map_or_else(Vec::new, |bytes| {
            bytes.as_chunks::<8>().0.iter().map(|chunk| i64::from_le_bytes(*chunk)).collect()
        })
    }

    /// First element of an integer attribute.
    #[must_use]
    pub fn integer(&self, name: i32) -> Option<i64> {
        self.integers(name).first().copied()
    }

    /// An attribute of a four-byte type: enumerations and 32-bit integers.
    #[must_use]
    pub fn number(&self, name: i32) -> Option<i32> {
        let attribute = self.attributes.get(&name)?;
        let Data::Bytes(bytes) = &attribute.data else { return None };
        Some(i32::from_le_bytes(
            bytes.get(..4).filter(|_| element_size(attribute.type_number) == 4)?.try_into().ok()?,
        ))
    }

    /// A real attribute.
    #[must_use]
    pub fn real(&self, name: i32) -> Option<f64> {
        if let Some(bytes) = self.bytes(name, TYPE_DOUBLE) {
            return Some(f64::from_le_bytes(bytes.get(..8)?.try_into().ok()?));
        }
        self.number(name).map(|bits| f64::from(f32::from_bits(bits as u32)))
    }

    /// A Boolean attribute, false when absent.
    #[must_use]
    pub fn flag(&self, name: i32) -> bool {
        self.attributes.get(&name).is_some_and(|attribute| match &attribute.data {
            Data::Bytes(bytes) => bytes.first().is_some_and(|byte| *byte != 0),
            Data::Descriptors(_) => false,
        })
    }

    /// The descriptors of an attribute.
    pub fn children(&self, name: i32) -> impl Iterator<Item = &Arc<Self>> {
        let descriptors = match self.attributes.get(&name).map(|attribute| &attribute.data) {
            Some(Data::Descriptors(descriptors)) => descriptors.as_slice(),
            _ => &[],
        };
        descriptors.iter().flatten()
    }

    /// The first descriptor of an attribute.
    #[must_use]
    pub fn child(&self, name: i32) -> Option<&Arc<Self>> {
        self.children(name).next()
    }

    /// All descriptors among the attributes, with the attribute's number.
    pub fn all_children(&self) -> impl Iterator<Item = (i32, &Arc<Self>)> {
        self.attributes.iter().flat_map(|(&name, attribute)| {
            let descriptors = match &attribute.data {
                Data::Descriptors(descriptors) => descriptors.as_slice(),
                Data::Bytes(_) => &[],
            };
            descriptors.iter().flatten().map(move |descriptor| (name, descriptor))
        })
    }

    fn bytes(&self, name: i32, type_number: i32) -> Option<&[u8]> {
        let attribute =
            self.attributes.get(&name).filter(|attribute| attribute.type_number == type_number)?;
        match &attribute.data {
            Data::Bytes(bytes) => Some(bytes),
            Data::Descriptors(_) => None,
        }
    }

    fn engine_index(&self) -> i64 {
        self.integer(attribute::ENGINE_GLOBAL_INDEX).unwrap_or(0)
    }

    fn engine(index: i64, graph: Option<&Arc<Self>>) -> Arc<Self> {
        let mut engine = Self { finalized: true, ..Self::new(kind::ENGINE) };
        let index = Attribute { type_number: TYPE_INT64, data: Data::Bytes(index.to_le_bytes().to_vec()) };
        engine.attributes.insert(attribute::ENGINE_GLOBAL_INDEX, index);
        engine.set_child(attribute::ENGINE_OPERATION_GRAPH, graph.cloned());
        Arc::new(engine)
    }

    fn set_child(&mut self, name: i32, child: Option<Arc<Self>>) {
        let attribute = Attribute { type_number: TYPE_DESCRIPTOR, data: Data::Descriptors(vec![child]) };
        self.attributes.insert(name, attribute);
    }

    /// The engine of a plan or of an engine configuration.
    fn its_engine(&self) -> Option<&Arc<Self>> {
        match self.kind {
            kind::ENGINECFG => self.child(attribute::ENGINECFG_ENGINE),
            kind::EXECUTION_PLAN => self.child(attribute::EXECUTION_PLAN_ENGINE_CONFIG)?.its_engine(),
            _ => None,
        }
    }
}

impl Dnn {
    /// Creates a backend descriptor.
    ///
    /// # Errors
    /// When there is no such kind.
    pub fn create_backend(&mut self, kind: i32) -> Result<u64, DnnError> {
        if !(0..kind::END).contains(&kind) {
            return Err(DnnError::NotSupported);
        }
        Ok(self.objects.insert(Object::Backend(Arc::new(Descriptor::new(kind)))).0)
    }

    /// Sets an attribute. For descriptors, `bytes` are their handles.
    ///
    /// # Errors
    /// When a handle is not live or the bytes are not whole elements.
    pub fn set_attribute(
        &mut self,
        handle: u64,
        name: i32,
        type_number: i32,
        bytes: &[u8],
    ) -> Result<(), DnnError> {
        if !bytes.len().is_multiple_of(element_size(type_number)) {
            return Err(DnnError::BadParameter);
        }
        let data = if type_number == TYPE_DESCRIPTOR {
            let handles = bytes.as_chunks::<8>().0.iter().map(|chunk| u64::from_le_bytes(*chunk));
            let copies = handles
                .map(|child| if child == 0 { Ok(None) } else { self.backend(child).cloned().map(Some) });
            Data::Descriptors(copies.collect::<Result<_, _>>()?)
        } else {
            Data::Bytes(bytes.to_vec())
        };
        let attribute = Attribute { type_number, data };
        Arc::make_mut(self.backend_mut(handle)?).attributes.insert(name, attribute);
        Ok(())
    }

    /// Finalizes a descriptor; a plan's operation is read now.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn finalize(&mut self, handle: u64) -> Result<(), DnnError> {
        let device = self.device;
        let descriptor = Arc::make_mut(self.backend_mut(handle)?);
        descriptor.finalized = true;
        if descriptor.kind == kind::EXECUTION_PLAN {
            let operation = descriptor.its_engine().map(|engine| {
                let tensor_cores = engine.engine_index() == 0;
                graph::interpret(engine.child(attribute::ENGINE_OPERATION_GRAPH), tensor_cores, device)
            });
            descriptor.operation =
                Some(Arc::new(operation.unwrap_or_else(|| graph::unknown("plan without engine"))));
        }
        Ok(())
    }

    /// What a finalized plan does.
    ///
    /// # Errors
    /// When the handle is no finalized plan.
    pub fn plan(&self, handle: u64) -> Result<Arc<Operation>, DnnError> {
        self.backend(handle)?.operation.clone().ok_or(DnnError::NotFinalized)
    }

    /// Reads an attribute. For descriptors, `places` are the caller's descriptors to fill.
    ///
    /// # Errors
    /// When a handle is not live.
    pub fn get_attribute(
        &mut self,
        handle: u64,
        name: i32,
        requested: i64,
        places: &[u64],
    ) -> Result<Answer, DnnError> {
        let descriptor = Arc::clone(self.backend(handle)?);
        match name {
            attribute::ENGINEHEUR_RESULTS => return self.heuristics(&descriptor, places),
            attribute::OPERATIONGRAPH_ENGINE_GLOBAL_COUNT => return Ok(Answer::integer(ENGINES)),
            attribute::EXECUTION_PLAN_WORKSPACE_SIZE | attribute::ENGINECFG_WORKSPACE_SIZE => {
                return Ok(Answer::integer(self.workspace(&descriptor)));
            }
            // The frontend takes an absent answer for "this engine cannot run here".
            attribute::ENGINECFG_SHARED_MEMORY_USED => return Ok(Answer::number(0)),
            attribute::ENGINE_GLOBAL_INDEX => return Ok(Answer::integer(descriptor.engine_index())),
            attribute::ENGINE_NUMERICAL_NOTE if descriptor.engine_index() == 0 => {
                return Ok(Answer::number(NOTE_TENSOR_CORE));
            }
            attribute::ENGINE_NUMERICAL_NOTE
            | attribute::ENGINE_BEHAVIOR_NOTE
            | attribute::ENGINE_KNOB_INFO
            | attribute::ENGINE_LAYOUT_INFO
            | attribute::ENGINECFG_INTERMEDIATE_INFO => return Ok(Answer::default()),
            attribute::KERNEL_CACHE_IS_ENGINECFG_KERNEL_CACHED => {
                return Ok(Answer { count: 1, bytes: vec![0] });
            }
            attribute::EXECUTION_PLAN_JSON_REPRESENTATION if !descriptor.attributes.contains_key(&name) => {
                return Ok(Answer { count: 3, bytes: b"{}\0".to_vec() });
            }
            _ => {}
        }
        let Some(found) = descriptor.attributes.get(&name) else { return Ok(Answer::default()) };
        match &found.data {
            Data::Bytes(bytes) => {
                let size = element_size(found.type_number);
                let count = (bytes.len() / size) as i64;
                let taken = usize::try_from(requested.clamp(0, count)).unwrap_or(0) * size;
                Ok(Answer { count, bytes: bytes[..taken].to_vec() })
            }
            Data::Descriptors(children) => {
                for (place, child) in places.iter().zip(children.iter().flatten()) {
                    *self.backend_mut(*place)? = Arc::clone(child);
                }
                Ok(Answer { count: children.len() as i64, bytes: Vec::new() })
            }
        }
    }

    /// The engine configurations that a heuristic proposes: the one with tensor cores; as a fall-back both.
    fn heuristics(&mut self, descriptor: &Descriptor, places: &[u64]) -> Result<Answer, DnnError> {
        let fallback = descriptor.number(attribute::ENGINEHEUR_MODE) == Some(HEURISTIC_FALLBACK);
        let count = if fallback { ENGINES } else { 1 };
        let graph = descriptor.child(attribute::ENGINEHEUR_OPERATION_GRAPH);
        for (index, place) in (0..count).zip(places) {
            let mut configuration = Descriptor { finalized: true, ..Descriptor::new(kind::ENGINECFG) };
            configuration.set_child(attribute::ENGINECFG_ENGINE, Some(Descriptor::engine(index, graph)));
            *self.backend_mut(*place)? = Arc::new(configuration);
        }
        Ok(Answer { count, bytes: Vec::new() })
    }

    fn workspace(&self, descriptor: &Descriptor) -> i64 {
        let bytes = match &descriptor.operation {
            Some(operation) => super::workspace::of(operation),
            None => descriptor.its_engine().map_or(0, |engine| {
                let tensor_cores = engine.engine_index() == 0;
                let graph = engine.child(attribute::ENGINE_OPERATION_GRAPH);
                super::workspace::of(&graph::interpret(graph, tensor_cores, self.device))
            }),
        };
        i64::try_from(bytes).unwrap_or(i64::MAX)
    }

    fn backend(&self, handle: u64) -> Result<&Arc<Descriptor>, DnnError> {
        match self.objects.get(handle)? {
            Object::Backend(descriptor) => Ok(descriptor),
            Object::Legacy(_) => Err(DnnError::BadParameter),
        }
    }

    fn backend_mut(&mut self, handle: u64) -> Result<&mut Arc<Descriptor>, DnnError> {
        match self.objects.get_mut(handle)? {
            Object::Backend(descriptor) => Ok(descriptor),
            Object::Legacy(_) => Err(DnnError::BadParameter),
        }
    }
}
