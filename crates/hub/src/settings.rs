//! What the environment says: the variables that Python's tools read, too.

use crate::address;
use crate::error::Error;
use crate::proxy::Proxies;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::http::Uri;

const HUB: &str = "https://huggingface.co";

/// How long a server may be silent, as in Python's tools.
const SILENCE: u64 = 10;

/// The first pause before a request is repeated. Each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(500);

/// Where models come from and where they are kept.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address of the Hub, which may have a path (`HF_ENDPOINT`).
    pub(crate) endpoint: Uri,
    /// The folder of the cache (`HF_HUB_CACHE`, or `hub` in `HF_HOME`).
    pub cache: PathBuf,
    /// What says who asks (`HF_TOKEN`, or the file `token` in `HF_HOME`).
    pub token: Option<Token>,
    /// Whether no server is asked (`HF_HUB_OFFLINE`).
    pub is_offline: bool,
    /// How long a server may be silent before it has answered a question about files (`HF_HUB_ETAG_TIMEOUT`).
    pub patience: Duration,
    /// How long a server may be silent while it gives a file (`HF_HUB_DOWNLOAD_TIMEOUT`).
    pub silence: Duration,
    /// The first pause before a request is repeated.
    pub pause: Duration,
    pub(crate) proxies: Proxies,
}

/// A secret that says who asks. It is never shown.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A token, if it can be one.
    pub fn new(text: &str) -> Option<Token> {
        let text = text.trim();
        (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Token(text.to_owned()))
    }

    pub(crate) fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Settings {
    /// Reads the environment.
    pub fn from_env() -> Result<Settings, Error> {
        Settings::read(&|name| std::env::var_os(name)?.into_string().ok())
    }

    /// Reads the variables that `variable` gives.
    pub fn read(variable: &dyn Fn(&str) -> Option<String>) -> Result<Settings, Error> {
        let value = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let is_on = |name: &str| {
            value(name)
                .is_some_and(|value| matches!(&*value.trim().to_uppercase(), "1" | "ON" | "YES" | "TRUE"))
        };
        let user = || variable("HOME").map(PathBuf::from).or_else(std::env::home_dir);
        let path = |name: &str| value(name).map(|text| expanded(&text, user));
        let home = path("HF_HOME").or_else(|| Some(path("XDG_CACHE_HOME")?.join("huggingface")));
        let home = home.or_else(|| Some(user()?.join(".cache/huggingface")));
        let cache = path("HF_HUB_CACHE").or_else(|| path("HUGGINGFACE_HUB_CACHE"));
        let no_home = || Error::Setting {
            variable: "HF_HOME",
            problem: "is not set, and neither is HOME: there is no place for models".to_owned(),
        };
        let cache = cache.or_else(|| Some(home.as_ref()?.join("hub"))).ok_or_else(no_home)?;
        let token = if is_on("HF_HUB_DISABLE_IMPLICIT_TOKEN") {
            None
        } else {
            let file = path("HF_TOKEN_PATH").or_else(|| Some(home.as_ref()?.join("token")));
            token(value("HF_TOKEN").or_else(|| value("HUGGING_FACE_HUB_TOKEN")), file.as_deref())?
        };
        let endpoint = value("HF_ENDPOINT").unwrap_or_else(|| HUB.to_owned());
        let seconds = |variable: &'static str| match value(variable) {
            Some(text) => {
                let seconds = text.trim().parse().ok().filter(|seconds| *seconds > 0);
                let problem = || "is not a number of seconds".to_owned();
                seconds
                    .map(Duration::from_secs)
                    .ok_or_else(|| Error::Setting { variable, problem: problem() })
            }
            None => Ok(Duration::from_secs(SILENCE)),
        };
        Ok(Settings {
            endpoint: self::endpoint(&endpoint)?,
            cache,
            token,
            is_offline: is_on("HF_HUB_OFFLINE") || is_on("TRANSFORMERS_OFFLINE"),
            patience: seconds("HF_HUB_ETAG_TIMEOUT")?,
            silence: seconds("HF_HUB_DOWNLOAD_TIMEOUT")?,
            pause: PAUSE,
            proxies: Proxies::read(variable)?,
        })
    }
}

fn endpoint(text: &str) -> Result<Uri, Error> {
    let uri = address::parse(text.trim().trim_end_matches('/'));
    // A password in an address would be shown where the address is.
    let uri = uri.filter(|uri| {
        uri.query().is_none() && !uri.authority().is_some_and(|all| all.as_str().contains('@'))
    });
    uri.ok_or_else(|| Error::Setting {
        variable: "HF_ENDPOINT",
        problem: "is not an address such as https://huggingface.co".to_owned(),
    })
}

/// A path with the folder of the user in the place of `~`.
fn expanded(text: &str, user: impl Fn() -> Option<PathBuf>) -> PathBuf {
    match (text.strip_prefix('~'), user()) {
        (Some(""), Some(user)) => user,
        (Some(rest), Some(user)) if rest.starts_with('/') => user.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(text),
    }
}

