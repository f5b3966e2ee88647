//! A user's own sheets: inheritance, and one clear message for each mistake.
#![cfg(feature = "loader")]

use std::fs;

use trompe_base::Bytes;
use trompe_hardware::resolve;

/// What resolving a file with this text gives, as the total memory or the message.
fn outcome(text: &str) -> Result<Bytes, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    fs::write(&path, text).unwrap();
    resolve(path.to_str().unwrap())
        .map(|cluster| cluster.device().memory.total)
        .map_err(|error| error.to_string())
}

#[track_caller]
fn refused(text: &str, message: &str) {
    let error = outcome(text).expect_err("the sheet is wrong");
    assert!(error.contains(message), "`{error}` does not say `{message}`");
}

const PRETEND: &str = r#"kind = "device"
name = "pretend"
base = "h100-sxm5-80"
"#;

#[test]
fn a_device_inherits_and_overrides() {
    let text = format!(
        "{PRETEND}[sources]\nmine = \"a pretend device\"\n[memory]\ntotal = {{ value = 1, unit = \"TiB\", source = \"mine\" }}\n"
    );
    assert_eq!(outcome(&text), Ok(Bytes(1 << 40)));
    let free =
        format!("{PRETEND}[memory]\ntotal = {{ value = 2, unit = \"TB\", source = \"a pretend device\" }}\n");
    assert_eq!(outcome(&free), Ok(Bytes(2_000_000_000_000)));
}

#[test]
fn a_cluster_file_refers_to_a_node_file_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("device.toml", PRETEND);
    write(
        "node.toml",
        "kind = \"node\"\nname = \"n\"\nbase = \"dgx-h100\"\ndevice = \"device.toml\"\ndevice_count = { value = 4, source = \"my own node\" }\n",
    );
    write(
        "cluster.toml",
        "kind = \"cluster\"\nname = \"c\"\nnode = \"node.toml\"\nnode_count = { value = 3, source = \"my own cluster\" }\noversubscription = { value = 2, source = \"my own cluster\" }\n",
    );
    let at = |name: &str| folder.path().join(name).display().to_string();
    let cluster = resolve(&at("cluster.toml")).unwrap();
    assert_eq!((cluster.device_count(), cluster.oversubscription), (12, 2.0));
    assert_eq!(cluster.device().name, "pretend");
    assert_eq!(resolve(&format!("{}:5", at("node.toml"))).unwrap().node_count, 5);
    assert_eq!(resolve(&format!("{}:8", at("device.toml"))).unwrap().node.device_count, 8);
}

#[test]
fn each_mistake_has_its_message() {
    refused(&format!("{PRETEND}[memory]\ntotal = 5\n"), "has no source");
    refused(&format!("{PRETEND}[memory]\ntotal = {{ value = 5, unit = \"B\" }}\n"), "has no source");
    refused(
        &format!("{PRETEND}[memory]\ntotal = {{ value = 5, unit = \"B\", source = \"nowhere\" }}\n"),
        "`nowhere`",
    );
    refused(
        &format!("{PRETEND}[memory]\ntotal = {{ value = 5, unit = \"GB/s\", source = \"my guess\" }}\n"),
        "`GB/s`",
    );
    refused(
        &format!("{PRETEND}[memory]\ntotal = {{ value = -5, unit = \"B\", source = \"my guess\" }}\n"),
        "negative",
    );
    refused(
        &format!("{PRETEND}[memory]\nsize = {{ value = 5, unit = \"B\", source = \"my guess\" }}\n"),
        "`memory.size`",
    );
    refused(
        &format!("{PRETEND}[compute]\nsm_count = {{ value = 1.5, source = \"my guess\" }}\n"),
        "whole number",
    );
    refused("kind = \"device\"\nname = \"x\"\n", "is not complete");
    refused("name = \"x\"\n", "`kind`");
    refused("kind = \n", "no valid TOML");
    refused("kind = \"device\"\nname = \"x\"\nbase = \"mine.toml\"\n", "inherits from itself");
    refused("kind = \"device\"\nname = \"x\"\nbase = \"dgx-h100\"\n", "is a node but a device");
}

#[test]
fn an_unknown_name_suggests_the_nearest() {
    let check = |spec: &str, message: &str| {
        let error = resolve(spec).expect_err("no such name").to_string();
        assert!(error.contains(message), "`{error}` does not say `{message}`");
    };
    check("h100-smx", "did you mean `h100-sxm`");
    check("dgx-h10", "did you mean `dgx-h100`");
    check("rtx-409", "did you mean `rtx-4090`");
    check("something-else-entirely", "known: a100-pcie-80");
    check("h100:0", "`0`");
    check("dgx-h100:many", "`many`");
    check("dgx-h100:8x2", "`8x2`");
    check("h100:16", "h100-sxm5-80:8x2");
    check("generic", "is a host but a device");
    check("missing-file.toml", "cannot read the sheet");
}
