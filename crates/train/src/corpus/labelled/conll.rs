//! Tables of words, as the shared tasks of CoNLL have them.
//!
//! A line is a word, maybe other columns, and the tag of the word. Columns have tabs between them, or spaces if the line has no tab. An
//! empty line ends a sentence; lines that begin with `-DOCSTART-` say nothing.

use super::TaggedSentence;
use super::labels::Collector;

/// The most words of a sentence: with more, the lines between sentences are missing.
const MOST_WORDS: usize = 10_000;
const GAPS: [char; 2] = [' ', '\t'];

/// The sentences of a file, line by line.
#[derive(Default)]
pub(super) struct Sentences {
    sentence: TaggedSentence,
    /// How many columns the first line has, and so all others.
    columns: Option<usize>,
}

impl Sentences {
    /// Reads a line: the sentence that it ends, or what is wrong with it.
    pub(super) fn line(
        &mut self,
        line: &str,
        all: &mut Collector<'_, TaggedSentence>,
    ) -> Result<Option<TaggedSentence>, String> {
        let line = line.trim_end_matches(GAPS);
        if line.is_empty() || line.starts_with("-DOCSTART-") {
            return Ok(self.end());
        }
        let (count, word, tag) = columns(line);
        let expected = *self.columns.get_or_insert(count);
        if count < 2 || word.is_empty() {
            return Err("must be a word and its tag, with a tab or a space between them".to_owned());
        }
        if count != expected {
            return Err(format!(
                "has {count} columns, and the first line has {expected}: all lines must have as many; remove comments"
            ));
        }
        all.label(tag)?;
        if self.sentence.words.len() == MOST_WORDS {
            return Err(format!(
                "is word {} of a sentence: an empty line must end each sentence",
                MOST_WORDS + 1
            ));
        }
        self.sentence.words.push(word.to_owned());
        self.sentence.tags.push(tag.to_owned());
        Ok(None)
    }

    /// The sentence so far, if it has words.
    pub(super) fn end(&mut self) -> Option<TaggedSentence> {
        let sentence = std::mem::take(&mut self.sentence);
        (!sentence.words.is_empty()).then_some(sentence)
    }
}

/// How many columns a line has, the first one and the last one.
fn columns(line: &str) -> (usize, &str, &str) {
    let tabs = line.contains('\t');
    // Several spaces are one gap; between two tabs is an empty column.
    let columns = line.split(if tabs { '\t' } else { ' ' }).filter(|column| tabs || !column.is_empty());
    let (mut count, mut first, mut last) = (0, "", "");
    for column in columns {
        if count == 0 {
            first = column;
        }
        (count, last) = (count + 1, column);
    }
    (count, first, last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<TaggedSentence>, String> {
        let (mut sentences, mut all, mut read) = (Sentences::default(), Collector::new(None), vec![]);
        for line in text.split('\n') {
            read.extend(sentences.line(line, &mut all)?);
        }
        read.extend(sentences.end());
        Ok(read)
    }

    fn sentence(text: &str) -> TaggedSentence {
        let (words, tags) =
            text.split(' ').map(|pair| pair.rsplit_once('/').unwrap()).unzip::<_, _, Vec<_>, Vec<_>>();
        let owned = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect();
        TaggedSentence { words: owned(words), tags: owned(tags) }
    }

    #[test]
    fn sentences_end_with_empty_lines_and_the_file() {
        let expected = [sentence("EU/B-ORG rejects/O"), sentence("Peter/B-PER")];
        for text in [
            "EU\tB-ORG\nrejects\tO\n\nPeter\tB-PER",
            "-DOCSTART- -X- -X- O\n\nEU NNP I-NP B-ORG\nrejects VBZ I-VP O\n \n\nPeter  NNP I-NP B-PER \n\n",
        ] {
            assert_eq!(read(text).unwrap(), expected);
        }
    }

    #[test]
    fn only_tabs_and_spaces_are_between_columns() {
        assert_eq!(read("New York\tB-LOC").unwrap()[0].words, ["New York"]);
        assert_eq!(read("a\u{a0}b O").unwrap()[0].words, ["a\u{a0}b"]);
        assert_eq!(read("\u{3000}\tO").unwrap()[0].words, ["\u{3000}"]);
    }

    #[test]
    fn broken_lines_are_told() {
        for (text, word) in [
            ("word", "must be a word and its tag"),
            ("\tO", "must be a word and its tag"),
            ("word\t", "must be a word and its tag"),
            ("a O\nb NN O", "has 3 columns, and the first line has 2"),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.contains(word), "{text}: {problem}");
        }
        let endless = "a O\n".repeat(MOST_WORDS + 1);
        assert!(read(&endless).unwrap_err().contains("an empty line must end each sentence"));
    }
}
