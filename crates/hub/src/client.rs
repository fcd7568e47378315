//! Requests: TLS with the system's certificates, proxies, redirects, and the token, which only the Hub itself gets.

use crate::address::{self, Origin};
use crate::error::Error;
use crate::proxy::Proxies;
use crate::retry::Failure;
use crate::settings::Settings;
use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use ureq::http::{HeaderMap, Request, Uri};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body, Proxy};

/// The most redirects that are followed.
const REDIRECTS: usize = 10;

/// What is wanted: a list of files, what the headers say of a file, or its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    List,
    Head,
    Get,
}

/// An answer of a server.
pub(crate) struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    /// The host that has answered.
    pub host: String,
    body: Body,
}

/// Asks servers.
pub(crate) struct Client {
    endpoint: Uri,
    /// Whom the token is for.
    origin: Origin,
    /// The header with the token.
    authorization: Option<String>,
    /// How long a server may be silent when it is asked for headers or a list of files.
    patience: Duration,
    /// How long it may be silent while it sends a file.
    silence: Duration,
    proxies: Proxies,
    /// Connections that can be used again, for each proxy, with TLS or without.
    agents: Mutex<HashMap<(bool, Option<Proxy>), Agent>>,
    /// Whether a server has answered: then one that cannot be reached may come back.
    has_answered: AtomicBool,
}

impl Client {
    pub fn new(settings: &Settings) -> Client {
        Client {
            endpoint: settings.endpoint.clone(),
            origin: Origin::of(&settings.endpoint),
            authorization: settings.token.as_ref().map(|token| format!("Bearer {}", token.secret())),
            patience: settings.patience,
            silence: settings.silence,
            proxies: settings.proxies.clone(),
            agents: Mutex::default(),
            has_answered: AtomicBool::new(false),
        }
    }

    /// The host of the Hub.
    pub fn host(&self) -> String {
        self.origin.name()
    }

    pub fn has_token(&self) -> bool {
        self.authorization.is_some()
    }

    /// An address of the Hub. What is variable in `path` is escaped.
    pub fn address(&self, path: &str) -> Result<Uri, Error> {
        let base = self.endpoint.to_string();
        let text = format!("{}/{path}", base.trim_end_matches('/'));
        address::parse(&text).ok_or_else(|| self.strange(&self.host(), "an address that is none"))
    }

    /// Asks, and follows redirects. A question for headers alone does not follow a redirect to another host if the answer names a file.
    /// `from` is the first byte that is wanted.
    pub fn send(&self, method: Method, uri: Uri, from: Option<u64>) -> Result<Reply, Failure> {
        let mut uri = uri;
        for _ in 0..=REDIRECTS {
            let reply = self.send_once(method, &uri, from)?;
            if !matches!(reply.status, 301 | 302 | 303 | 307 | 308) {
                return Ok(reply);
            }
            let location = reply.header("location").and_then(|location| address::join(&uri, location));
            let next = location.ok_or_else(|| self.strange(&reply.host, "a redirect that leads nowhere"))?;
            let (here, there) = (Origin::of(&uri), Origin::of(&next));
            if method == Method::Head && here != there && reply.header("x-linked-etag").is_some() {
                return Ok(reply);
            }
            if here.is_encrypted() && !there.is_encrypted() {
                return Err(self.strange(&reply.host, "a redirect to a server without encryption").into());
            }
            uri = next;
        }
        Err(self.strange(&address::host(&uri), "too many redirects").into())
    }

    fn send_once(&self, method: Method, uri: &Uri, from: Option<u64>) -> Result<Reply, Failure> {
        let origin = Origin::of(uri);
        let host = origin.name();
        let request = match method {
            Method::Get | Method::List => Request::get(uri),
            Method::Head => Request::head(uri),
        };
        // What is packed for the way would have another size and no ranges.
        let mut request = request.header("accept-encoding", "identity");
        if let Some(authorization) = self.authorization.as_ref().filter(|_| origin == self.origin) {
            request = request.header("authorization", authorization);
        }
        if let Some(from) = from {
            request = request.header("range", format!("bytes={from}-"));
        }
        let request = request.body(()).map_err(|_| self.strange(&host, "an address that is none"))?;
        let silence = match method {
            Method::List | Method::Head => self.patience,
            Method::Get => self.silence,
        };
        let agent = self.agent(uri, &host)?;
        let request = agent
            .configure_request(request)
            .timeout_connect(Some(silence))
            .timeout_per_read(Some(silence))
            .timeout_per_write(Some(silence))
            .timeout_recv_response(Some(silence))
            .build();
        let response = agent.run(request).map_err(|error| self.failed(&host, silence, error))?;
        self.has_answered.store(true, Ordering::Relaxed);
        let (parts, body) = response.into_parts();
        Ok(Reply { status: parts.status.as_u16(), headers: parts.headers, host, body })
    }

