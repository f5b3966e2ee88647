//! The messages of Chakra's execution traces.
//!
//! mlcommons/chakra, `schema/protobuf/et_def.proto` (version 0.0.4), restated field by field; numbers are the format's. A
//! file is one [`GlobalMetadata`] and then [`Node`]s, each with its length in front.

use prost::{Message, Oneof};

/// Head of a file.
#[derive(Clone, PartialEq, Message)]
pub struct GlobalMetadata {
    /// Version of the schema.
    #[prost(string, tag = "1")]
    pub version: String,
    /// Whatever else is to be told.
    #[prost(message, repeated, tag = "2")]
    pub attributes: Vec<Attribute>,
}

/// Kinds of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum NodeType {
    Invalid = 0,
    Metadata = 1,
    MemoryLoad = 2,
    MemoryStore = 3,
    Compute = 4,
    Send = 5,
    Receive = 6,
    Collective = 7,
}

/// Collective operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum CommunicationType {
    AllReduce = 0,
    Reduce = 1,
    AllGather = 2,
    Gather = 3,
    Scatter = 4,
    Broadcast = 5,
    AllToAll = 6,
    ReduceScatter = 7,
    ReduceScatterBlock = 8,
    Barrier = 9,
}

/// One operation.
#[derive(Clone, PartialEq, Message)]
pub struct Node {
    /// Its number.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Its name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Its kind.
    #[prost(enumeration = "NodeType", tag = "3")]
    pub kind: i32,
    /// Nodes that must be done first, by control.
    #[prost(uint64, repeated, tag = "4")]
    pub control: Vec<u64>,
    /// Nodes that must be done first, by data.
    #[prost(uint64, repeated, tag = "5")]
    pub data: Vec<u64>,
    /// Start in microseconds.
    #[prost(uint64, tag = "6")]
    pub start_micros: u64,
    /// Duration in microseconds.
    #[prost(uint64, tag = "7")]
    pub duration_micros: u64,
    /// What goes in.
    #[prost(message, optional, tag = "8")]
    pub inputs: Option<Values>,
    /// What comes out.
    #[prost(message, optional, tag = "9")]
    pub outputs: Option<Values>,
    /// Everything else, by name.
    #[prost(message, repeated, tag = "10")]
    pub attributes: Vec<Attribute>,
}

/// Arguments as text.
#[derive(Clone, PartialEq, Message)]
pub struct Values {
    /// Values.
    #[prost(string, tag = "1")]
    pub values: String,
    /// Shapes.
    #[prost(string, tag = "2")]
    pub shapes: String,
    /// Types.
    #[prost(string, tag = "3")]
    pub types: String,
}

/// A named value.
#[derive(Clone, PartialEq, Message)]
pub struct Attribute {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The value. Lists other than of truth values are passed over.
    #[prost(oneof = "Value", tags = "3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 28, 29")]
    pub value: Option<Value>,
}

/// A value.
#[derive(Clone, PartialEq, Oneof)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Value {
    #[prost(double, tag = "3")]
    Double(f64),
    #[prost(float, tag = "5")]
    Float(f32),
    #[prost(int32, tag = "7")]
    Int32(i32),
    #[prost(int64, tag = "9")]
    Int64(i64),
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    #[prost(sfixed32, tag = "23")]
    SignedFixed32(i32),
    #[prost(sfixed64, tag = "25")]
    SignedFixed64(i64),
    #[prost(bool, tag = "27")]
    Bool(bool),
    #[prost(message, tag = "28")]
    BoolList(BoolList),
    #[prost(string, tag = "29")]
    Text(String),
}

/// Truth values.
#[derive(Clone, PartialEq, Message)]
pub struct BoolList {
    /// The values.
    #[prost(bool, repeated, tag = "1")]
    pub values: Vec<bool>,
}

impl Node {
    /// The value of an attribute.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|attribute| attribute.name == name)?.value.as_ref()
    }

    /// An attribute as a whole number, whatever kind of number it is.
    #[must_use]
    pub fn integer(&self, name: &str) -> Option<i64> {
        Some(match *self.attribute(name)? {
            Value::Int32(value) | Value::Sint32(value) | Value::SignedFixed32(value) => value.into(),
            Value::Int64(value) | Value::Sint64(value) | Value::SignedFixed64(value) => value,
            Value::Uint32(value) | Value::Fixed32(value) => value.into(),
            Value::Uint64(value) | Value::Fixed64(value) => i64::try_from(value).ok()?,
            Value::Bool(value) => value.into(),
            Value::Text(ref text) => text.parse().ok()?,
            _ => return None,
        })
    }

    /// An attribute as text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.attribute(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Adds a value by name.
pub(super) fn attribute(name: &str, value: Value) -> Attribute {
    Attribute { name: name.to_owned(), value: Some(value) }
}
