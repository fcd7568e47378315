//! Which proxy a request goes through: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in letters of either case.

use crate::address;
use crate::error::Error;
use ureq::Proxy;
use ureq::http::Uri;

/// What the environment says of proxies.
#[derive(Debug, Clone, Default)]
pub struct Proxies {
    https: Option<Proxy>,
    http: Option<Proxy>,
    /// Hosts that are asked directly.
    direct: Vec<String>,
}

impl Proxies {
    /// Reads the variables that `variable` gives.
    pub(crate) fn read(variable: &dyn Fn(&str) -> Option<String>) -> Result<Proxies, Error> {
        let value = |name: &str| {
            let found = variable(&name.to_lowercase()).or_else(|| variable(name));
            found.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let proxy = |name: &'static str| -> Result<Option<Proxy>, Error> {
            let Some(text) = value(name).or_else(|| value("ALL_PROXY")) else { return Ok(None) };
            // The value may have a password in it, which is not to be shown.
            let problem =
                || Error::Setting { variable: name, problem: "is not the address of a proxy".to_owned() };
            Proxy::new(&text).map(Some).map_err(|_| problem())
        };
        let direct = value("NO_PROXY").unwrap_or_default();
        let direct =
            direct.split([',', ' ']).map(|host| host.trim().to_lowercase()).filter(|host| !host.is_empty());
        Ok(Proxies { https: proxy("HTTPS_PROXY")?, http: proxy("HTTP_PROXY")?, direct: direct.collect() })
    }

    /// The proxy for an address, if it is not asked directly.
    pub(crate) fn of(&self, uri: &Uri) -> Option<&Proxy> {
        let proxy = if uri.scheme_str() == Some("https") { &self.https } else { &self.http };
        let host = address::host(uri);
        proxy.as_ref().filter(|_| !self.direct.iter().any(|rule| is_meant(rule, &host, uri.port_u16())))
    }
}

/// Whether a rule of `NO_PROXY` means a host: `*`, the host itself or a domain that it belongs to, with a port or without.
fn is_meant(rule: &str, host: &str, port: Option<u16>) -> bool {
    let (rule, wanted) = match rule.rsplit_once(':') {
        // Digits of IPv6 have colons of their own.
        Some((name, digits)) if !name.contains(':') => (name, digits.parse::<u16>().ok()),
        _ => (rule, None),
    };
    let rule = rule.trim_matches(['[', ']']);
    let domain = rule.trim_start_matches('*').trim_start_matches('.');
    let is_below =
        || host.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.'));
    (wanted.is_none() || wanted == port) && (rule == "*" || (!domain.is_empty() && is_below()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Result<Proxies, Error> {
        Proxies::read(&|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn each_scheme_has_its_proxy_and_hosts_can_be_left_out() {
        let proxies = proxies(&[
            ("HTTPS_PROXY", "http://one:3128"),
            ("http_proxy", "two:8080"),
            ("NO_PROXY", "localhost, .internal,example.org,10.0.0.1:81"),
        ]);
        let proxies = proxies.unwrap();
        let of = |text: &str| proxies.of(&address::parse(text).unwrap()).map(|proxy| proxy.host().to_owned());
        assert_eq!(of("https://huggingface.co").as_deref(), Some("one"));
        assert_eq!(of("http://huggingface.co").as_deref(), Some("two"));
        assert_eq!(of("http://notexample.org").as_deref(), Some("two"));
        assert_eq!(of("http://10.0.0.1:82").as_deref(), Some("two"));
        for direct in [
            "http://localhost:1",
            "https://a.internal",
            "https://example.org",
            "https://a.example.org",
            "http://10.0.0.1:81",
        ] {
            assert_eq!(of(direct), None, "{direct}");
        }
    }

    #[test]
    fn all_proxy_stands_for_both_and_a_star_for_every_host() {
        let uri = address::parse("https://huggingface.co").unwrap();
        assert!(proxies(&[("all_proxy", "socks5://p:1")]).unwrap().of(&uri).is_some());
        assert!(proxies(&[("all_proxy", "http://p:1"), ("no_proxy", "*")]).unwrap().of(&uri).is_none());
        assert!(proxies(&[]).unwrap().of(&uri).is_none());
        let refused = proxies(&[("HTTPS_PROXY", "gopher://user:secret@p")]).unwrap_err().to_string();
        assert!(refused.contains("HTTPS_PROXY") && !refused.contains("secret"), "{refused}");
    }
}
