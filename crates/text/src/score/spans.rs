//! How good a tagger is: precision, recall and F1 of spans such as names, equal to seqeval's in its default mode.
//!
//! A tag is `O`, or a prefix and a type: `B-PER` begins a span, `I-PER` goes on with it, `E-PER` ends it, `S-PER` is one alone. A
//! span counts as found if its type and both its ends are right.
//!
//! The rules are those of `conlleval`, which forgive tags that are out of order: where the type changes a span begins, and so
//! does an `I` or `E` after `O`, `E` or `S`. So IOB1, IOB2 and IOBES are read by the same rules.
//!
//! ```
//! use attentive_text::score::{Span, SpanScores, spans};
//!
//! let tags = ["B-PER", "I-PER", "O", "I-LOC"];
//! let span = |kind: &str, begin, end| Span { kind: kind.to_owned(), begin, end };
//! assert_eq!(spans(&tags), [span("PER", 0, 2), span("LOC", 3, 4)]);
//!
//! let mut scores = SpanScores::default();
//! scores.add(&tags, &["B-PER", "O", "O", "B-LOC"]);
//! assert_eq!(scores.spans().micro().f1, 0.5);
//! ```

use super::classes::{Tallies, ratio};

/// Tags that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Span {
    /// The type, `_` for tags without one.
    pub kind: String,
    /// The number of its first tag.
    pub begin: usize,
    /// The number behind that of its last tag.
    pub end: usize,
}

/// The spans of the tags of a sentence, in order.
pub fn spans<T: AsRef<str>>(tags: &[T]) -> Vec<Span> {
    let mut finder = Finder::default();
    let mut spans = Vec::new();
    finder.sentence(tags, |span| spans.push(span));
    spans
}

/// Expected tags beside those that were found.
#[derive(Debug, Clone, Default)]
pub struct SpanScores {
    tallies: Tallies,
    correct_tags: u64,
    tags: u64,
    expected: Finder,
    found: Finder,
}

impl SpanScores {
    /// Counts a sentence.
    ///
    /// # Panics
    /// If there are not as many tags of one as of the other.
    pub fn add<E: AsRef<str>, F: AsRef<str>>(&mut self, expected: &[E], found: &[F]) {
        assert_eq!(expected.len(), found.len(), "span scores: every word needs a tag");
        let same = expected.iter().zip(found).filter(|(expected, found)| expected.as_ref() == found.as_ref());
        self.correct_tags += same.count() as u64;
        self.tags += expected.len() as u64;
        let (mut wanted, mut given) = (Vec::new(), Vec::new());
        self.expected.sentence(expected, |span| wanted.push(span));
        self.found.sentence(found, |span| given.push(span));
        for span in &wanted {
            self.tallies.of(&span.kind).expected += 1;
        }
        // Both are in the order of their ends, of which no two are the same.
        let mut wanted = wanted.iter().peekable();
        for span in &given {
            self.tallies.of(&span.kind).found += 1;
            while wanted.next_if(|other| other.end < span.end).is_some() {}
            if wanted.peek() == Some(&span) {
                self.tallies.of(&span.kind).correct += 1;
            }
        }
    }

    /// The tallies of spans for each type. `micro()` of them is the F1 that is usually meant.
    pub fn spans(&self) -> &Tallies {
        &self.tallies
    }

    /// The share of tags that are right, those outside of spans included; 0 if there are none.
    pub fn accuracy(&self) -> f64 {
        ratio(self.correct_tags, self.tags)
    }

    /// How many tags there are.
    pub fn tags(&self) -> u64 {
        self.tags
    }
}

/// Reads tags one after the other. Sentences follow each other with an `O` between them, as in seqeval, whose rules for tags that are
/// none of a scheme depend on what came before.
#[derive(Debug, Clone)]
struct Finder {
    prefix: char,
    kind: String,
    /// Where the span began that is open, or the last one that was.
    begin: usize,
    /// The number of the next tag, counted over all sentences.
    next: usize,
}

