//! `fleet upload` and `fleet manifest`, on a folder of the file system as the store.
#![allow(clippy::disallowed_methods, reason = "tests read and write files")]

use crate::common::{printed, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;

/// A folder with a log, and an empty store.
struct Place {
    folder: tempfile::TempDir,
    log: PathBuf,
    url: String,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("there is room");
        std::fs::create_dir(folder.path().join("store")).expect("there is room");
        let (log, url) = (folder.path().join("log"), format!("file://{}", folder.path().join("store").display()));
        Self { folder, log, url }
    }

    fn record(&self, capture: &str) {
        printed(run(&format!("record {capture} --log"), &[&self.log]), 0);
    }

    fn upload(&self) -> Output {
        run(&format!("fleet upload --host web-1 --to {}", self.url), &[&self.log])
    }

    /// The files of the store, without folders.
    fn objects(&self) -> Vec<PathBuf> {
        let (mut found, mut folders) = (Vec::new(), vec![self.folder.path().join("store")]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("it is there") {
                let path = entry.expect("it is there").path();
                if path.is_dir() { folders.push(path) } else { found.push(path) }
            }
        }
        found.sort();
        found
    }

    fn manifest(&self, position: u64) -> Output {
        let list = std::fs::read_to_string(self.log.join("uploads.jsonl")).expect("it is there");
        let head: Value = serde_json::from_str(list.lines().next().expect("it has a header")).expect("it is JSON");
        let cut = serde_json::json!({"cut": 3, "void": null, "members": [
            {"host": "web-1", "state": "here", "position": position, "folder": head["store"], "schema": "packet"},
        ]});
        let path = self.folder.path().join("cut.json");
        std::fs::write(&path, cut.to_string()).expect("there is room");
        run(&format!("fleet manifest --store {}", self.url), &[&path])
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn a_folder_is_uploaded_once_and_only_then_deleted() {
    let place = Place::new();
    place.record("data/formats/raw-ip.pcap");
    let first = printed(place.upload(), 0);
    assert!(first.starts_with("1 volume (") || first.starts_with("2 volumes ("), "{first}");
    let before = place.objects();
    assert!(printed(place.upload(), 0).starts_with("0 volumes (0 B) uploaded in file:///"));
    assert_eq!(place.objects(), before);
    // The next volume is the oldest that is not uploaded.
    place.record("data/formats/ipv6-http.pcap");
    place.record("data/demo.pcap.xz");
    let kept = printed(run("log keep --size 1B", &[&place.log]), 0);
    assert!(kept.contains("kept because they wait to be uploaded: volumes 1, bytes "), "{kept}");
    let joined = printed(run("log compact", &[&place.log]), 0);
    assert!(joined.contains("after"), "{joined}");
    assert!(printed(place.upload(), 0).starts_with("2 volumes ("));
    let kept = printed(run("log keep --size 1B", &[&place.log]), 0);
    assert!(kept.starts_with("deleted: volumes 1,") && !kept.contains("kept because"), "{kept}");
    // The one that is left is in the store as it is in the folder.
    let newest = place.log.join("archive/date=2021-07-23/00000000000000000181.parquet");
    let object = place.objects().pop().expect("they are there");
    assert_eq!(bytes(&object), bytes(&newest), "{}", object.display());
}

#[test]
fn a_manifest_says_what_the_store_lacks() {
    let place = Place::new();
    place.record("data/formats/ipv6-http.pcap");
    printed(place.upload(), 0);
    let records = 81;
    let whole: Value = serde_json::from_str(&printed(place.manifest(records), 0)).expect("it is JSON");
    assert_eq!(
        (&whole["is_complete"], &whole["kind"], &whole["cut"]),
        (&true.into(), &"cut-manifest".into(), &3.into())
    );
    let object = whole["hosts"][0]["objects"][0]["object"].as_str().expect("it is a URL");
    assert_eq!(Path::new(object.strip_prefix("file://").expect("it is a URL")), place.objects()[0]);
    let more = place.manifest(records + 5);
    assert!(
        errors(&more).contains("the store does not have all records of the cut: web-1 is not complete"),
        "{more:?}"
    );
    let more: Value = serde_json::from_str(&printed(more, 1)).expect("it is JSON");
    assert_eq!(more["hosts"][0]["missing"][0], serde_json::json!({"first": records, "end": records + 5, "records": 5}));
}

#[test]
fn what_cannot_be_uploaded_is_explained() {
    let place = Place::new();
    place.record("data/formats/ipv6-http.pcap");
    let to = |url: &str| {
        let output = run(&format!("fleet upload --host web-1 --to {url}"), &[&place.log]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        errors(&output)
    };
    assert!(to("ftp://example.net/a").contains("its scheme is not known; give file:///DIR, s3://BUCKET/PREFIX"));
    assert!(to("file:///this/is/not/there").contains("/this/is/not/there"));
    let host = run(&format!("fleet upload --host a/b --to {}", place.url), &[&place.log]);
    assert_eq!(host.status.code(), Some(2), "{host:?}");
    let none = run(&format!("fleet upload --host a --to {}", place.url), &[place.folder.path()]);
    assert!(none.status.code() == Some(2) && errors(&none).contains("log.toml"), "{none:?}");
    assert!(place.objects().is_empty() && !place.log.join("uploads.jsonl").exists());
}
