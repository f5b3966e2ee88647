//! The built-in sheets, and how sheets refer to each other.

use std::collections::BTreeMap;
use std::path::Path;

use include_dir::{Dir, include_dir};
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::cited::{Provenance, plain};
use super::schema::Kind;
use super::{Counts, HardwareError};
use crate::{ClusterSheet, DeviceSheet, HostSheet, NetworkKind, NodeSheet};

static SHEETS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/sheets");

/// All built-in sheets, and the way to read others on top of them.
#[derive(Clone, Debug)]
pub struct Catalogue {
    sheets: BTreeMap<String, Sheet>,
}

/// One TOML file before its references are followed.
#[derive(Clone, Debug)]
pub(crate) struct Sheet {
    name: String,
    kind: Kind,
    table: Table,
    /// Folder to which its own references are relative; `None` for a built-in sheet.
    folder: Option<std::path::PathBuf>,
}

impl Catalogue {
    /// The sheets that are part of this build.
    ///
    /// # Panics
    /// When a built-in sheet is no TOML, which the crate's tests rule out.
    #[must_use]
    pub fn builtin() -> Self {
        let mut sheets = BTreeMap::new();
        let files = SHEETS.dirs().flat_map(Dir::files);
        for file in files.filter(|file| file.path().extension().is_some_and(|e| e == "toml")) {
            let text = file.contents_utf8().expect("built-in sheets are UTF-8");
            let origin = file.path().display().to_string();
            let sheet = Sheet::parse(&origin, text, None).unwrap_or_else(|error| panic!("{error}"));
            sheets.insert(sheet.name.clone(), sheet);
        }
        Self { sheets }
    }

    /// Names of all devices that run CUDA, in order.
    #[must_use]
    pub fn devices(&self) -> Vec<&str> {
        self.of_kind(Kind::Device).filter(|sheet| !sheet.is_npu()).map(|sheet| sheet.name.as_str()).collect()
    }

    /// Names of all NPUs, in order.
    #[must_use]
    pub fn npus(&self) -> Vec<&str> {
        self.of_kind(Kind::Device).filter(|sheet| sheet.is_npu()).map(|sheet| sheet.name.as_str()).collect()
    }

    /// Names of all nodes, in order.
    #[must_use]
    pub fn nodes(&self) -> Vec<&str> {
        self.names(Kind::Node)
    }

    /// Names of all clusters, in order.
    #[must_use]
    pub fn clusters(&self) -> Vec<&str> {
        self.names(Kind::Cluster)
    }

    /// Names of all hosts, in order.
    #[must_use]
    pub fn hosts(&self) -> Vec<&str> {
        self.names(Kind::Host)
    }

    /// The device that `name` or an alias means.
    ///
    /// # Errors
    /// When there is none, or its sheet is not complete.
    pub fn device(&self, name: &str) -> Result<DeviceSheet, HardwareError> {
        self.device_of(&self.find(name)?)
    }

    /// The node that `name` or an alias means.
    ///
    /// # Errors
    /// When there is none, or its sheet is not complete.
    pub fn node(&self, name: &str) -> Result<NodeSheet, HardwareError> {
        self.node_of(&self.find(name)?)
    }

    /// The host that `name` means.
    ///
    /// # Errors
    /// When there is none, or its sheet is not complete.
    pub fn host(&self, name: &str) -> Result<HostSheet, HardwareError> {
        self.host_of(&self.find(name)?)
    }

    /// The host that recorded times on `processor`, as an operating system names it.
    #[must_use]
    pub fn host_with(&self, processor: &str) -> Option<HostSheet> {
        let hosts = self.hosts().into_iter().filter_map(|name| self.host(name).ok());
        hosts.into_iter().find(|host| host.has_processor(processor))
    }

    /// The host that a sheet describes.
    pub(crate) fn host_of(&self, sheet: &Sheet) -> Result<HostSheet, HardwareError> {
        self.finish(sheet, Kind::Host)
    }

    /// The cluster that `name` or an alias means.
    ///
    /// # Errors
    /// When there is none, or its sheet is not complete.
    pub fn cluster_named(&self, name: &str) -> Result<ClusterSheet, HardwareError> {
        self.cluster(self.find(name)?, Counts::None, name)
    }

    /// Where each number of the sheet `name` comes from.
    ///
    /// # Errors
    /// When there is no such sheet, or one of its numbers has no source.
    pub fn provenance(&self, name: &str) -> Result<Provenance, HardwareError> {
        let sheet = self.find(name)?;
        let table = self.inherited(&sheet, 0)?;
        Ok(plain(&sheet.name, sheet.kind, &table)?.1)
    }

