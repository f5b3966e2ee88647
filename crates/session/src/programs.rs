//! Programs that answer for the pretended node: `nvidia-smi`, which scripts and launchers ask for device names and
//! memory.
//!
//! The program is a shell script whose answers are written into it, so that it needs nothing but `sh`: the table, `-L`,
//! and `--query-gpu=FIELDS --format=csv[,noheader][,nounits]` for the fields of [`fields`]. Nothing is in use, since
//! nothing runs for real.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use trompe_hardware::EmulatedNode;

use crate::{SessionError, disk};

/// Writes the programs into `folder` and returns it.
///
/// # Errors
/// When the folder cannot be written to.
pub(crate) fn write(folder: &Path, node: &EmulatedNode) -> Result<PathBuf, SessionError> {
    fs::create_dir_all(folder).map_err(|source| SessionError::writing(folder, source))?;
    let path = folder.join("nvidia-smi");
    disk::write(&path, script(node).as_bytes())?;
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&path, executable).map_err(|source| SessionError::writing(&path, source))?;
    Ok(folder.to_owned())
}

/// Fields of `--query-gpu` with their unit and, per device, their value.
fn fields(node: &EmulatedNode, index: u32) -> Vec<(&'static str, &'static str, String)> {
    let device = &node.device;
    let pci = node.pci(index);
    let mib = |bytes: trompe_base::Bytes| (bytes.0 >> 20).to_string();
    let clock = |hertz: trompe_hardware::Hertz| format!("{:.0}", hertz.0 / 1e6);
    vec![
        ("index", "", index.to_string()),
        ("count", "", node.device_count.to_string()),
        ("name", "", device.marketing_name.clone()),
        ("gpu_name", "", device.marketing_name.clone()),
        ("uuid", "", node.uuid_text(index)),
        ("gpu_uuid", "", node.uuid_text(index)),
        ("driver_version", "", node.software.driver.clone()),
        ("pci.bus_id", "", format!("{:08X}:{:02X}:{:02X}.0", pci.domain, pci.bus, pci.device)),
        ("memory.total", "MiB", mib(device.memory.nvml_total)),
        ("memory.used", "MiB", "0".to_owned()),
        ("memory.free", "MiB", mib(device.memory.nvml_total)),
        ("utilization.gpu", "%", "0".to_owned()),
        ("utilization.memory", "%", "0".to_owned()),
        ("temperature.gpu", "", "30".to_owned()),
        ("power.limit", "W", format!("{:.2}", device.power.board.0)),
        (
            "compute_cap",
            "",
            format!("{}.{}", device.compute.capability_major, device.compute.capability_minor),
        ),
        ("clocks.max.sm", "MHz", clock(device.compute.boost_clock)),
        ("clocks.max.memory", "MHz", clock(device.memory.clock)),
        ("ecc.mode.current", "", if device.memory.ecc { "Enabled" } else { "Disabled" }.to_owned()),
        ("mig.mode.current", "", "Disabled".to_owned()),
    ]
}

fn script(node: &EmulatedNode) -> String {
    let devices: Vec<_> = (0..node.device_count).map(|index| fields(node, index)).collect();
    let mut text = String::from(HEAD);
    let line = |text: &mut String, parts: std::fmt::Arguments<'_>| {
        text.write_fmt(parts).expect("writing to a string cannot fail");
        text.push('\n');
    };
    line(&mut text, format_args!("count={}", node.device_count));
    text.push_str("unit() {\n  case $1 in\n");
    for (name, unit, _) in devices.first().into_iter().flatten() {
        line(&mut text, format_args!("    {name}) echo '{unit}' ;;"));
    }
    text.push_str("    *) return 1 ;;\n  esac\n}\nvalue() {\n  case $1:$2 in\n");
    for (index, fields) in devices.iter().enumerate() {
        for (name, _, value) in fields {
            line(&mut text, format_args!("    {index}:{name}) echo '{}' ;;", value.replace('\'', "")));
        }
    }
    text.push_str("    *) return 1 ;;\n  esac\n}\ntable() {\n  cat <<'END'\n");
    text.push_str(&table(node));
    text.push_str("END\n}\n");
    text.push_str(BODY);
    text
}