impl Default for Finder {
    fn default() -> Finder {
        Finder { prefix: 'O', kind: String::new(), begin: 0, next: 0 }
    }
}

impl Finder {
    /// Shows the spans of a sentence, with numbers that are counted over all sentences.
    fn sentence<T: AsRef<str>>(&mut self, tags: &[T], mut show: impl FnMut(Span)) {
        for tag in tags.iter().map(AsRef::as_ref).chain(["O"]) {
            let (prefix, kind) = parts(tag);
            let changes = self.kind != kind;
            if ends(self.prefix, prefix, changes) {
                show(Span { kind: self.kind.clone(), begin: self.begin, end: self.next });
            }
            if begins(self.prefix, prefix, changes) {
                self.begin = self.next;
            }
            if changes {
                kind.clone_into(&mut self.kind);
            }
            self.prefix = prefix;
            self.next += 1;
        }
    }
}

/// The prefix of a tag and its type.
fn parts(tag: &str) -> (char, &str) {
    let Some(prefix) = tag.chars().next() else { return ('O', "_") };
    let rest = &tag[prefix.len_utf8()..];
    let kind = rest.split_once('-').map_or(rest, |(_, kind)| kind);
    (prefix, if kind.is_empty() { "_" } else { kind })
}

/// Whether a span ends between two tags.
fn ends(before: char, tag: char, kind_changes: bool) -> bool {
    match (before, tag) {
        ('E' | 'S', _) => true,
        ('B' | 'I', 'B' | 'S' | 'O') => true,
        _ => before != 'O' && before != '.' && kind_changes,
    }
}

/// Whether a span begins at a tag.
fn begins(before: char, tag: char, kind_changes: bool) -> bool {
    match (before, tag) {
        (_, 'B' | 'S') => true,
        ('E' | 'S' | 'O', 'E' | 'I') => true,
        _ => tag != 'O' && tag != '.' && kind_changes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(tags: &str) -> Vec<(String, usize, usize)> {
        let tags: Vec<&str> = tags.split_whitespace().collect();
        spans(&tags).into_iter().map(|span| (span.kind, span.begin, span.end)).collect()
    }

    #[track_caller]
    fn expect(tags: &str, expected: &[(&str, usize, usize)]) {
        let expected: Vec<_> =
            expected.iter().map(|&(kind, begin, end)| (kind.to_owned(), begin, end)).collect();
        assert_eq!(found(tags), expected, "{tags}");
    }

    #[test]
    fn schemes_are_read_by_the_same_rules() {
        expect("B-A I-A O B-A B-A", &[("A", 0, 2), ("A", 3, 4), ("A", 4, 5)]);
        expect("I-A I-A O I-A B-A", &[("A", 0, 2), ("A", 3, 4), ("A", 4, 5)]);
        expect("B-A I-A E-A S-A S-B O", &[("A", 0, 3), ("A", 3, 4), ("B", 4, 5)]);
    }

    #[test]
    fn tags_that_are_out_of_order_begin_a_span() {
        expect("O I-A I-A", &[("A", 1, 3)]);
        expect("B-A I-B I-B", &[("A", 0, 1), ("B", 1, 3)]);
        expect("E-A E-A I-A", &[("A", 0, 1), ("A", 1, 2), ("A", 2, 3)]);
        expect("B I O S", &[("_", 0, 2), ("_", 3, 4)]);
        expect("B-x-y I-x-y", &[("x-y", 0, 2)]);
    }

    #[test]
    fn an_empty_tag_is_outside() {
        assert_eq!(spans(&["B-A", "", "I-A"]).len(), 2);
        assert_eq!(spans::<&str>(&[]), []);
    }

    #[test]
    #[should_panic(expected = "every word needs a tag")]
    fn tags_without_a_partner_are_a_mistake() {
        SpanScores::default().add(&["O"], &["O", "O"]);
    }
}
