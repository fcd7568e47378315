//! Which bytes of a translation come from which bytes of the source, where words cannot tell: the share of the characters
//! before a place is the same in both texts.
//!
//! That is for languages that write no spaces, in which a sentence is one word, and for translations without links. The
//! order of the markup stays the same; no word of letters that are parted by spaces is cut.

use super::pieces::{Pair, Pieces};
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// Whether most of the letters of a text are of a script without spaces between words.
pub(super) fn has_no_spaces(text: &str) -> bool {
    let letters = || text.chars().filter(|character| character.is_alphanumeric());
    2 * letters().filter(|character| is_spaceless(*character)).count() > letters().count()
}

/// Cuts a text at `cuts`, and its translation in proportion.
pub(super) fn pieces(source: &str, translation: &str, cuts: Vec<usize>) -> Pieces {
    let text = if source.split_whitespace().eq(translation.split_whitespace()) {
        source.to_owned()
    } else {
        let (before, behind) = (source.len() - source.trim_start().len(), source.trim_end().len());
        format!("{}{}{}", &source[..before], translation.trim(), &source[behind..])
    };
    let map = Map::new(source, &text);
    let mut bounds: Vec<usize> = [0, source.len()].into_iter().chain(cuts).collect();
    bounds.sort_unstable();
    bounds.dedup();
    // Two places of which only the second is before white space might change their order.
    let mut last = 0;
    let mut image = |byte: &usize| {
        last = map.image(*byte).max(last);
        last
    };
    let images: Vec<usize> = bounds.iter().map(&mut image).collect();
    let pairs: Vec<Pair> =
        bounds.windows(2).zip(images.windows(2)).map(|(a, b)| (a[0]..a[1], b[0]..b[1])).collect();
    Pieces::new(source, text, &pairs, [bounds, Vec::new()])
}

struct Map<'a> {
    source: &'a str,
    target: &'a str,
    /// Whether the translation is the source.
    is_same: bool,
    /// Where the characters of the translation that are no white space begin.
    starts: Vec<usize>,
    /// How many there are before each byte of the source.
    counts: Vec<usize>,
}

impl<'a> Map<'a> {
    fn new(source: &'a str, target: &'a str) -> Map<'a> {
        let characters = target.char_indices().filter(|(_, character)| !character.is_whitespace());
        let mut counts = Vec::with_capacity(source.len() + 1);
        let mut count = 0;
        for character in source.chars() {
            counts.extend(std::iter::repeat_n(count, character.len_utf8()));
            count += usize::from(!character.is_whitespace());
        }
        counts.push(count);
        let starts = characters.map(|(start, _)| start).collect();
        Map { source, target, is_same: source == target, starts, counts }
    }

    /// Where a byte of the source comes to stand.
    fn image(&self, byte: usize) -> usize {
        if self.is_same {
            return byte;
        }
        let (before, all) = (self.counts[byte], self.counts[self.source.len()]);
        // White space at the edges is the source's.
        if before == 0 {
            return byte.min(self.target.len() - self.target.trim_start().len());
        }
        let behind = self.source.len() - byte;
        if before == all {
            return self.target.len() - behind.min(self.target.len() - self.target.trim_end().len());
        }
        let count = (2 * before * self.starts.len() + all) / (2 * all);
        let edge = self.starts.get(count).copied().unwrap_or(self.target.trim_end().len());
        let edge = self.free(edge);
        // Before white space in the source, before white space in the translation; otherwise behind it.
        let (left, right) = self.target.split_at(edge);
        if self.source[byte..].starts_with(char::is_whitespace) {
            left.trim_end().len()
        } else {
            edge + right.len() - right.trim_start().len()
        }
    }

    /// The next place from a byte on that is in no word and before no combining mark.
    fn free(&self, byte: usize) -> usize {
        let mut last = self.target[..byte].chars().next_back();
        for (place, character) in self.target[byte..].char_indices() {
            let is_letter = |character: char| character.is_alphanumeric() && !is_spaceless(character);
            let is_mark = character.general_category_group() == GeneralCategoryGroup::Mark;
            let is_inside = last.is_some_and(is_letter) && is_letter(character);
            if !is_mark && !is_inside {
                return byte + place;
            }
            last = Some(character);
        }
        self.target.len()
    }
}

/// Han, kana, and the scripts of Thailand, Laos, Myanmar and Cambodia.
fn is_spaceless(character: char) -> bool {
    matches!(u32::from(character),
        0x0e00..=0x0eff | 0x1000..=0x109f | 0x1780..=0x17ff | 0x2e80..=0x2fff | 0x3005..=0x30ff | 0x31f0..=0x31ff
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0xff66..=0xff9d | 0x20000..=0x323af)
}
