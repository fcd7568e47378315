//! Which bytes of a translation come from which bytes of the source, by links between their words.
//!
//! Words are parted by white space. A word is punctuation, core, punctuation; of two words that are linked the cores are a
//! pair, and so is the punctuation before and behind them. Where markup stands inside a core, the translation is cut at the
//! same place if it has the same letters up to there or from there on (`H<sub>2</sub>O`, `dog<sup>1</sup>`), and nowhere
//! otherwise. White space between two words of the translation that come from neighbours in the source is theirs too.

use super::pieces::{Link, Pair, Pieces};
use std::ops::Range;

/// Cuts a text at `cuts`, which are in order, and its translation where links say.
pub(super) fn pieces(source: &str, translation: &str, links: &[Link], cuts: Vec<usize>) -> Pieces {
    let (from, to) = (words(source), words(translation));
    let mut links = links.to_vec();
    links.retain(|link| link.0 < from.len() && link.1 < to.len());
    links.sort_unstable();
    links.dedup();
    let Spaced { text, words: to, mut pairs } = spaced([source, translation], [&from, &to], &links, &cuts);
    for (word, other) in links.iter().map(|link| (&from[link.0], &to[link.1])) {
        let within = within(&source[word.clone()], &text[other.clone()], inside(&cuts, word));
        let moved = |(bytes, others)| (moved(bytes, word.start), moved(others, other.start));
        pairs.extend(within.into_iter().map(moved));
    }
    let source_cuts = edges_of_all(source, &from).chain(cuts).collect();
    let target_cuts = edges_of_all(&text, &to).collect();
    Pieces::new(source, text, &pairs, [source_cuts, target_cuts])
}

/// A translation with the white space of its source, as far as links say where that belongs.
struct Spaced {
    text: String,
    words: Vec<Range<usize>>,
    /// Where the white space comes from.
    pairs: Vec<Pair>,
}

fn spaced(
    [source, translation]: [&str; 2],
    [from, to]: [&[Range<usize>]; 2],
    links: &[Link],
    cuts: &[usize],
) -> Spaced {
    let (own, others) = (spaces(to, translation.len()), spaces(from, source.len()));
    let mut all = Spaced { text: String::new(), words: Vec::new(), pairs: Vec::new() };
    for (place, origin) in origins(links, from.len(), to.len()).into_iter().enumerate() {
        match origin {
            Some(origin) => {
                all.pairs.extend(same(&others[origin], all.text.len(), cuts));
                all.text.push_str(&source[others[origin].clone()]);
            }
            None => all.text.push_str(&translation[own[place].clone()]),
        }
        if let Some(word) = to.get(place) {
            all.words.push(moved(0..word.len(), all.text.len()));
            all.text.push_str(&translation[word.clone()]);
        }
    }
    all
}

fn moved(bytes: Range<usize>, by: usize) -> Range<usize> {
    bytes.start + by..bytes.end + by
}

/// The words of a text.
fn words(text: &str) -> Vec<Range<usize>> {
    let start = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
    text.split_whitespace().map(|word| start(word)..start(word) + word.len()).collect()
}

/// The white space before each word and behind the last.
fn spaces(words: &[Range<usize>], length: usize) -> Vec<Range<usize>> {
    let starts = std::iter::once(0).chain(words.iter().map(|word| word.end));
    let ends = words.iter().map(|word| word.start).chain([length]);
    starts.zip(ends).map(|(start, end)| start..end).collect()
}

/// For the white space before each word of the translation, and behind the last, that of the source which it comes from.
fn origins(links: &[Link], source_words: usize, target_words: usize) -> Vec<Option<usize>> {
    let mut origins = vec![None; target_words + 1];
    origins[target_words] = Some(source_words);
    for &(source, target) in links.iter().rev() {
        if links.binary_search(&(source + 1, target + 1)).is_ok() {
            origins[target + 1] = Some(source + 1);
        }
    }
    origins[0] = Some(0);
    origins
}

/// The same bytes at another place: pairs from cut to cut.
fn same(bytes: &Range<usize>, start: usize, cuts: &[usize]) -> Vec<Pair> {
    let mut bounds = vec![bytes.start];
    bounds.extend(inside(cuts, bytes).iter().map(|cut| bytes.start + cut));
    bounds.push(bytes.end);
    let moved = |byte: usize| byte - bytes.start + start;
    let pairs = bounds.windows(2).filter(|pair| pair[0] < pair[1]);
    pairs.map(|pair| (pair[0]..pair[1], moved(pair[0])..moved(pair[1]))).collect()
}

/// The cuts inside some bytes, counted from their start. Cuts are in order.
fn inside(cuts: &[usize], bytes: &Range<usize>) -> Vec<usize> {
    let first = cuts.partition_point(|cut| *cut <= bytes.start);
    let last = cuts.partition_point(|cut| *cut < bytes.end);
    cuts[first..last.max(first)].iter().map(|cut| cut - bytes.start).collect()
}

/// Which bytes of a word come from which bytes of another that is cut.
fn within(word: &str, other: &str, cuts: Vec<usize>) -> Vec<Pair> {
    let (length, other_length) = (word.len(), other.len());
    let ([_, start, end, _], [_, other_start, other_end, _]) = (edges(word), edges(other));
    let mut fixed = vec![(0, 0), (length, other_length)];
    if start < end && other_start < other_end {
        fixed.splice(1..1, [(start, other_start), (end, other_end)]);
    }
    let common = |a: &mut dyn Iterator<Item = char>, b: &mut dyn Iterator<Item = char>| {
        a.zip(b).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum::<usize>()
    };
    let prefix = common(&mut word.chars(), &mut other.chars());
    let suffix = common(&mut word.chars().rev(), &mut other.chars().rev());
    let image = |cut: usize| match () {
        _ if cut <= prefix => Some(cut),
        _ if length - cut <= suffix => Some(other_length - (length - cut)),
        _ => None,
    };
    let mut bounds = Vec::new();
    let mut cuts = cuts.into_iter().peekable();
    for &(at, other_at) in &fixed {
        while let Some(cut) = cuts.next_if(|cut| *cut < at) {
            let least = bounds.last().map_or(0, |(_, image)| *image);
            bounds.extend(
                image(cut).filter(|image| (least..=other_at).contains(image)).map(|image| (cut, image)),
            );
        }
        bounds.push((at, other_at));
    }
    let pairs = bounds.windows(2).map(|pair| (pair[0].0..pair[1].0, pair[0].1..pair[1].1));
    pairs.filter(|(bytes, other)| !bytes.is_empty() && !other.is_empty()).collect()
}

fn edges_of_all<'a>(text: &'a str, words: &'a [Range<usize>]) -> impl Iterator<Item = usize> + 'a {
    words.iter().flat_map(|word| edges(&text[word.clone()]).map(|edge| word.start + edge))
}

/// Where a word, its core, the punctuation behind it and the word itself begin or end. A word that is punctuation has no core.
fn edges(word: &str) -> [usize; 4] {
    let is_mark = |character: char| !character.is_alphanumeric();
    let start = word.len() - word.trim_start_matches(is_mark).len();
    let end = word.trim_end_matches(is_mark).len();
    if start < word.len() { [0, start, end, word.len()] } else { [0, 0, 0, word.len()] }
}
