//! Addresses of sinks, as the command line has them.

use hyper::Uri;
use hyper::http::uri::Authority;
use std::fmt;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where a sink's alerts go. Its text is the text that was parsed, without a slash at the end of a URL of Alertmanager.
///
/// ```
/// use queuescope_fleet::coordinator::SinkAddress;
///
/// let address: SinkAddress = "syslog:[2001:db8::1]:514".parse()?;
/// assert_eq!(address.to_string(), "syslog:[2001:db8::1]:514");
/// assert!("syslog:2001:db8::1:514".parse::<SinkAddress>().is_err(), "IPv6 needs brackets");
/// # Ok::<(), queuescope_fleet::coordinator::SinkAddressError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkAddress {
    /// `jsonl:PATH`: a line of JSON for each alert, at the end of a file.
    File(PathBuf),
    /// `jsonl:-`: the same, on standard output.
    Output,
    /// `webhook:URL`: a POST request with a list of alerts.
    Webhook(HttpUrl),
    /// `alertmanager:URL`: the API of Prometheus Alertmanager, version 2.
    Alertmanager(HttpUrl),
    /// `syslog:HOST:PORT`: RFC 5424 over UDP (RFC 5426).
    Udp(HostPort),
    /// `syslog+tcp:HOST:PORT`: RFC 5424 over TCP with octet counting (RFC 6587, section 3.4.1).
    Tcp(HostPort),
    /// `syslog:/dev/log`: RFC 5424 to a socket of this machine.
    Socket(PathBuf),
}

/// A host, which is a DNS name or an IP address, and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// The name or address. An IPv6 address is without brackets.
    pub host: String,
    /// The port, from 1 on.
    pub port: u16,
}

/// A URL of `http` or `https`, without user and password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpUrl {
    /// Whether the connection uses TLS.
    pub is_secure: bool,
    /// Host and port; 80 or 443 if the URL has none.
    pub host: HostPort,
    /// Host and port as the URL has them: the field `Host` of requests.
    pub authority: String,
    /// Path and query; at least `/`.
    pub path: String,
}

/// Why a text is not the address of a sink.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SinkAddressError {
    /// It begins with the name of no kind of sink.
    #[error(
        "unknown kind of sink: use jsonl:PATH, webhook:URL, alertmanager:URL, syslog:HOST:PORT, syslog+tcp:HOST:PORT or syslog:/dev/log"
    )]
    Kind,
    /// Nothing follows the kind.
    #[error("the path is missing: write jsonl:PATH, or jsonl:- for standard output")]
    NoPath,
    /// It is not a URL.
    #[error("the URL is not valid: write https://HOST/PATH or http://HOST/PATH")]
    Url,
    /// A user or password is in the URL.
    #[error("the URL has a user or password, which everybody on this machine can see: use a token in a file")]
    Secret,
    /// The URL of Alertmanager has a query.
    #[error("the URL has a query: give the address of Alertmanager, such as https://HOST:9093")]
    Query,
    /// It is not a host with a port.
    #[error("the address is not valid: write HOST:PORT, and an IPv6 address in brackets, such as [::1]:514")]
    Host,
    /// The text has control characters.
    #[error("the address has a control character")]
    Control,
}

impl SinkAddress {
    /// The URL, if requests go there.
    pub fn url(&self) -> Option<&HttpUrl> {
        match self {
            Self::Webhook(url) | Self::Alertmanager(url) => Some(url),
            _ => None,
        }
    }

    /// The first part of its text, for names of files.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::File(_) | Self::Output => "jsonl",
            Self::Webhook(_) => "webhook",
            Self::Alertmanager(_) => "alertmanager",
            Self::Udp(_) | Self::Socket(_) => "syslog",
            Self::Tcp(_) => "syslog+tcp",
        }
    }
}

impl FromStr for SinkAddress {
    type Err = SinkAddressError;

    fn from_str(text: &str) -> Result<Self, SinkAddressError> {
        if text.chars().any(char::is_control) {
            return Err(SinkAddressError::Control);
        }
        let (kind, rest) = text.split_once(':').ok_or(SinkAddressError::Kind)?;
        match kind {
            "jsonl" if rest.is_empty() => Err(SinkAddressError::NoPath),
            "jsonl" if rest == "-" => Ok(Self::Output),
            "jsonl" => Ok(Self::File(rest.into())),
            "webhook" => rest.parse().map(Self::Webhook),
            "alertmanager" => {
                let url: HttpUrl = rest.parse()?;
                if url.path.contains('?') {
                    return Err(SinkAddressError::Query);
                }
                Ok(Self::Alertmanager(HttpUrl { path: url.path.trim_end_matches('/').to_owned(), ..url }))
            }
            "syslog" if Path::new(rest).is_absolute() => Ok(Self::Socket(rest.into())),
            "syslog" => rest.parse().map(Self::Udp),
            "syslog+tcp" => rest.parse().map(Self::Tcp),
            _ => Err(SinkAddressError::Kind),
        }
    }
}

impl fmt::Display for SinkAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.kind())?;
        match self {
            Self::File(path) | Self::Socket(path) => write!(f, "{}", path.display()),
            Self::Output => f.write_str("-"),
            Self::Webhook(url) | Self::Alertmanager(url) => write!(f, "{url}"),
            Self::Udp(host) | Self::Tcp(host) => write!(f, "{host}"),
        }
    }
}

