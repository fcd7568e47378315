//! French numbers as France counts: `soixante-dix` for seventy, `quatre-vingts` for eighty, `quatre-vingt-dix` for ninety.
//!
//! Below a hundred words are joined by hyphens, or by `et` before `un` and `onze`, but not after `quatre-vingt`. `vingt` and
//! `cent` take an `s` where they are multiplied and end the number; `mille` never does. `un` stands before neither `cent` nor
//! `mille`.

const SMALL: [&str; 17] = [
    "zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze", "douze",
    "treize", "quatorze", "quinze", "seize",
];
/// The word that the tens begin with; what is left of seventy and ninety is ten to nineteen.
const TENS: [&str; 10] = [
    "",
    "dix",
    "vingt",
    "trente",
    "quarante",
    "cinquante",
    "soixante",
    "soixante",
    "quatre-vingt",
    "quatre-vingt",
];

/// The words of all numbers as they begin a word, and what stands behind a hyphen or ends a word.
pub(super) fn words() -> (Vec<&'static str>, Vec<&'static str>) {
    let further = TENS[2..7].iter().chain(&["cent", "mille", "et"]);
    (
        SMALL.iter().chain(further).copied().collect(),
        SMALL[1..].iter().chain(&["vingt", "s"]).copied().collect(),
    )
}

/// A number below a million.
pub(super) fn write(number: u32) -> String {
    match (number / 1000, number % 1000) {
        (0, rest) => last(rest),
        (1, 0) => "mille".to_owned(),
        (1, rest) => format!("mille {}", last(rest)),
        (thousands, 0) => format!("{} mille", below_thousand(thousands)),
        (thousands, rest) => format!("{} mille {}", below_thousand(thousands), last(rest)),
    }
}

/// A number below a thousand that ends the number, where `cent` and `quatre-vingt` may have an `s`.
fn last(number: u32) -> String {
    let words = below_thousand(number);
    let multiplied = number % 100 == 80 || (number >= 200 && number.is_multiple_of(100));
    if multiplied { words + "s" } else { words }
}

fn below_thousand(number: u32) -> String {
    let hundreds = match number / 100 {
        0 => return below_hundred(number),
        1 => "cent".to_owned(),
        hundreds => format!("{} cent", SMALL[hundreds as usize]),
    };
    match number % 100 {
        0 => hundreds,
        rest => format!("{hundreds} {}", below_hundred(rest)),
    }
}

fn below_hundred(number: u32) -> String {
    if let Some(word) = SMALL.get(number as usize) {
        return (*word).to_owned();
    }
    let (tens, rest) = match (number / 10, number % 10) {
        (tens @ (7 | 9), units) => (TENS[tens as usize], 10 + units),
        (tens, units) => (TENS[tens as usize], units),
    };
    match rest {
        0 => tens.to_owned(),
        1 | 11 if number < 80 => format!("{tens} et {}", below_hundred(rest)),
        _ => format!("{tens}-{}", below_hundred(rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_in_france() {
        let known = [
            (0, "zéro"),
            (1, "un"),
            (10, "dix"),
            (16, "seize"),
            (17, "dix-sept"),
            (19, "dix-neuf"),
            (20, "vingt"),
            (21, "vingt et un"),
            (22, "vingt-deux"),
            (31, "trente et un"),
            (60, "soixante"),
            (61, "soixante et un"),
            (69, "soixante-neuf"),
            (70, "soixante-dix"),
            (71, "soixante et onze"),
            (72, "soixante-douze"),
            (77, "soixante-dix-sept"),
            (79, "soixante-dix-neuf"),
            (80, "quatre-vingts"),
            (81, "quatre-vingt-un"),
            (82, "quatre-vingt-deux"),
            (90, "quatre-vingt-dix"),
            (91, "quatre-vingt-onze"),
            (96, "quatre-vingt-seize"),
            (97, "quatre-vingt-dix-sept"),
            (99, "quatre-vingt-dix-neuf"),
            (100, "cent"),
            (101, "cent un"),
            (111, "cent onze"),
            (121, "cent vingt et un"),
            (180, "cent quatre-vingts"),
            (200, "deux cents"),
            (201, "deux cent un"),
            (280, "deux cent quatre-vingts"),
            (991, "neuf cent quatre-vingt-onze"),
            (1000, "mille"),
            (1001, "mille un"),
            (1100, "mille cent"),
            (1200, "mille deux cents"),
            (2000, "deux mille"),
            (2345, "deux mille trois cent quarante-cinq"),
            (21_000, "vingt et un mille"),
            (71_071, "soixante et onze mille soixante et onze"),
            (80_000, "quatre-vingt mille"),
            (80_080, "quatre-vingt mille quatre-vingts"),
            (100_000, "cent mille"),
            (101_000, "cent un mille"),
            (200_000, "deux cent mille"),
            (200_200, "deux cent mille deux cents"),
            (280_001, "deux cent quatre-vingt mille un"),
            (999_999, "neuf cent quatre-vingt-dix-neuf mille neuf cent quatre-vingt-dix-neuf"),
        ];
        for (number, words) in known {
            assert_eq!(write(number), words);
        }
    }
}
