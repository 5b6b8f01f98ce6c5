//! Errors of uploads.

use object_store::path::Path;
use queuescope_archive::FolderError;

/// Why something was not uploaded.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The URL names no place that is known.
    #[error(
        "'{url}' is not a place to upload to: {why}; give file:///DIR, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX"
    )]
    Url {
        /// The URL.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The store cannot be used as it is configured.
    #[error(
        "cannot use {url}: {why}; credentials and the endpoint come from the environment, such as AWS_ACCESS_KEY_ID and AWS_ENDPOINT_URL"
    )]
    Configuration {
        /// The URL.
        url: String,
        /// What is wrong.
        why: String,
    },
    /// Records have an attribute that is the name of a partition.
    #[error(
        "the records have an attribute '{column}', and so have the folders of uploads: records with this attribute cannot be uploaded"
    )]
    Column {
        /// The name.
        column: String,
    },
    /// The records are in the store as those of another host.
    #[error(
        "the folder was uploaded to {place} as the records of {earlier}, so they are not uploaded as those of {given}: give --host {earlier}, or another place"
    )]
    OtherHost {
        /// The place.
        place: String,
        /// The host whose records they are there.
        earlier: String,
        /// The other host.
        given: String,
    },
    /// A call to the store failed.
    #[error("cannot {what} {object} in the store: {why}")]
    Store {
        /// The attempted action.
        what: &'static str,
        /// The object, or the beginning of its name.
        object: String,
        /// The error of the store.
        why: object_store::Error,
    },
    /// The store returned other bytes than were sent.
    #[error(
        "the store returned other bytes than were sent of {object} ({found} of {sent} bytes, with another SHA-256): it is sent again"
    )]
    Differs {
        /// The object.
        object: String,
        /// How many bytes were sent.
        sent: u64,
        /// How many the store returned.
        found: u64,
    },
    /// The store has some of the records already, in another object.
    #[error(
        "{object} was not uploaded: the store has some of its records in {other}; remove one of the two, the volume in the folder or the \
         object in the store"
    )]
    Twice {
        /// The object that was to be uploaded.
        object: String,
        /// The object that is there.
        other: String,
    },
    /// The folder cannot be read or written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A cut that a manifest is made of cannot be read.
    #[error("this is not a cut: {0}; give the line that queuescope fleet cut --json printed")]
    Cut(String),
}

impl UploadError {
    pub(super) fn store(what: &'static str, object: &Path, why: object_store::Error) -> Self {
        Self::Store { what, object: object.to_string(), why }
    }

    /// Whether another volume may be uploaded all the same.
    pub(super) fn is_of_one_volume(&self) -> bool {
        matches!(self, Self::Twice { .. } | Self::Folder(FolderError::Damaged(_)))
    }
}