/// The table that `nvidia-smi` prints without arguments.
fn table(node: &EmulatedNode) -> String {
    let (major, minor) = (node.software.cuda_driver / 1000, node.software.cuda_driver % 1000 / 10);
    let mut text = format!(
        "trompe: an emulated node, no GPU is present\n\
         | NVIDIA-SMI {driver}   Driver Version: {driver}   CUDA Version: {major}.{minor} |\n",
        driver = node.software.driver
    );
    for index in 0..node.device_count {
        let total = node.device.memory.nvml_total.0 >> 20;
        let name = &node.device.marketing_name;
        writeln!(text, "| {index:>3}  {name:<32} |  0MiB / {total:>6}MiB |  0% |")
            .expect("writing to a string cannot fail");
    }
    text
}

const HEAD: &str = "#!/bin/sh\n# Written by trompe: answers for the emulated node.\n";

const BODY: &str = r#"list() {
  index=0
  while [ "$index" -lt "$count" ]; do
    echo "GPU $index: $(value $index name) (UUID: $(value $index uuid))"
    index=$((index + 1))
  done
}
query() {
  header=yes; units=yes
  case ,$format, in *,noheader,*) header=no ;; esac
  case ,$format, in *,nounits,*) units=no ;; esac
  for field in $(echo "$fields" | tr , ' '); do
    unit "$field" >/dev/null || { echo "Field \"$field\" is not a valid field to query."; exit 2; }
  done
  if [ $header = yes ]; then
    line=
    for field in $(echo "$fields" | tr , ' '); do
      name=$field
      [ $units = yes ] && [ -n "$(unit $field)" ] && name="$field [$(unit $field)]"
      line="$line${line:+, }$name"
    done
    echo "$line"
  fi
  index=0
  while [ "$index" -lt "$count" ]; do
    if [ -z "$only" ] || [ "$only" = "$index" ]; then
      line=
      for field in $(echo "$fields" | tr , ' '); do
        text=$(value $index $field)
        [ $units = yes ] && [ -n "$(unit $field)" ] && text="$text $(unit $field)"
        line="$line${line:+, }$text"
      done
      echo "$line"
    fi
    index=$((index + 1))
  done
}
fields=; format=csv; only=; do=table
while [ $# -gt 0 ]; do
  case $1 in
    -L|--list-gpus) do=list ;;
    --query-gpu=*) fields=${1#*=}; do=query ;;
    --query-gpu) shift; fields=$1; do=query ;;
    --format=*) format=${1#*=} ;;
    --format) shift; format=$1 ;;
    -i) shift; only=$1 ;;
    --id=*|-i=*) only=${1#*=} ;;
    *) echo "trompe: this nvidia-smi answers -L, --query-gpu and the plain table, not $1" >&2; exit 2 ;;
  esac
  shift
done
$do
"#;

#[cfg(test)]
mod tests {
    use std::process::Command;

    use trompe_hardware::resolve;

    use super::*;

    #[track_caller]
    fn check(cluster: &str, arguments: &[&str], expect: &str) {
        let folder = tempfile::tempdir().unwrap();
        let node = EmulatedNode::new(&resolve(cluster).unwrap().node);
        let path = write(folder.path(), &node).unwrap().join("nvidia-smi");
        let output = Command::new(path).args(arguments).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(expect), "{text}");
    }

    #[test]
    fn queries_are_answered_from_the_sheet() {
        let query = "--query-gpu=index,name,memory.total";
        check("h100-sxm", &[query, "--format=csv,noheader"], "0, NVIDIA H100 80GB HBM3, 81559 MiB\n");
        check("h100-sxm", &[query, "--format=csv,noheader,nounits"], "0, NVIDIA H100 80GB HBM3, 81559\n");
        check("h100-sxm", &[query, "--format=csv"], "index, name, memory.total [MiB]\n");
        check("h100-sxm:4", &["--query-gpu=index", "--format=csv,noheader"], "0\n1\n2\n3\n");
        check("h100-sxm:4", &["-i", "2", "--query-gpu=index", "--format=csv,noheader"], "2\n");
        check("h100-sxm", &["--query-gpu=colour", "--format=csv"], "\"colour\" is not a valid field");
    }

    #[test]
    fn lists_and_tables() {
        check("h100-sxm", &["-L"], "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-");
        check("a100-sxm4-80", &[], "NVIDIA A100-SXM4-80GB");
    }
}
