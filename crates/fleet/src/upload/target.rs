//! Places in stores.

use super::connector::Connector;
use super::{UploadError, VolumeObject};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, RetryConfig};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Retries within a call. The uploader tries again after longer pauses.
const RETRIES: usize = 3;
/// The most time of a call with its retries.
const CALL: Duration = Duration::from_secs(60);

/// A place to upload to: a store, and the beginning of the names there.
///
/// ```
/// use queuescope_fleet::upload::UploadTarget;
///
/// # let folder = tempfile::tempdir()?;
/// let target = UploadTarget::parse(&format!("file://{}", folder.path().display()), &[])?;
/// assert!(target.url().starts_with("file:///"));
/// assert!(UploadTarget::parse("ftp://example.net/fleet", &[]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct UploadTarget {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) prefix: Path,
    url: String,
}

impl UploadTarget {
    /// A place from its URL: `file:///DIR`, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or `az://CONTAINER/PREFIX`. The folder of `file` must
    /// exist. Credentials, the region and the endpoint of others are variables of the environment, `AWS_*`, `GOOGLE_*` and `AZURE_*`, with the
    /// names that the crate `object_store` defines. Nothing is sent yet.
    ///
    /// # Errors
    /// Fails if the URL is not of these, or if the environment lacks something.
    pub fn parse(text: &str, environment: &[(String, String)]) -> Result<Self, UploadError> {
        let wrong = |why: &str| UploadError::Url { url: text.to_owned(), why: why.to_owned() };
        let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
        if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("it has more than a name and a path"));
        }
        let failed =
            |why: object_store::Error| UploadError::Configuration { url: text.to_owned(), why: why.to_string() };
        let retry = RetryConfig { max_retries: RETRIES, retry_timeout: CALL, ..RetryConfig::default() };
        let store: Arc<dyn ObjectStore> = match url.scheme() {
            "file" => {
                let folder = url.to_file_path().map_err(|()| wrong("its path is not absolute"))?;
                // A confirmed file must survive a loss of power.
                let store = LocalFileSystem::new_with_prefix(folder).map_err(failed)?.with_fsync(true);
                return Ok(Self::new(Arc::new(store), Path::default(), text));
            }
            "s3" | "gs" | "az" if url.host_str().is_none_or(str::is_empty) => return Err(wrong("it has no bucket")),
            "s3" => {
                let builder = AmazonS3Builder::new();
                let builder =
                    keys(environment, "AWS_").fold(builder, |builder, (key, value)| builder.with_config(key, value));
                let builder = builder.with_url(text).with_retry(retry);
                Arc::new(builder.with_http_connector(Connector).build().map_err(failed)?)
            }
            "gs" => {
                let mut builder = GoogleCloudStorageBuilder::new();
                if let Some(account) = value(environment, "SERVICE_ACCOUNT") {
                    builder = builder.with_service_account_path(account);
                }
                let builder =
                    keys(environment, "GOOGLE_").fold(builder, |builder, (key, value)| builder.with_config(key, value));
                let builder = builder.with_url(text).with_retry(retry);
                Arc::new(builder.with_http_connector(Connector).build().map_err(failed)?)
            }
            "az" => {
                let builder = MicrosoftAzureBuilder::new();
                let mut builder =
                    keys(environment, "AZURE_").fold(builder, |builder, (key, value)| builder.with_config(key, value));
                if let Some(endpoint) = value(environment, "IDENTITY_ENDPOINT") {
                    builder = builder.with_msi_endpoint(endpoint.clone());
                }
                let builder = builder.with_url(text).with_retry(retry);
                Arc::new(builder.with_http_connector(Connector).build().map_err(failed)?)
            }
            _ => return Err(wrong("its scheme is not known")),
        };
        let prefix = Path::from_url_path(url.path()).map_err(|error| wrong(&error.to_string()))?;
        Ok(Self::new(store, prefix, text))
    }

    /// Any store, with the beginning of the names there. `url` names it in lists of uploads and in messages.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Path, url: &str) -> Self {
        Self { store, prefix, url: url.trim_end_matches('/').to_owned() }
    }

    /// The URL, without a slash at its end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The URL of an object.
    pub fn url_of(&self, object: &VolumeObject) -> String {
        format!("{}/{object}", self.url)
    }
}

/// The variables that begin with a prefix and that a builder knows.
fn keys<'a, K: FromStr>(environment: &'a [(String, String)], prefix: &'a str) -> impl Iterator<Item = (K, &'a str)> {
    let ours = environment.iter().filter(move |(name, _)| name.starts_with(prefix));
    ours.filter_map(|(name, value)| Some((name.to_ascii_lowercase().parse().ok()?, value.as_str())))
}

fn value<'a>(environment: &'a [(String, String)], name: &str) -> Option<&'a String> {
    environment.iter().find(|(other, _)| other == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_place_is_refused_with_what_to_do() {
        for (url, why) in [
            ("fleet", "relative URL without a base"),
            ("ftp://a/b", "its scheme is not known"),
            ("s3:///fleet", "it has no bucket"),
            ("s3://key:secret@bucket/fleet", "more than a name and a path"),
            ("s3://bucket/fleet?region=x", "more than a name and a path"),
        ] {
            let error = UploadTarget::parse(url, &[]).expect_err(url).to_string();
            assert!(error.contains(why) && error.contains("give file:///DIR, s3://BUCKET/PREFIX"), "{url}: {error}");
        }
        let error =
            UploadTarget::parse("file:///this/folder/is/not/there", &[]).expect_err("it is not there").to_string();
        assert!(error.contains("/this/folder/is/not/there"), "{error}");
    }

    #[test]
    fn a_bucket_may_have_a_prefix() {
        let target = UploadTarget::parse("s3://bucket/a/b/", &[]).expect("nothing is sent");
        assert_eq!((target.prefix.as_ref(), target.url()), ("a/b", "s3://bucket/a/b"));
        assert_eq!(UploadTarget::parse("s3://bucket", &[]).expect("nothing is sent").prefix.as_ref(), "");
    }
}
