//! Reads any text as the name of an uploaded volume, and as a cut that a manifest is made of. A name that is read is printed the same; a manifest
//! of a store without objects has none, and lacks all records before the positions.

#![no_main]

use libfuzzer_sys::fuzz_target;
use queuescope_fleet::upload::{CutManifest, UploadTarget, VolumeObject};
use std::sync::LazyLock;
use tokio::runtime::{Builder, Runtime};

/// An empty store.
static STORE: LazyLock<(Runtime, UploadTarget)> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("queuescope-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is room");
    let target = UploadTarget::parse(&format!("file://{}", folder.display()), &[]).expect("it is there");
    (Builder::new_current_thread().enable_all().build().expect("it can start"), target)
});

fuzz_target!(|text: &str| {
    if let Some(object) = VolumeObject::parse(text) {
        assert_eq!(object.to_string(), text);
        assert!(object.first < object.end && object.overlaps(&object));
    }
    let (runtime, target) = &*STORE;
    let Ok(manifest) = runtime.block_on(CutManifest::make(text, target)) else { return };
    for host in &manifest.hosts {
        let missing: u64 = host.missing.iter().map(|missing| missing.records).sum();
        assert_eq!((host.objects.len(), missing), (0, host.position.unwrap_or(0)));
    }
});
