//! The names that the server answers to.
//!
//! A page of a stranger can let its own name lead to a visitor's machine, and then talk to a server there as if it were the
//! page's own (DNS rebinding). The name in the request gives it away: who listens on loopback only is called by loopback's
//! names.

use crate::refusal::Refusal;
use axum::http::HeaderMap;
use axum::http::header::HOST;
use std::net::{IpAddr, SocketAddr};

/// The names that the server answers to.
#[derive(Debug, Clone)]
pub(crate) enum Hosts {
    Any,
    /// Loopback's names if so, and these.
    Only {
        loopback: bool,
        names: Vec<String>,
    },
}

impl Hosts {
    /// Those of a server that listens there: `allowed` if there are any, and loopback's on loopback.
    pub fn new(address: SocketAddr, allowed: &[String]) -> Hosts {
        let loopback = address.ip().is_loopback();
        if !loopback && allowed.is_empty() {
            return Hosts::Any;
        }
        Hosts::Only { loopback, names: allowed.iter().map(|host| name(host)).collect() }
    }

    /// Refuses a request to another host. One that names none comes from no browser.
    pub fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let (Hosts::Only { loopback, names }, Some(host)) = (self, headers.get(HOST)) else { return Ok(()) };
        let host = String::from_utf8_lossy(host.as_bytes());
        let name = name(&host);
        if names.contains(&name) || *loopback && is_loopback(&name) {
            Ok(())
        } else {
            Err(Refusal::host(&host))
        }
    }
}

/// `name` of `Name.:port`; brackets are around an address with colons of its own.
fn name(host: &str) -> String {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => host.split(':').next(),
    };
    name.unwrap_or_default().trim_end_matches('.').to_ascii_lowercase()
}

fn is_loopback(name: &str) -> bool {
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(hosts: &Hosts, host: &str) -> bool {
        hosts.check(&HeaderMap::from_iter([(HOST, host.parse().unwrap())])).is_ok()
    }

    #[test]
    fn on_loopback_only_its_names_are_answered() {
        let hosts = Hosts::new("127.0.0.1:8080".parse().unwrap(), &["Box.example".to_owned()]);
        for host in ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:80", "a.localhost", "box.example:9"]
        {
            assert!(asked(&hosts, host), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil", "10.0.0.1", "", "[::2]"] {
            assert!(!asked(&hosts, host), "{host}");
        }
        assert_eq!(hosts.check(&HeaderMap::new()), Ok(()));
    }

    #[test]
    fn elsewhere_any_name_is_answered_unless_names_are_given() {
        let address = "0.0.0.0:80".parse().unwrap();
        assert!(asked(&Hosts::new(address, &[]), "anything"));
        let hosts = Hosts::new(address, &["Translate.example.:8080".to_owned()]);
        assert!(asked(&hosts, "translate.example") && !asked(&hosts, "localhost"));
    }
}
