//! A stop: the marks that may end a sentence, and the quotes and brackets that they close.

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// Stops that white space follows: full stops, question marks and exclamation marks of scripts with spaces.
const SPACED: &[char] =
    &['.', '!', '?', '…', '‼', '⁇', '⁈', '⁉', '؟', '۔', '।', '॥', '։', '።', '፧', '၊', '။', '។', '៕'];
/// Stops that need no white space behind them.
const IDEOGRAPHIC: &[char] = &['。', '！', '？', '｡', '．'];
/// What a sentence closes behind its stop. A quote that opens in one language closes in another: „Ja.“ and “Yes.”
const CLOSING_QUOTES: &[char] = &['"', '\'', '”', '“', '’', '‘', '»', '«', '›', '‹', '」', '』', '＂'];
const CLOSING_BRACKETS: &[char] = &[')', ']', '}', '）', '］', '】', '》', '〉', '〕'];
/// What goes on with the sentence that a quotation stands in.
const CONTINUING: &[char] = &['、', '，', ',', '；', '：', ';', ':'];

/// A row of stops with what they close: `.`, `?!`, `."` or `.).`.
pub(super) struct Stop {
    /// Where it begins, in bytes of the text.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Whether it is one full stop, with closing brackets at most: it may belong to an abbreviation or to a number.
    pub is_single_dot: bool,
    /// Whether one of its marks needs no white space behind it.
    pub is_ideographic: bool,
    /// Whether it holds a question mark or an exclamation mark.
    is_asking: bool,
    closes_quote: bool,
}

impl Stop {
    /// The stop at `at`, if there is one.
    pub fn read(text: &str, at: usize) -> Option<Stop> {
        let first = text[at..].chars().next().filter(|first| is_mark(*first))?;
        let mut stop = Stop {
            start: at,
            end: at,
            is_single_dot: false,
            is_ideographic: false,
            is_asking: false,
            closes_quote: false,
        };
        let mut marks = 0;
        for character in text[at..].chars() {
            if is_mark(character) {
                marks += 1;
                stop.is_ideographic |= IDEOGRAPHIC.contains(&character) && !is_in_number(text, stop.end);
                stop.is_asking |= matches!(character, '?' | '!');
            } else if stop.closes_with(character) {
                stop.closes_quote = true;
            } else if !CLOSING_BRACKETS.contains(&character) && !is_attached(character) {
                break;
            }
            stop.end += character.len_utf8();
        }
        stop.is_single_dot = first == '.' && marks == 1 && !stop.closes_quote;
        stop.take_spaced_guillemet(text);
        Some(stop)
    }

    /// Whether a quote closes behind the stop. Where no space is needed, the next sentence may open one.
    fn closes_with(&self, quote: char) -> bool {
        CLOSING_QUOTES.contains(&quote) && !(self.is_ideographic && matches!(quote, '“' | '‘' | '«'))
    }

    /// French writes a space before the guillemet that closes: « Oui. »
    fn take_spaced_guillemet(&mut self, text: &str) {
        let mut behind = text[self.end..].chars();
        let space = behind.next().filter(|space| space.is_whitespace() && *space != '\n');
        if let (Some(space), Some('»')) = (space, behind.next())
            && behind.next().is_none_or(char::is_whitespace)
            && last_is_opening(&text[..self.start])
        {
            self.end += space.len_utf8() + '»'.len_utf8();
            self.is_single_dot = false;
        }
    }

    /// Whether it ends a sentence although no white space follows it. `behind` is what follows, and not empty.
    pub fn needs_no_space(&self, behind: &str) -> bool {
        let next = behind.chars().next().unwrap_or_default();
        if !self.is_ideographic {
            return self.is_asking && is_ideograph(next);
        }
        // Japanese と and って say that the quotation before them was said or thought.
        let is_quoted = self.closes_quote && (next == 'と' || behind.starts_with("って"));
        !is_quoted && !CONTINUING.contains(&next)
    }
}

fn is_mark(character: char) -> bool {
    SPACED.contains(&character) || IDEOGRAPHIC.contains(&character)
}

/// `．` is a decimal point as well.
fn is_in_number(text: &str, at: usize) -> bool {
    let is_digit = |character: Option<char>| character.is_some_and(char::is_numeric);
    text[at..].starts_with('．')
        && is_digit(text[..at].chars().next_back())
        && is_digit(text[at..].chars().nth(1))
}

/// What belongs to the character before it: accents, variation selectors, marks of direction.
pub(super) fn is_attached(character: char) -> bool {
    !character.is_ascii()
        && (character.general_category_group() == GeneralCategoryGroup::Mark
            || character.general_category() == GeneralCategory::Format)
}

/// Whether a text has opened a guillemet and not closed it.
fn last_is_opening(text: &str) -> bool {
    /// How far back it is looked for, in characters: a quotation is not longer than that as a rule.
    const FAR: usize = 500;
    text.chars().rev().take(FAR).find(|character| ['«', '»'].contains(character)) == Some('«')
}

/// Letters and punctuation of scripts without spaces: Chinese and Japanese.
pub(super) fn is_unspaced(character: char) -> bool {
    is_ideograph(character)
        || matches!(character, '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ffef}')
        // Thai, Lao, Burmese and Khmer.
        || matches!(character, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}')
}

/// Letters of scripts without spaces: Chinese and Japanese.
fn is_ideograph(character: char) -> bool {
    matches!(character, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}')
        || matches!(character, '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}