impl HostPort {
    /// Parses a host, in brackets if it is an IPv6 address, that an optional port follows.
    fn of(authority: &Authority, default: Option<u16>) -> Option<Self> {
        let host = match authority.host().strip_prefix('[') {
            Some(rest) => {
                let address = rest.strip_suffix(']')?;
                address.parse::<Ipv6Addr>().ok()?;
                address
            }
            None => authority.host(),
        };
        let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        let is_valid = !host.is_empty() && (host.contains(':') || is_name(host));
        // A port that is no number would otherwise look like none.
        let has_port = authority.as_str().len() > authority.host().len();
        let port = if has_port { authority.port_u16() } else { default };
        let port = port.filter(|port| *port > 0)?;
        is_valid.then(|| Self { host: host.to_owned(), port })
    }

    /// Whether it is this machine, by its text.
    pub(super) fn is_loopback(&self) -> bool {
        let by_address = self.host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        by_address || self.host.eq_ignore_ascii_case("localhost")
    }
}

impl FromStr for HostPort {
    type Err = SinkAddressError;

    fn from_str(text: &str) -> Result<Self, SinkAddressError> {
        let authority: Authority = text.parse().map_err(|_| SinkAddressError::Host)?;
        let is_plain = !text.contains('@');
        is_plain.then(|| Self::of(&authority, None)).flatten().ok_or(SinkAddressError::Host)
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

impl FromStr for HttpUrl {
    type Err = SinkAddressError;

    fn from_str(text: &str) -> Result<Self, SinkAddressError> {
        // A fragment is not sent, so it would be lost.
        let uri: Uri = text.parse().map_err(|_| SinkAddressError::Url)?;
        let (is_secure, default) = match uri.scheme_str() {
            Some("https") => (true, 443),
            Some("http") => (false, 80),
            _ => return Err(SinkAddressError::Url),
        };
        let authority = uri.authority().ok_or(SinkAddressError::Url)?;
        if authority.as_str().contains('@') {
            return Err(SinkAddressError::Secret);
        }
        let host =
            HostPort::of(authority, Some(default)).filter(|_| !text.contains('#')).ok_or(SinkAddressError::Url)?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        // A query without a path: the request line needs one.
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { is_secure, host, authority: authority.as_str().to_owned(), path })
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", if self.is_secure { "https" } else { "http" }, self.authority, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::{SinkAddress, SinkAddressError};
    use proptest::prelude::*;

    fn parsed(text: &str) -> Result<SinkAddress, SinkAddressError> {
        text.parse()
    }

    #[test]
    fn each_kind_is_parsed_and_printed() {
        for text in [
            "jsonl:alerts.jsonl",
            "jsonl:/var/log/a:b.jsonl",
            "jsonl:-",
            "webhook:https://hooks.example/alerts?team=net",
            "webhook:http://[::1]:8080/",
            "alertmanager:https://alerts.example:9093",
            "alertmanager:http://alerts.example/prefix",
            "syslog:logs.example:514",
            "syslog:192.0.2.7:514",
            "syslog:[2001:db8::1]:514",
            "syslog:/dev/log",
            "syslog+tcp:[::1]:601",
        ] {
            assert_eq!(parsed(text).map(|address| address.to_string()), Ok(text.to_owned()));
        }
        let equal = [
            ("webhook:https://hooks.example", "webhook:https://hooks.example/"),
            ("webhook:https://hooks.example?a=b", "webhook:https://hooks.example/?a=b"),
            ("alertmanager:https://a.example/", "alertmanager:https://a.example"),
        ];
        for (text, same) in equal {
            assert_eq!(parsed(text), parsed(same));
        }
        let url = parsed("webhook:http://[::1]/x").expect("it is valid").url().expect("it has one").clone();
        assert_eq!((url.host.host.as_str(), url.host.port, url.authority.as_str()), ("::1", 80, "[::1]"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        use SinkAddressError::{Control, Host, Kind, NoPath, Query, Secret, Url};
        for (text, why) in [
            ("", Kind),
            ("alerts.jsonl", Kind),
            ("https://hooks.example", Kind),
            ("jsonl:", NoPath),
            ("jsonl:a\nb", Control),
            ("webhook:hooks.example", Url),
            ("webhook:ftp://hooks.example/", Url),
            ("webhook:https://", Url),
            ("webhook:https://hooks.example:port/", Url),
            ("webhook:https://hooks.example:0/", Url),
            ("webhook:https://hooks.example:70000/", Url),
            ("webhook:https://hooks.example/#part", Url),
            ("webhook:https://hooks.example/a b", Url),
            ("webhook:https://ana:secret@hooks.example/", Secret),
            ("alertmanager:https://alerts.example?x=1", Query),
            ("syslog:", Host),
            ("syslog:logs.example", Host),
            ("syslog:logs.example:", Host),
            ("syslog::514", Host),
            ("syslog:2001:db8::1:514", Host),
            ("syslog:[2001:db8::g]:514", Host),
            ("syslog:[::1]", Host),
            ("syslog:ana@logs.example:514", Host),
            ("syslog:a/b:514", Host),
            ("syslog+tcp:/dev/log", Host),
        ] {
            assert_eq!(parsed(text), Err(why), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_prints_as_itself_again(
            text in any::<String>(),
            parts in "(jsonl|webhook|alertmanager|syslog|syslog\\+tcp):(https?://|\\[|\\]|::1|:|a|/|@|\\?|#|%|9){0,8}",
        ) {
            for text in [&text, &parts] {
                if let Ok(address) = parsed(text) {
                    prop_assert_eq!(parsed(&address.to_string()), Ok(address));
                }
            }
        }
    }
}
