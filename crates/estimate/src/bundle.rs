//! What a user's measurements become: exact measurements and models, in one file.

use serde::{Deserialize, Serialize};

use crate::features::Family;
use crate::model::{Model, ModelError};
use crate::table::Table;

const MAGIC: &[u8] = b"trompe-bundle";

/// Version of the file format.
const VERSION: u32 = 1;

/// Measurements and models that go together.
#[derive(Clone, Debug, Default)]
pub struct Bundle {
    /// Exact measurements.
    pub table: Table,
    /// Models.
    pub models: Vec<Model>,
    /// Families whose built-in models the bundle's replace; of the others they are a correction or an addition.
    pub replaces: Vec<Family>,
}

#[derive(Serialize, Deserialize)]
struct Packed {
    table: Table,
    models: Vec<Vec<u8>>,
    replaces: Vec<Family>,
}

impl Bundle {
    /// The file's bytes.
    ///
    /// # Panics
    /// Never: what is written was made by this program.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let packed = Packed {
            table: self.table.clone(),
            models: self.models.iter().map(Model::to_bytes).collect(),
            replaces: self.replaces.clone(),
        };
        let plain = postcard::to_stdvec(&packed).expect("plain data serialises");
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend(zstd::encode_all(plain.as_slice(), 3).expect("memory can be written"));
        bytes
    }

    /// The bundle of a file's bytes; a single model's file is a bundle that holds just that.
    ///
    /// # Errors
    /// When the bytes are neither, are damaged, or belong to another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ModelError> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            return Ok(Self { models: vec![Model::from_bytes(bytes)?], ..Self::default() });
        };
        let damaged = |reason: String| ModelError::Damaged { reason };
        let (Some(header), Some(body)) = (rest.first_chunk::<4>(), rest.get(4..)) else {
            return Err(ModelError::NotAModel);
        };
        let found = u32::from_le_bytes(*header);
        if found != VERSION {
            return Err(ModelError::OtherFormat { found, expected: VERSION });
        }
        let plain = zstd::decode_all(body).map_err(|error| damaged(error.to_string()))?;
        let packed: Packed = postcard::from_bytes(&plain).map_err(|error| damaged(error.to_string()))?;
        let models = packed.models.iter().map(|bytes| Model::from_bytes(bytes)).collect::<Result<_, _>>()?;
        Ok(Self { table: packed.table, models, replaces: packed.replaces })
    }
}
