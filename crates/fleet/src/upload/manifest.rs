//! Which objects have the records of a cut.
//!
//! A cut has a position for each host: the records before it belong to the cut. The names of objects have the positions of their records, so a
//! listing shows what the store has of a cut, and what is not there: not uploaded yet, or removed. A manifest can be made again
//! at any time; when nothing is missing any more, it is complete for ever.

use super::uploader::within;
use super::{UploadError, UploadTarget, VolumeObject};
use crate::identity::MemberName;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio_stream::StreamExt;

/// The most time for each answer of a listing.
const LISTING: Duration = Duration::from_secs(300);
/// The version of manifests.
const FORMAT: u32 = 1;

/// The objects of a cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutManifest {
    /// The version of the format: 1.
    pub format_version: u32,
    /// Always `cut-manifest`.
    pub kind: String,
    /// The number of the cut.
    pub cut: u64,
    /// Where the objects are.
    pub store: String,
    /// Whether the store has all records of the cut, of all hosts.
    pub is_complete: bool,
    /// The hosts, by name.
    pub hosts: Vec<HostManifest>,
}

/// The objects of a host in a cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostManifest {
    /// The host.
    pub host: String,
    /// The schema of its records.
    pub schema: String,
    /// The position of the cut: its records before this one belong to the cut. `None`: the host is not in the cut.
    pub position: Option<u64>,
    /// The objects that have records before the position. The last may have later ones, too.
    pub objects: Vec<ManifestObject>,
    /// The number of records of the cut that the host lost itself; they are nowhere.
    pub lost: u64,
    /// Records of the cut that the store does not have.
    pub missing: Vec<Missing>,
}

/// An object of a cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestObject {
    /// Its URL.
    pub object: String,
    /// The position of its first record.
    pub first: u64,
    /// The position behind its last record.
    pub end: u64,
    /// How many records between them it has.
    pub records: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Positions of which the store lacks records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The first position.
    pub first: u64,
    /// The position behind the last.
    pub end: u64,
    /// How many records are missing between them.
    pub records: u64,
}

/// A cut as `queuescope fleet cut --json` prints it.
#[derive(Debug, Deserialize)]
struct PrintedCut {
    cut: u64,
    #[serde(default)]
    void: Option<String>,
    members: Vec<PrintedMember>,
}

#[derive(Debug, Deserialize)]
struct PrintedMember {
    host: MemberName,
    position: Option<u64>,
    /// 16 hexadecimal digits.
    folder: Option<String>,
    schema: Option<String>,
}

impl CutManifest {
    /// Makes the manifest of a cut, which is the line that `queuescope fleet cut --json` printed.
    ///
    /// # Errors
    /// Fails if the line is not a cut, or if the store cannot be listed.
    pub async fn make(cut: &str, target: &UploadTarget) -> Result<Self, UploadError> {
        let cut: PrintedCut = serde_json::from_str(cut).map_err(|error| UploadError::Cut(error.to_string()))?;
        if let Some(void) = cut.void {
            return Err(UploadError::Cut(format!("it is void ({void})")));
        }
        let mut hosts = Vec::new();
        for member in &cut.members {
            hosts.push(of_host(member, target).await?);
        }
        let is_complete = hosts.iter().all(|host| host.position.is_some() && host.missing.is_empty());
        let (kind, store) = ("cut-manifest".to_owned(), target.url().to_owned());
        Ok(Self { format_version: FORMAT, kind, cut: cut.cut, store, is_complete, hosts })
    }
}

async fn of_host(member: &PrintedMember, target: &UploadTarget) -> Result<HostManifest, UploadError> {
    let lacks = |what: &str| UploadError::Cut(format!("{what} of {} is missing or wrong", member.host));
    let mut host = HostManifest {
        host: member.host.to_string(),
        schema: member.schema.clone().unwrap_or_default(),
        position: member.position,
        objects: Vec::new(),
        lost: 0,
        missing: Vec::new(),
    };
    let Some(position) = member.position else { return Ok(host) };
    let store = member.folder.as_deref().and_then(|folder| u64::from_str_radix(folder, 16).ok());
    let store = store.ok_or_else(|| lacks("the folder"))?;
    let is_word =
        |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-".contains(&c));
    if !is_word(&host.schema) {
        return Err(lacks("the schema"));
    }
    let mut found = target.objects(&VolumeObject::folder(&host.schema, &member.host), LISTING).await?;
    found.retain(|(object, _)| object.store == store && object.first < position);
    found.sort_by_key(|(object, _)| (object.first, object.end));
    (host.lost, host.missing) = covered(&found, position)?;
    host.objects = found
        .iter()
        .map(|(object, meta)| ManifestObject {
            object: target.url_of(object),
            first: object.first,
            end: object.end,
            records: object.records,
            bytes: meta.size,
        })
        .collect();
    Ok(host)
}

/// The number of lost records before a position, and what is missing. Objects are in the order of positions.
fn covered(objects: &[(VolumeObject, ObjectMeta)], position: u64) -> Result<(u64, Vec<Missing>), UploadError> {
    let (mut lost, mut missing, mut next) = (0, Vec::new(), 0);
    // Objects with the same positions have the days of the same records.
    for same in objects.chunk_by(|(one, _), (other, _)| (one.first, one.end) == (other.first, other.end)) {
        let Some((first, _)) = same.first() else { continue };
        if first.first < next {
            let before = objects.iter().find(|(other, _)| other != first && other.overlaps(first));
            let other = before.map_or_else(String::new, |(other, _)| other.to_string());
            return Err(UploadError::Twice { object: first.to_string(), other });
        }
        let gap = first.first - next;
        let lost_here = first.lost.min(gap);
        lost += lost_here;
        if gap > lost_here {
            missing.push(Missing { first: next, end: first.first, records: gap - lost_here });
        }
        let there: u64 = same.iter().map(|(object, _)| object.records).sum();
        let expected = first.end - first.first;
        if there < expected {
            missing.push(Missing { first: first.first, end: first.end, records: expected - there });
        }
        next = first.end;
    }
    if next < position {
        missing.push(Missing { first: next, end: position, records: position - next });
    }
    Ok((lost, missing))
}

impl UploadTarget {
    /// The uploaded volumes below a folder of the layout, in any order. Other objects are skipped.
    pub(super) async fn objects(
        &self,
        folder: &str,
        most: Duration,
    ) -> Result<Vec<(VolumeObject, ObjectMeta)>, UploadError> {
        let below = folder.split('/').fold(self.prefix.clone(), Path::join);
        let mut listing = self.store.list(Some(&below));
        let mut found = Vec::new();
        loop {
            let next = within(most, async { listing.next().await.transpose() }).await;
            let Some(meta) = next.map_err(|why| UploadError::store("list", &below, why))? else { return Ok(found) };
            let (location, prefix): (&str, &str) = (meta.location.as_ref(), self.prefix.as_ref());
            let name = location.strip_prefix(prefix).map(|name| name.trim_start_matches('/'));
            if let Some(object) = name.and_then(VolumeObject::parse) {
                found.push((object, meta));
            }
        }
    }
}
