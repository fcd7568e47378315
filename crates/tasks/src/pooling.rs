//! How the vector of a text is made of those of its tokens: what a folder of sentence-transformers says.

use crate::error::Error;
use serde_json::Value;
use std::io::ErrorKind;
use std::path::Path;

/// What is made of the tokens' vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pooling {
    /// Their mean.
    #[default]
    Mean,
    /// The first one.
    First,
}

/// What a folder says of its vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pools {
    /// How the vector of a text is made.
    pub pooling: Pooling,
    /// Whether it is divided by its length.
    pub normalised: bool,
    /// The most tokens that a text may have, if the folder says so.
    pub limit: Option<usize>,
}

impl Pools {
    /// What a folder says; without a word, the mean of all tokens, divided by its length.
    pub fn of(folder: &Path) -> Result<Pools, Error> {
        let limit = match json(&folder.join("sentence_bert_config.json"))? {
            Some(config) => {
                limit(&config).map_err(|problem| format(folder, "sentence_bert_config.json", problem))?
            }
            None => None,
        };
        let Some(modules) = json(&folder.join(MODULES))? else {
            return Ok(Pools { pooling: Pooling::Mean, normalised: true, limit });
        };
        let mut pools = Pools { limit, ..Pools::default() };
        for (kind, path) in self::modules(&modules).map_err(|problem| format(folder, MODULES, problem))? {
            match kind {
                "Transformer" => {}
                "Normalize" => pools.normalised = true,
                "Pooling" => {
                    let file = format!("{path}/config.json");
                    let missing = || format(folder, &file, format!("is missing, and {MODULES} names it"));
                    let config = json(&folder.join(&file))?.ok_or_else(missing)?;
                    pools.pooling = pooling(&config).map_err(|problem| format(folder, &file, problem))?;
                }
                other => {
                    let problem = format!(
                        "a module `{other}` is not supported; Transformer, Pooling and Normalize are"
                    );
                    return Err(format(folder, MODULES, problem));
                }
            }
        }
        Ok(pools)
    }
}

pub(crate) const MODULES: &str = "modules.json";

fn format(folder: &Path, file: &str, problem: String) -> Error {
    Error::Format { path: folder.join(file), problem }
}

/// A file of JSON, if it is there.
pub(crate) fn json(path: &Path) -> Result<Option<Value>, Error> {
    let failed = |problem: String| Error::Format { path: path.to_owned(), problem };
    match std::fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(format!("cannot be read: {error}"))),
        Ok(bytes) => {
            serde_json::from_slice(&bytes).map(Some).map_err(|error| failed(format!("is no JSON: {error}")))
        }
    }
}

fn limit(config: &Value) -> Result<Option<usize>, String> {
    match config.get("max_seq_length") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(limit @ 3..) => Ok(Some(limit as usize)),
            _ => Err(format!("`max_seq_length` must be a whole number from 3 on, not {value}")),
        },
    }
}

/// The kind and the folder of each module.
fn modules(modules: &Value) -> Result<Vec<(&str, &str)>, String> {
    let list = modules.as_array().ok_or("is no list of modules")?;
    let module = |module| {
        let kind = str_of(module, "type").ok_or("a module has no `type`")?;
        let path = str_of(module, "path").unwrap_or_default();
        if path.contains("..") || path.starts_with('/') || path.contains('\\') {
            return Err(format!("the path `{path}` leaves the folder"));
        }
        // The name of a Python class, of which the last word tells enough.
        Ok((kind.rsplit('.').next().unwrap_or(kind), path))
    };
    list.iter().map(module).collect()
}

fn str_of<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

/// The one way that a `config.json` of pooling asks for: a flag for each in the old spelling, a word in the new one.
fn pooling(config: &Value) -> Result<Pooling, String> {
    let supported = |name: &str| match name {
        "mean" | "mean_tokens" => Ok(Pooling::Mean),
        "cls" | "cls_token" => Ok(Pooling::First),
        other => Err(format!("pooling by `{other}` is not supported; `mean` and `cls` are")),
    };
    match config.get("pooling_mode") {
        Some(Value::String(name)) => return supported(name),
        Some(Value::Null) | None => {}
        Some(other) => return Err(format!("`pooling_mode` must be one word, not {other}")),
    }
    let flags = config.as_object().into_iter().flatten();
    let set: Vec<&str> = flags
        .filter(|(_, value)| **value == Value::Bool(true))
        .filter_map(|(key, _)| key.strip_prefix("pooling_mode_"))
        .collect();
    match set[..] {
        [] => Ok(Pooling::Mean),
        [name] => supported(name),
        _ => Err(format!("several kinds of pooling at once are not supported: {}", set.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_spellings_of_pooling_are_understood() {
        let old = json!({"word_embedding_dimension": 384, "pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true});
        assert_eq!(pooling(&old), Ok(Pooling::Mean));
        assert_eq!(pooling(&json!({"pooling_mode_cls_token": true})), Ok(Pooling::First));
        assert_eq!(pooling(&json!({"embedding_dimension": 384, "pooling_mode": "cls"})), Ok(Pooling::First));
        assert_eq!(pooling(&json!({})), Ok(Pooling::Mean));
        for wrong in [
            json!({"pooling_mode": "max"}),
            json!({"pooling_mode_max_tokens": true}),
            json!({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true}),
            json!({"pooling_mode": ["mean", "cls"]}),
        ] {
            assert!(pooling(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn modules_stay_in_their_folder() {
        let module =
            |path: &str| json!([{"idx": 1, "path": path, "type": "sentence_transformers.models.Pooling"}]);
        assert_eq!(modules(&module("1_Pooling")), Ok(vec![("Pooling", "1_Pooling")]));
        for path in ["../1_Pooling", "/etc", "a/../../b", "..\\x"] {
            assert!(modules(&module(path)).is_err(), "{path}");
        }
        assert!(modules(&json!({})).is_err() && modules(&json!([{"path": ""}])).is_err());
    }

    #[test]
    fn a_limit_is_a_number_that_leaves_room_for_a_word() {
        assert_eq!(limit(&json!({"max_seq_length": 256})), Ok(Some(256)));
        assert_eq!(limit(&json!({"max_seq_length": null})), Ok(None));
        assert!(
            limit(&json!({"max_seq_length": 2})).is_err() && limit(&json!({"max_seq_length": -1})).is_err()
        );
    }
}
