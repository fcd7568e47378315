//! Addresses: which host one leads to, and where a redirect goes.

use ureq::http::Uri;

/// The scheme, the host and the port. A token is for one of these and for no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    scheme: String,
    host: String,
    port: Option<u16>,
}

impl Origin {
    pub fn of(uri: &Uri) -> Origin {
        let scheme = uri.scheme_str().unwrap_or_default().to_ascii_lowercase();
        let usual = if scheme == "https" { 443 } else { 80 };
        let port = uri.port_u16().filter(|port| *port != usual);
        Origin { scheme, host: host(uri), port }
    }

    pub fn is_encrypted(&self) -> bool {
        self.scheme == "https"
    }

    /// The host, with the port if it is not the usual one, for messages.
    pub fn name(&self) -> String {
        self.port.map_or_else(|| self.host.clone(), |port| format!("{}:{port}", self.host))
    }
}

/// The host of an address, without the brackets around the digits of IPv6.
pub(crate) fn host(uri: &Uri) -> String {
    let host = uri.host().unwrap_or_default();
    host.trim_matches(['[', ']']).to_ascii_lowercase()
}

/// Reads an address of a web server.
pub(crate) fn parse(text: &str) -> Option<Uri> {
    let uri: Uri = text.parse().ok()?;
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    (is_web && !host(&uri).is_empty()).then_some(uri)
}

/// Where a `Location` leads that an answer from `base` names.
pub(crate) fn join(base: &Uri, location: &str) -> Option<Uri> {
    let scheme = base.scheme_str()?;
    let authority = base.authority()?;
    let path = base.path();
    let text = match location {
        absolute if absolute.contains("://") && !absolute.starts_with(['/', '?', '.']) => absolute.to_owned(),
        other_host if other_host.starts_with("//") => format!("{scheme}:{other_host}"),
        rooted if rooted.starts_with('/') => format!("{scheme}://{authority}{rooted}"),
        query if query.starts_with('?') => format!("{scheme}://{authority}{path}{query}"),
        beside => {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{scheme}://{authority}{folder}/{beside}")
        }
    };
    parse(text.split('#').next()?)
}

/// Writes text as a part of a path. Slashes stay if they separate folders.
pub(crate) fn escaped(text: &str, keep_slashes: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => escaped.push(byte.into()),
            b'/' if keep_slashes => escaped.push('/'),
            byte => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_lead_where_the_standard_says() {
        let base = parse("https://hub.example/api/models/a").unwrap();
        for (location, expected) in [
            ("/x?y=1", "https://hub.example/x?y=1"),
            ("b", "https://hub.example/api/models/b"),
            ("?p=2", "https://hub.example/api/models/a?p=2"),
            ("//cdn.example/z", "https://cdn.example/z"),
            ("http://cdn.example:8/z#part", "http://cdn.example:8/z"),
        ] {
            assert_eq!(join(&base, location).unwrap().to_string(), expected, "{location}");
        }
        for bad in ["file:///etc/passwd", "https://", "ftp://x/y", "http://a b/"] {
            assert!(join(&base, bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn origins_are_the_same_if_scheme_host_and_port_are() {
        let origin = |text: &str| Origin::of(&parse(text).unwrap());
        assert_eq!(origin("https://Hub.example/a"), origin("https://hub.example:443/b"));
        for other in ["http://hub.example", "https://hub.example:8443", "https://cdn.hub.example"] {
            assert_ne!(origin("https://hub.example"), origin(other), "{other}");
        }
        assert_eq!(origin("http://[::1]:8080/").name(), "::1:8080");
    }

    #[test]
    fn parts_of_a_path_are_escaped() {
        assert_eq!(escaped("refs/pr/1", false), "refs%2Fpr%2F1");
        assert_eq!(escaped("1_Pooling/a b?.json", true), "1_Pooling/a%20b%3F.json");
    }
}
