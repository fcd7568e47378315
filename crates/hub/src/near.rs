//! Similar names, for a name that does not exist.

/// The most names that are suggested.
const MOST: usize = 3;

/// Those of `known` that differ little from `name`, the nearest first. Letters of either case are the same.
pub(crate) fn near<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let last = |id: &str| id.rsplit('/').next().unwrap_or_default().to_lowercase();
    let name = name.to_lowercase();
    let distance = |other: &str| {
        let whole = edits(&name, &other.to_lowercase());
        // Another owner of a model with the same name is near, too.
        if last(&name) == last(other) { whole.min(1) } else { whole }
    };
    let allowed = (name.len() / 4).max(2);
    let mut found: Vec<(usize, &str)> = known.into_iter().map(|other| (distance(other), other)).collect();
    found.retain(|(distance, _)| *distance <= allowed);
    found.sort();
    found.into_iter().take(MOST).map(|(_, other)| other.to_owned()).collect()
}

/// How many characters have to be inserted, removed or replaced.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, &to) in b.iter().enumerate() {
            let replaced = corner + usize::from(from != to);
            corner = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_little_are_near() {
        let known =
            ["Helsinki-NLP/opus-mt-en-de", "Helsinki-NLP/opus-mt-en-fr", "gpt2", "openai-community/gpt2"];
        assert_eq!(near("Helsinki-NLP/opus-mt-en-dee", known)[0], "Helsinki-NLP/opus-mt-en-de");
        assert_eq!(near("helsinki-nlp/opus-mt-en-de", known)[0], "Helsinki-NLP/opus-mt-en-de");
        assert_eq!(near("gpt", known), ["gpt2"]);
        assert_eq!(near("GPT2", known), ["gpt2", "openai-community/gpt2"]);
        assert!(near("bert-base-uncased", known).is_empty());
    }

    #[test]
    fn edits_are_counted() {
        for (a, b, count) in [("", "", 0), ("a", "", 1), ("kitten", "sitting", 3), ("ab", "ba", 2)] {
            assert_eq!((edits(a, b), edits(b, a)), (count, count), "{a} {b}");
        }
    }
}