    /// What keeps the connections for an address.
    fn agent(&self, uri: &Uri, host: &str) -> Result<Agent, Error> {
        let is_encrypted = uri.scheme_str() == Some("https");
        let proxy = self.proxies.of(uri);
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(agent) = agents.get(&(is_encrypted, proxy.cloned())) {
            return Ok(agent.clone());
        }
        let mut config = Agent::config_builder()
            .user_agent(concat!("attentive/", env!("CARGO_PKG_VERSION")))
            .http_status_as_error(false)
            // Followed above, where it is known which host the token is for.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(proxy.cloned());
        let is_tls_proxy = proxy.is_some_and(|proxy| proxy.protocol() == ureq::ProxyProtocol::Https);
        if is_encrypted || is_tls_proxy {
            config = config.tls_config(tls(host)?);
        }
        let agent = config.build().new_agent();
        agents.insert((is_encrypted, proxy.cloned()), agent.clone());
        Ok(agent)
    }

    /// What a request that was not answered within `silence` means.
    fn failed(&self, host: &str, silence: Duration, error: ureq::Error) -> Failure {
        let host = host.to_owned();
        if let Some(problem) = certificate_problem(&error) {
            return Error::Certificate { host, problem }.into();
        }
        let is_unreachable = match &error {
            ureq::Error::HostNotFound
            | ureq::Error::ConnectionFailed
            | ureq::Error::ConnectProxyFailed(_) => true,
            ureq::Error::Timeout(timeout) => {
                matches!(timeout, ureq::Timeout::Connect | ureq::Timeout::Resolve)
            }
            ureq::Error::Io(error) => matches!(
                error.kind(),
                io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::HostUnreachable
                    | io::ErrorKind::NetworkUnreachable
                    | io::ErrorKind::NetworkDown
                    | io::ErrorKind::AddrNotAvailable
            ),
            _ => false,
        };
        let problem = match error {
            ureq::Error::HostNotFound => "no such host is known, or there is no network".to_owned(),
            ureq::Error::Timeout(_) => format!("no answer within {} s", silence.as_secs_f32()),
            ureq::Error::Io(error) => error.to_string(),
            ureq::Error::ConnectProxyFailed(problem) => format!("the proxy does not connect ({problem})"),
            other => other.to_string(),
        };
        let error = Error::Connection { host, problem };
        if is_unreachable && !self.has_answered.load(Ordering::Relaxed) {
            return error.into();
        }
        Failure::Again { error: error.into(), wait: None, progress: false }
    }

    /// An answer that makes no sense.
    fn strange(&self, host: &str, problem: &str) -> Error {
        Error::Answer { host: host.to_owned(), problem: problem.to_owned() }
    }
}

impl Reply {
    /// A header, if it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The contents, piece by piece.
    pub fn reader(self) -> impl Read {
        self.body.into_reader()
    }

    /// The contents, at most `most` bytes, for a reader of small answers.
    pub fn bytes(self, most: u64) -> Result<Vec<u8>, Failure> {
        let host = self.host;
        let mut bytes = Vec::new();
        let read = self.body.into_reader().take(most + 1).read_to_end(&mut bytes);
        read.map_err(|error| broken(&host, &error, false))?;
        if bytes.len() as u64 > most {
            return Err(Error::Answer { host, problem: "more than was asked for".to_owned() }.into());
        }
        Ok(bytes)
    }
}

/// A connection that broke while an answer came.
pub(crate) fn broken(host: &str, error: &io::Error, progress: bool) -> Failure {
    let problem = format!("the connection broke ({error})");
    let error = Error::Connection { host: host.to_owned(), problem };
    Failure::Again { error: error.into(), wait: None, progress }
}

/// TLS with the certificates that this machine trusts, or those of `SSL_CERT_FILE`.
fn tls(host: &str) -> Result<TlsConfig, Error> {
    let found = rustls_native_certs::load_native_certs();
    let certificates: Vec<_> = found.certs.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
    if certificates.is_empty() {
        let problem = match found.errors.first() {
            Some(error) => format!("no certificate can be read: {error}"),
            None => "this machine has no certificates of authorities: install the package `ca-certificates`"
                .to_owned(),
        };
        return Err(Error::Certificate { host: host.to_owned(), problem });
    }
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&certificates))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build())
}

/// What is wrong with a certificate, if that is why a connection was given up.
fn certificate_problem(error: &ureq::Error) -> Option<String> {
    let rustls = match error {
        ureq::Error::Rustls(error) => error,
        ureq::Error::Io(error) => error.get_ref()?.downcast_ref::<rustls::Error>()?,
        _ => return None,
    };
    matches!(rustls, rustls::Error::InvalidCertificate(_)).then(|| rustls.to_string())
}
