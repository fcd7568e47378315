//! Settings on disk: `train.toml`.

use super::Settings;
use crate::Error;
use attentive_model::checkpoint::Staged;
use serde_json::{Map, Value};
use std::path::Path;
use toml::Table;

/// Reads a file of settings, as far as it says anything. A key that does not exist, or a value that is none,
/// is refused.
pub fn read(path: &Path) -> Result<Table, Error> {
    let refused = |problem| Error::SettingsFile { path: path.to_owned(), problem };
    let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
        let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        refused(format!("{place}{}", error.message()))
    })?;
    for (name, value) in &table {
        check(name, value).map_err(refused)?;
    }
    Ok(table)
}

/// The settings of the run in a folder.
pub fn load(folder: &Path) -> Result<Settings, Error> {
    Settings::merge(read(&super::path(folder))?, Table::new())
}

/// Writes settings, every one of them; those that are not set stand there as comments.
pub fn write(settings: &Settings, path: &Path) -> Result<(), Error> {
    let mut text = String::from(
        "# The settings of this run; use them for another run with `attentive train --config`.\n",
    );
    let set = Table::try_from(settings).expect("settings are a table");
    for name in values(settings).keys() {
        match set.get(name) {
            Some(value) => text.push_str(&format!("{name} = {value}\n")),
            None => text.push_str(&format!("# {name} is not set\n")),
        }
    }
    Ok(Staged::new(path, text.as_bytes())?.commit()?)
}

impl Settings {
    /// What a file says, with what else was said laid over it; what nobody says is the default of the task.
    pub fn merge(file: Table, over: Table) -> Result<Settings, Error> {
        let failed =
            |error: toml::de::Error| Error::Setting { name: "settings", problem: error.message().to_owned() };
        let mut said = file;
        said.extend(over);
        let Settings { task, .. } = said.clone().try_into().map_err(failed)?;
        let mut table = Table::try_from(Settings::of(task)).expect("settings are a table");
        table.extend(said);
        table.try_into().map_err(failed)
    }
}

/// All settings by name, with `null` for what is not set.
pub(crate) fn values(settings: &Settings) -> Map<String, Value> {
    match serde_json::to_value(settings) {
        Ok(Value::Object(map)) => map,
        _ => unreachable!("settings are an object"),
    }
}

/// Checks that there is such a setting and that it can have this value.
fn check(name: &str, value: &toml::Value) -> Result<(), String> {
    let known = values(&Settings::default());
    if !known.contains_key(name) {
        let nearest = known.keys().min_by_key(|known| distance(name, known));
        return Err(format!(
            "there is no setting `{name}`; did you mean `{}`?",
            nearest.expect("there are settings")
        ));
    }
    let one = Table::from_iter([(name.to_owned(), value.clone())]);
    match one.try_into::<Settings>() {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("`{name}`: {}", error.message())),
    }
}

/// How many letters must be changed, added or taken away to get from one word to the other (Levenshtein's
/// distance).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_levenshteins() {
        for (a, b, expected) in
            [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3), ("same", "same", 0)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest_one() {
        for (wrong, right) in
            [("warm_up", "warmup"), ("batch-tokens", "batch_tokens"), ("drop_out", "dropout")]
        {
            let error = check(wrong, &toml::Value::Integer(1)).unwrap_err();
            assert!(
                error.contains(&format!("`{wrong}`")) && error.contains(&format!("`{right}`")),
                "{error}"
            );
        }
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_refused_by_name() {
        let error = check("steps", &toml::Value::String("many".to_owned())).unwrap_err();
        assert!(error.contains("`steps`"), "{error}");
        let error = check("schedule", &toml::Value::String("steep".to_owned())).unwrap_err();
        assert!(error.contains("`schedule`") && error.contains("inverse-sqrt"), "{error}");
    }

    #[test]
    fn what_is_written_is_read_again_and_flags_win() {
        let path = std::env::temp_dir().join(format!("attentive-settings-{}.toml", std::process::id()));
        let settings = Settings {
            source: vec!["a".into(), "b \"c\"".into()],
            minutes: Some(1.5),
            ema: 0.999,
            beta2: 0.98,
            ..Settings::default()
        };
        write(&settings, &path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let table = read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(text.contains("\n# steps is not set\n") && text.contains("\nminutes = 1.5\n"), "{text}");
        assert_eq!(Settings::merge(table.clone(), Table::new()).unwrap(), settings);
        let over = Table::from_iter([("minutes".to_owned(), toml::Value::Float(2.0))]);
        assert_eq!(Settings::merge(table, over).unwrap().minutes, Some(2.0));
    }
}