/// The token of the variable, or else of the file, if one of them has one.
fn token(variable: Option<String>, file: Option<&Path>) -> Result<Option<Token>, Error> {
    let refused =
        |variable| Error::Setting { variable, problem: "has characters that no token has".to_owned() };
    if let Some(text) = variable {
        return Token::new(&text).map(Some).ok_or_else(|| refused("HF_TOKEN"));
    }
    let Some(path) = file else { return Ok(None) };
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::File { path: path.to_owned(), source }),
        Ok(text) if text.trim().is_empty() => Ok(None),
        Ok(text) => Token::new(&text).map(Some).ok_or_else(|| refused("the token file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, Error> {
        Settings::read(&|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_cache_is_where_pythons_tools_have_it() {
        let cache = |variables: &[(&str, &str)]| {
            let mut all = vec![("HOME", "/home/ada")];
            all.extend(variables);
            read(&all).unwrap().cache.display().to_string()
        };
        assert_eq!(cache(&[]), "/home/ada/.cache/huggingface/hub");
        assert_eq!(cache(&[("XDG_CACHE_HOME", "/x")]), "/x/huggingface/hub");
        assert_eq!(cache(&[("HF_HOME", "~/hf"), ("XDG_CACHE_HOME", "/x")]), "/home/ada/hf/hub");
        assert_eq!(cache(&[("HF_HOME", "/h"), ("HUGGINGFACE_HUB_CACHE", "/old")]), "/old");
        assert_eq!(cache(&[("HF_HUB_CACHE", "~"), ("HUGGINGFACE_HUB_CACHE", "/old")]), "/home/ada");
    }

    #[test]
    fn a_token_is_read_and_never_shown() {
        let home = std::env::temp_dir().join(format!("attentive-hub-token-{}", std::process::id()));
        std::fs::create_dir_all(&home).unwrap();
        let text = home.display().to_string();
        assert!(read(&[("HF_HOME", &text)]).unwrap().token.is_none());
        std::fs::write(home.join("token"), "hf_file\n").unwrap();
        let settings = read(&[("HF_HOME", &text)]).unwrap();
        assert_eq!(settings.token.as_ref().unwrap().secret(), "hf_file");
        assert!(!format!("{settings:?}").contains("hf_file"));
        let both = [("HF_HOME", &*text), ("HF_TOKEN", " hf_variable ")];
        assert_eq!(read(&both).unwrap().token.unwrap().secret(), "hf_variable");
        assert!(read(&[both[0], both[1], ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")]).unwrap().token.is_none());
        let refused = read(&[("HF_HOME", &text), ("HF_TOKEN", "two words")]).unwrap_err().to_string();
        assert!(refused.contains("HF_TOKEN") && !refused.contains("words"), "{refused}");
        std::fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn endpoints_may_have_a_path_and_no_password() {
        let endpoint = |text: &str| {
            read(&[("HOME", "/h"), ("HF_ENDPOINT", text)]).map(|settings| settings.endpoint.to_string())
        };
        assert_eq!(endpoint("http://mirror:8/hf/").unwrap(), "http://mirror:8/hf");
        assert_eq!(read(&[("HOME", "/h")]).unwrap().endpoint.to_string(), "https://huggingface.co/");
        for bad in ["huggingface.co", "ftp://x", "https://", "https://a:secret@x", "https://x?y=1"] {
            let refused = endpoint(bad).unwrap_err().to_string();
            assert!(refused.contains("HF_ENDPOINT") && !refused.contains("secret"), "{bad}: {refused}");
        }
    }

    #[test]
    fn questions_and_downloads_have_limits_of_their_own() {
        let limits = |variables: &[(&str, &str)]| {
            let settings = read(&[&[("HOME", "/h")], variables].concat())?;
            Ok::<_, Error>([settings.patience.as_secs(), settings.silence.as_secs()])
        };
        assert_eq!(limits(&[]).unwrap(), [10, 10]);
        assert_eq!(
            limits(&[("HF_HUB_ETAG_TIMEOUT", "3"), ("HF_HUB_DOWNLOAD_TIMEOUT", " 60 ")]).unwrap(),
            [3, 60]
        );
        for variable in ["HF_HUB_ETAG_TIMEOUT", "HF_HUB_DOWNLOAD_TIMEOUT"] {
            for bad in ["0", "-1", "soon"] {
                let refused = limits(&[(variable, bad)]).unwrap_err().to_string();
                assert!(refused.contains(variable) && refused.contains("number of seconds"), "{refused}");
            }
        }
    }

    #[test]
    fn offline_is_a_word_for_yes() {
        for (value, expected) in
            [("1", true), ("true", true), ("ON", true), ("0", false), ("", false), ("no", false)]
        {
            assert_eq!(
                read(&[("HOME", "/h"), ("HF_HUB_OFFLINE", value)]).unwrap().is_offline,
                expected,
                "{value}"
            );
        }
    }
}