    fn names(&self, kind: Kind) -> Vec<&str> {
        self.of_kind(kind).map(|sheet| sheet.name.as_str()).collect()
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Sheet> {
        self.sheets.values().filter(move |sheet| sheet.kind == kind)
    }

    /// The built-in sheet of this name or alias.
    pub(crate) fn find(&self, name: &str) -> Result<Sheet, HardwareError> {
        let wanted = name.trim().to_ascii_lowercase().replace('_', "-");
        let found = self
            .sheets
            .get(&wanted)
            .or_else(|| self.sheets.values().find(|sheet| sheet.aliases().any(|alias| alias == wanted)));
        found.cloned().ok_or_else(|| self.unknown(name, &wanted))
    }

    fn unknown(&self, name: &str, wanted: &str) -> HardwareError {
        let known = || self.sheets.values().filter(|sheet| sheet.kind != Kind::Host);
        let nearest = known()
            .flat_map(|sheet| std::iter::once(sheet.name.as_str()).chain(sheet.aliases()))
            .map(|candidate| (strsim::damerau_levenshtein(candidate, wanted), candidate))
            .min()
            .filter(|(distance, candidate)| *distance <= candidate.len().max(wanted.len()) / 2);
        HardwareError::UnknownName {
            name: name.to_owned(),
            nearest: nearest.map(|(_, candidate)| candidate.to_owned()),
            known: known().map(|sheet| sheet.name.clone()).collect(),
        }
    }

    /// Reads a user's own sheet.
    pub(crate) fn read_file(&self, path: &Path) -> Result<Sheet, HardwareError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| HardwareError::Read { path: path.to_owned(), error })?;
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        Sheet::parse(&path.display().to_string(), &text, Some(folder))
    }

    /// The sheet that `sheet` refers to: a file beside it, or a built-in one.
    fn referred(&self, sheet: &Sheet, reference: &str) -> Result<Sheet, HardwareError> {
        match &sheet.folder {
            Some(folder) if reference.ends_with(".toml") => self.read_file(&folder.join(reference)),
            _ => self.find(reference),
        }
    }

    /// The sheet's table laid over that of its `base`, as deep as they go.
    fn inherited(&self, sheet: &Sheet, depth: u32) -> Result<Table, HardwareError> {
        const DEEPEST: u32 = 16;
        let Some(base) = sheet.table.get("base").and_then(Value::as_str) else {
            return Ok(sheet.table.clone());
        };
        if depth == DEEPEST {
            return Err(HardwareError::Circle { sheet: sheet.name.clone() });
        }
        let base = self.referred(sheet, base)?;
        if base.kind != sheet.kind {
            return Err(base.is_not(sheet.kind));
        }
        let mut table = self.inherited(&base, depth + 1)?;
        // An heir answers to its own names only.
        table.remove("aliases");
        lay_over(&mut table, &sheet.table);
        Ok(table)
    }

    fn finish<T: DeserializeOwned>(&self, sheet: &Sheet, kind: Kind) -> Result<T, HardwareError> {
        if sheet.kind != kind {
            return Err(sheet.is_not(kind));
        }
        let (table, _) = plain(&sheet.name, kind, &self.inherited(sheet, 0)?)?;
        deserialise(&sheet.name, table)
    }

    fn device_of(&self, sheet: &Sheet) -> Result<DeviceSheet, HardwareError> {
        self.finish(sheet, Kind::Device)
    }

    fn node_of(&self, sheet: &Sheet) -> Result<NodeSheet, HardwareError> {
        if sheet.kind != Kind::Node {
            return Err(sheet.is_not(Kind::Node));
        }
        let (mut table, _) = plain(&sheet.name, Kind::Node, &self.inherited(sheet, 0)?)?;
        for kind in [Kind::Device, Kind::Host] {
            let Some(reference) = table.get(kind.name()).and_then(Value::as_str) else { continue };
            let part = self.referred(sheet, reference)?;
            if part.kind != kind {
                return Err(part.is_not(kind));
            }
            let (part, _) = plain(&part.name, kind, &self.inherited(&part, 0)?)?;
            table.insert(kind.name().to_owned(), Value::Table(part));
        }
        deserialise(&sheet.name, table)
    }

    /// The cluster of `sheet` counted by `counts`.
    pub(crate) fn cluster(
        &self,
        sheet: Sheet,
        counts: Counts,
        spec: &str,
    ) -> Result<ClusterSheet, HardwareError> {
        let bad_count = |count: String| HardwareError::Count { spec: spec.to_owned(), count };
        let of_nodes = |node, node_count| ClusterSheet {
            name: spec.to_owned(),
            node,
            node_count,
            oversubscription: 1.0,
            network: NetworkKind::default(),
            nodes_per_leaf: None,
            sharp: false,
        };
        match (sheet.kind, counts) {
            (Kind::Host, _) => Err(sheet.is_not(Kind::Device)),
            (Kind::Device, _) => {
                let (devices, nodes) = match counts {
                    Counts::None => (1, 1),
                    Counts::One(devices) => (devices, 1),
                    Counts::Two(devices, nodes) => (devices, nodes),
                };
                Ok(of_nodes(self.node_around(&sheet, devices)?, nodes))
            }
            (Kind::Node, Counts::None) => Ok(of_nodes(self.node_of(&sheet)?, 1)),
            (Kind::Node, Counts::One(nodes)) => Ok(of_nodes(self.node_of(&sheet)?, nodes)),
            (Kind::Cluster, Counts::None | Counts::One(_)) => {
                let (mut table, _) = plain(&sheet.name, Kind::Cluster, &self.inherited(&sheet, 0)?)?;
                let node = table.get("node").and_then(Value::as_str).unwrap_or_default();
                let node = self.node_of(&self.referred(&sheet, node)?)?;
                table.insert("node".to_owned(), Value::try_from(node).expect("a node sheet is plain data"));
                table.remove("aliases");
                let mut cluster: ClusterSheet = deserialise(&sheet.name, table)?;
                if let Counts::One(nodes) = counts {
                    cluster.node_count = nodes;
                }
                Ok(cluster)
            }
            (Kind::Node, Counts::Two(devices, nodes)) => Err(bad_count(format!("{devices}x{nodes}"))),
            (Kind::Cluster, Counts::Two(devices, nodes)) => Err(bad_count(format!("{devices}x{nodes}"))),
        }
    }

    /// A node with `count` of the device of `sheet`, otherwise like the device's home.
    fn node_around(&self, sheet: &Sheet, count: u32) -> Result<NodeSheet, HardwareError> {
        let device = self.device_of(sheet)?;
        let home = self.node_of(&self.referred(sheet, &device.home)?)?;
        if count > home.device_count {
            return Err(HardwareError::TooManyDevices {
                asked: count,
                node: home.name,
                holds: home.device_count,
                device: device.name,
                nodes: count.div_ceil(home.device_count),
            });
        }
        // One network adapter per device stays with its device.
        let nic_count = (home.nic_count * count).div_ceil(home.device_count);
        Ok(NodeSheet {
            name: device.name.clone(),
            aliases: Vec::new(),
            device,
            device_count: count,
            nic_count,
            ..home
        })
    }
}

