//! Why alerts cannot be sent.

use super::address::HostPort;
use std::io;
use std::path::PathBuf;

/// Why alerts cannot be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// A file or folder.
    #[error("cannot {what} {}: {why}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        why: io::Error,
    },
    /// A position that cannot be read.
    #[error("{} is damaged: {why}; remove it, and the sink begins with the alerts that come from then on", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: serde_json::Error,
    },
    /// A file of the coordinator itself.
    #[error("{} is the coordinator's own file: send alerts to another", .0.display())]
    Own(PathBuf),
    /// A sink is there twice.
    #[error("{0} is given twice")]
    Twice(String),
    /// The token.
    #[error("{0}")]
    Token(String),
    /// The token would be sent without encryption.
    #[error("the token would be readable on its way to {0}: use https")]
    PlainToken(String),
    /// The token would be sent to several hosts.
    #[error(
        "a token is for one host, but requests go to {0} and {1}: send to one of them another way, or without a token"
    )]
    SharedToken(HostPort, HostPort),
    /// A token or an authority without a sink that uses it.
    #[error("no sink uses {0}: it is for webhooks and Alertmanager{1}")]
    Unused(&'static str, &'static str),
    /// The authorities.
    #[error("cannot read certificates in {}: {why}", path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// There are no authorities.
    #[error("this machine has no certificates of authorities ({0}): install ca-certificates, or name a file with some")]
    NoAuthorities(String),
    /// The name of a server.
    #[error("'{0}' is not a name that a certificate can have")]
    Name(String),
    /// TLS cannot be configured.
    #[error("cannot configure TLS: {0}")]
    Tls(String),
    /// There is no thread.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}
