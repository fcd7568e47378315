//! All segments of a hypothesis, counted for every score.

use super::{Error, Options, Scores, bleu, chrf, ter, tokenize};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Mutex;

/// A hypothesis with its references: segment n of one belongs to segment n of the others.
#[derive(Debug, Clone)]
pub struct Segments<'a> {
    hypothesis: Vec<&'a str>,
    references: Vec<Vec<&'a str>>,
}

/// What a segment adds to each score.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counts {
    /// To BLEU.
    pub bleu: bleu::Counts,
    /// To chrF.
    pub chrf: chrf::Chrf,
    /// To chrF++.
    pub chrf_pp: chrf::ChrfPp,
    /// To TER.
    pub ter: ter::Counts,
}

/// The counts of all segments.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    segments: Vec<Counts>,
}

impl<'a> Segments<'a> {
    /// A hypothesis and at least one reference, each with as many segments.
    pub fn new<R: AsRef<[&'a str]>>(hypothesis: &[&'a str], references: &[R]) -> Result<Segments<'a>, Error> {
        let lengths = || references.iter().map(|reference| reference.as_ref().len());
        if references.is_empty() || hypothesis.is_empty() || lengths().any(|n| n != hypothesis.len()) {
            return Err(Error::Segments { segments: hypothesis.len(), references: lengths().collect() });
        }
        let references = references.iter().map(|reference| reference.as_ref().to_vec()).collect();
        Ok(Segments { hypothesis: hypothesis.to_vec(), references })
    }

    /// Counts every segment, on all cores.
    pub fn count(&self, options: Options) -> Counted {
        // Segments differ much in length: a thread that has finished a piece takes the next.
        const PIECE: usize = 64;
        let mut segments = vec![Counts::default(); self.hypothesis.len()];
        let pieces = Mutex::new(segments.chunks_mut(PIECE).enumerate());
        let work = || {
            loop {
                let next = pieces.lock().expect("nobody panics while holding it").next();
                let Some((number, piece)) = next else { break };
                for (i, counts) in piece.iter_mut().enumerate() {
                    *counts = self.count_one(number * PIECE + i, options);
                }
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 1..threads.min(self.hypothesis.len().div_ceil(PIECE)) {
                scope.spawn(work);
            }
            work();
        });
        Counted { segments }
    }

    fn count_one(&self, segment: usize, options: Options) -> Counts {
        let hypothesis = self.hypothesis[segment];
        let references = || self.references.iter().map(|reference| reference[segment]);
        let lower = |text: &str| text.to_lowercase();
        let cased = |text: &'a str| if options.lowercase { Cow::Owned(lower(text)) } else { text.into() };

        let plain = Texts::new(hypothesis, references(), cased);
        let tokenized = plain.map(|text| options.tokenize.apply(text));
        let (hypothesis_words, reference_words) = tokenized.numbered();
        let (chrf, chrf_pp) = chrf::count(&plain.hypothesis, &plain.references());
        let bleu = bleu::Counts::new(&hypothesis_words, &reference_words);

        let lowered = Texts::new(hypothesis, references(), |text| Cow::Owned(lower(text)));
        let (hypothesis_words, reference_words) = lowered.numbered();
        let ter = ter::Counts::new(&hypothesis_words, &reference_words);
        Counts { bleu, chrf, chrf_pp, ter }
    }
}

impl Counts {
    /// Adds those of another segment.
    pub fn add(&mut self, other: &Counts) {
        self.bleu.add(&other.bleu);
        self.chrf.add(&other.chrf);
        self.chrf_pp.add(&other.chrf_pp);
        self.ter.add(&other.ter);
    }

    /// The scores of the segments that were added.
    pub fn scores(&self) -> Scores {
        Scores {
            bleu: self.bleu.score(),
            chrf: self.chrf.score(),
            chrf_pp: self.chrf_pp.score(),
            ter: self.ter.score(),
        }
    }
}

impl Counted {
    /// The counts of each segment.
    pub fn segments(&self) -> &[Counts] {
        &self.segments
    }

    /// The scores of the whole hypothesis.
    pub fn scores(&self) -> Scores {
        self.sum(0..self.segments.len()).scores()
    }

    /// The sum over some segments, which may come more than once.
    pub(super) fn sum(&self, segments: impl Iterator<Item = usize>) -> Counts {
        let mut sum = Counts::default();
        segments.for_each(|segment| sum.add(&self.segments[segment]));
        sum
    }
}

/// One segment with its references, in some form.
struct Texts<'a> {
    hypothesis: Cow<'a, str>,
    references: Vec<Cow<'a, str>>,
}

impl<'a> Texts<'a> {
    fn new(
        hypothesis: &'a str,
        references: impl Iterator<Item = &'a str>,
        form: impl Fn(&'a str) -> Cow<'a, str>,
    ) -> Texts<'a> {
        Texts { hypothesis: form(hypothesis), references: references.map(form).collect() }
    }

    fn references(&self) -> Vec<&str> {
        self.references.iter().map(|reference| &**reference).collect()
    }

    fn map<'b>(&'b self, form: impl Fn(&'b str) -> Cow<'b, str>) -> Texts<'b> {
        Texts::new(&self.hypothesis, self.references.iter().map(|reference| &**reference), form)
    }

    /// Their words as numbers above zero, the same for the same word.
    fn numbered(&self) -> (Vec<u32>, Vec<Vec<u32>>) {
        let mut numbers = HashMap::new();
        let hypothesis = number(&self.hypothesis, &mut numbers);
        let references = self.references.iter().map(|reference| number(reference, &mut numbers)).collect();
        (hypothesis, references)
    }
}

fn number<'a>(text: &'a str, numbers: &mut HashMap<&'a str, u32>) -> Vec<u32> {
    let number = |word| {
        let next = numbers.len() as u32 + 1;
        *numbers.entry(word).or_insert(next)
    };
    tokenize::words(text).map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_do_not_depend_on_who_counts_them() {
        let lines: Vec<String> = (0..500).map(|i| format!("line {i} of {} words", i % 7)).collect();
        let hypothesis: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut reference = hypothesis.clone();
        reference.rotate_left(1);
        let segments = Segments::new(&hypothesis, &[reference]).unwrap();
        let counted = segments.count(Options::default());
        for i in 0..500 {
            assert_eq!(counted.segments()[i], segments.count_one(i, Options::default()), "{i}");
        }
    }

    #[test]
    fn references_of_another_length_or_none_are_refused() {
        assert!(Segments::new::<[&str; 1]>(&["a"], &[]).is_err());
        assert!(Segments::new::<[&str; 0]>(&[], &[[]]).is_err());
        let error = Segments::new(&["a", "b"], &[["a"]]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the hypothesis has 2 segments and the references have [1]: the numbers must be equal"
        );
    }
}
