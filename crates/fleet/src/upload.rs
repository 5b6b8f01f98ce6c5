//! Uploads sealed volumes to object storage, where other programs query the history of the whole fleet.
//!
//! - [`UploadTarget`]: a place in a store, from a URL.
//! - [`VolumeObject`]: the names of objects, which say what they hold. Their folders are partitions in Hive's layout.
//! - [`Uploader`]: uploads what waits, compares it with what the store returns, and confirms it. It can be stopped at any point.
//! - [`CutManifest`]: which objects have the records of a cut, and what is not uploaded yet.

mod connector;
mod error;
mod manifest;
mod object;
mod status;
mod target;
mod uploader;

pub use error::UploadError;
pub use manifest::{CutManifest, HostManifest, ManifestObject, Missing};
pub use object::{HOUR, PARTITIONS, VolumeObject};
pub use status::{UploadCounts, UploadStatus};
pub use target::UploadTarget;
pub use uploader::{UploadEvent, UploadParams, Uploader};