impl Sheet {
    fn parse(origin: &str, text: &str, folder: Option<std::path::PathBuf>) -> Result<Self, HardwareError> {
        let table: Table = text
            .parse()
            .map_err(|error| HardwareError::Syntax { sheet: origin.to_owned(), error: Box::new(error) })?;
        let incomplete = |message: &str| HardwareError::Incomplete {
            sheet: origin.to_owned(),
            message: message.to_owned(),
        };
        let kind = table
            .get("kind")
            .and_then(Value::as_str)
            .and_then(Kind::parse)
            .ok_or_else(|| incomplete("`kind` must be `device`, `host`, `node` or `cluster`"))?;
        let name =
            table.get("name").and_then(Value::as_str).ok_or_else(|| incomplete("`name` is missing"))?;
        Ok(Self { name: name.to_owned(), kind, folder, table })
    }

    fn aliases(&self) -> impl Iterator<Item = &str> {
        self.table.get("aliases").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    fn is_npu(&self) -> bool {
        self.table.contains_key("npu")
    }

    fn is_not(&self, expected: Kind) -> HardwareError {
        HardwareError::Kind {
            name: self.name.clone(),
            found: self.kind.name().to_owned(),
            expected: expected.name(),
        }
    }
}

/// Lays `over` on `table`: tables merge, but a cited number is replaced as a whole.
fn lay_over(table: &mut Table, over: &Table) {
    for (key, value) in over {
        match (table.get_mut(key), value) {
            (Some(Value::Table(below)), Value::Table(above))
                if !below.contains_key("value") && !above.contains_key("value") =>
            {
                lay_over(below, above);
            }
            _ => {
                table.insert(key.clone(), value.clone());
            }
        }
    }
}

fn deserialise<T: DeserializeOwned>(sheet: &str, table: Table) -> Result<T, HardwareError> {
    T::deserialize(Value::Table(table)).map_err(|error| HardwareError::Incomplete {
        sheet: sheet.to_owned(),
        message: error.message().to_owned(),
    })
}
