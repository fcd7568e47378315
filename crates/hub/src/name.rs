//! The name of a model on the Hub: `owner/name`, or `name` alone, and `@revision` behind it.
//!
//! A name becomes part of an address and of a path, so that what a name can hold is little: the rules are those of the Hub.

use crate::error::Error;
use std::fmt;
use std::str::FromStr;

/// The most characters of `owner/name`.
const LONGEST: usize = 96;

/// The revision that is meant where none is named.
const MAIN: &str = "main";

/// A model on the Hub, and which revision of it is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelName {
    id: String,
    revision: Option<String>,
}

impl ModelName {
    /// `owner/name`, or `name` alone.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The branch, the tag or the commit: `main` if none was named.
    pub fn revision(&self) -> &str {
        self.revision.as_deref().unwrap_or(MAIN)
    }

    /// The revision, if one was named.
    pub fn named_revision(&self) -> Option<&str> {
        self.revision.as_deref()
    }

    /// The name of its folder in the cache.
    pub(crate) fn folder(&self) -> String {
        format!("{FOLDER}{}", self.id.replace('/', SEPARATOR))
    }

    /// The model of a folder in the cache.
    pub(crate) fn of_folder(folder: &str) -> Option<ModelName> {
        let id = folder.strip_prefix(FOLDER)?.replacen(SEPARATOR, "/", 1);
        problem_of_id(&id).is_none().then_some(ModelName { id, revision: None })
    }
}

const FOLDER: &str = "models--";
const SEPARATOR: &str = "--";

impl FromStr for ModelName {
    type Err = Error;

    fn from_str(text: &str) -> Result<ModelName, Error> {
        let (id, revision) = match text.split_once('@') {
            Some((id, revision)) => (id, Some(revision)),
            None => (text, None),
        };
        let problem = problem_of_id(id).or_else(|| problem_of_revision(revision?));
        match problem {
            Some(problem) => Err(Error::Name { name: text.to_owned(), problem }),
            None => Ok(ModelName { id: id.to_owned(), revision: revision.map(str::to_owned) }),
        }
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)?;
        self.revision.as_ref().map_or(Ok(()), |revision| write!(f, "@{revision}"))
    }
}

fn problem_of_id(id: &str) -> Option<&'static str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_part = |part: &str| {
        part.starts_with(is_word)
            && part.ends_with(is_word)
            && part.chars().all(|c| is_word(c) || c == '-' || c == '.')
    };
    if id.len() > LONGEST {
        return Some("longer than 96 characters");
    }
    if id.split('/').count() > 2 || !id.split('/').all(is_part) {
        return Some("a name is `owner/name` or `name`, of letters, digits, `-`, `_` and `.`");
    }
    if id.contains("--") || id.contains("..") || id.ends_with(".git") {
        return Some("no name has `--` or `..` in it, or ends in `.git`");
    }
    None
}

/// Revisions are names of git, which may have slashes: `refs/pr/1`.
fn problem_of_revision(revision: &str) -> Option<&'static str> {
    let is_allowed = |c: char| c.is_ascii_graphic() && !"\\:*?\"<>|~^[@".contains(c);
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '-'])
            && !part.ends_with(['.'])
            && !part.ends_with(".lock")
    };
    let is_good = revision.len() <= 255
        && !revision.contains("..")
        && revision.chars().all(is_allowed)
        && revision.split('/').all(is_part);
    (!is_good).then_some("what follows `@` is a branch, a tag or a commit")
}

/// Whether a text is a whole commit hash.
pub(crate) fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_hub() {
        for good in
            ["gpt2", "Helsinki-NLP/opus-mt-en-de", "a/b_c.d", "_/x", "x@main", "a/b@refs/pr/1", "a/b@v1.0"]
        {
            let name: ModelName = good.parse().unwrap();
            assert_eq!(name.to_string(), good);
        }
        for bad in [
            "", ".", "..", "../x", "a/..", "/etc", "a/b/c", "a//b", "a/", "/a", "a b", "a\\b", "-a", "a-",
            "a--b", "a..b", "C:x", "a.git", "~/x", "ä", "a@", "a@../x", "a@/x", "a@x/../y", "a@.x", "a@x\ny",
            "a/b@c@d", "a\0",
        ] {
            assert!(bad.parse::<ModelName>().is_err(), "{bad:?}");
        }
        assert!("x".repeat(97).parse::<ModelName>().is_err());
    }

    #[test]
    fn folders_of_the_cache_have_names_and_lead_back() {
        let name: ModelName = "Helsinki-NLP/opus-mt-en-de@v1".parse().unwrap();
        assert_eq!((name.folder().as_str(), name.revision()), ("models--Helsinki-NLP--opus-mt-en-de", "v1"));
        assert_eq!(ModelName::of_folder(&name.folder()).unwrap().id(), "Helsinki-NLP/opus-mt-en-de");
        assert_eq!(ModelName::of_folder("models--gpt2").unwrap().revision(), "main");
        for other in ["datasets--a--b", "models--", "models--a--b--c", ".locks", "models--..", "version.txt"]
        {
            assert!(ModelName::of_folder(other).is_none(), "{other}");
        }
    }
}
