//! What stands before a text that is to be translated, of a model that is asked in words: `translate English to German: ` of a T5.

use serde_json::Value;
use std::path::Path;

/// How a model is asked to translate from one language into another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// The code of the language that is read.
    pub source: String,
    /// The code of the language that is written.
    pub target: String,
    /// What stands before the text, a space behind it included.
    pub words: String,
    /// What `config.json` calls the task.
    pub task: String,
}

impl Instruction {
    /// Those of a folder: the tasks `translation_en_to_de` of the `task_specific_params` in its `config.json`, in their order.
    pub fn all_of(folder: &Path) -> Vec<Instruction> {
        let text = std::fs::read_to_string(folder.join("config.json")).unwrap_or_default();
        let config: Value = serde_json::from_str(&text).unwrap_or_default();
        let tasks = config["task_specific_params"].as_object().into_iter().flatten();
        tasks.filter_map(|(task, parameters)| Instruction::of(task, parameters)).collect()
    }

    fn of(task: &str, parameters: &Value) -> Option<Instruction> {
        let (source, target) = task.strip_prefix("translation_")?.split_once("_to_")?;
        let words = parameters["prefix"].as_str().filter(|words| !words.trim().is_empty())?;
        let [source, target, words] = [source, target, words].map(str::to_owned);
        Some(Instruction { source, target, words, task: task.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_task_that_names_two_languages_is_an_instruction() {
        let words = json!({"prefix": "translate English to German: ", "num_beams": 4});
        let found = Instruction::of("translation_en_to_de", &words).unwrap();
        assert_eq!((&*found.source, &*found.target), ("en", "de"));
        assert_eq!(found.words, "translate English to German: ");
        assert_eq!(Instruction::of("summarization", &json!({"prefix": "summarize: "})), None);
        assert_eq!(Instruction::of("translation_en_to_de", &json!({"num_beams": 4})), None);
        assert_eq!(Instruction::all_of(Path::new("/nowhere")), []);
    }
}
