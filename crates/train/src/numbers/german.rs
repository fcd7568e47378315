//! German numbers: below a million one word, units before tens.
//!
//! `eins` ends a number; where anything follows it is `ein`. `ein` before `hundert` and `tausend` may be left out in German;
//! here it is always written.

const SMALL: [&str; 20] = [
    "",
    "ein",
    "zwei",
    "drei",
    "vier",
    "fünf",
    "sechs",
    "sieben",
    "acht",
    "neun",
    "zehn",
    "elf",
    "zwölf",
    "dreizehn",
    "vierzehn",
    "fünfzehn",
    "sechzehn",
    "siebzehn",
    "achtzehn",
    "neunzehn",
];
const TENS: [&str; 10] =
    ["", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"];

/// The parts of all numbers as they begin a word, and as they continue one.
pub(super) fn words() -> (Vec<&'static str>, Vec<&'static str>) {
    let counted = || SMALL[1..].iter().chain(&TENS[2..]).copied();
    (counted().chain(["null"]).collect(), counted().chain(["hundert", "tausend", "und", "s"]).collect())
}

/// A number below a million.
pub(super) fn write(number: u32) -> String {
    if number == 0 {
        return "null".to_owned();
    }
    let thousands = match number / 1000 {
        0 => String::new(),
        thousands => format!("{}tausend", below_thousand(thousands)),
    };
    let ending = if number % 100 == 1 { "s" } else { "" };
    format!("{thousands}{}{ending}", below_thousand(number % 1000))
}

/// With `ein` for a one at the end, and nothing for zero.
fn below_thousand(number: u32) -> String {
    let hundreds = match number / 100 {
        0 => String::new(),
        hundreds => format!("{}hundert", SMALL[hundreds as usize]),
    };
    format!("{hundreds}{}", below_hundred(number % 100))
}

fn below_hundred(number: u32) -> String {
    match (number / 10, number % 10) {
        (0 | 1, _) => SMALL[number as usize].to_owned(),
        (tens, 0) => TENS[tens as usize].to_owned(),
        (tens, units) => format!("{}und{}", SMALL[units as usize], TENS[tens as usize]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_duden_has_them() {
        let known = [
            (0, "null"),
            (1, "eins"),
            (2, "zwei"),
            (6, "sechs"),
            (7, "sieben"),
            (10, "zehn"),
            (11, "elf"),
            (12, "zwölf"),
            (16, "sechzehn"),
            (17, "siebzehn"),
            (20, "zwanzig"),
            (21, "einundzwanzig"),
            (26, "sechsundzwanzig"),
            (30, "dreißig"),
            (36, "sechsunddreißig"),
            (60, "sechzig"),
            (67, "siebenundsechzig"),
            (70, "siebzig"),
            (77, "siebenundsiebzig"),
            (97, "siebenundneunzig"),
            (100, "einhundert"),
            (101, "einhunderteins"),
            (111, "einhundertelf"),
            (121, "einhunderteinundzwanzig"),
            (200, "zweihundert"),
            (201, "zweihunderteins"),
            (716, "siebenhundertsechzehn"),
            (999, "neunhundertneunundneunzig"),
            (1000, "eintausend"),
            (1001, "eintausendeins"),
            (1100, "eintausendeinhundert"),
            (1112, "eintausendeinhundertzwölf"),
            (2017, "zweitausendsiebzehn"),
            (2345, "zweitausenddreihundertfünfundvierzig"),
            (10_000, "zehntausend"),
            (21_000, "einundzwanzigtausend"),
            (21_001, "einundzwanzigtausendeins"),
            (100_000, "einhunderttausend"),
            (101_000, "einhunderteintausend"),
            (101_101, "einhunderteintausendeinhunderteins"),
            (301_011, "dreihunderteintausendelf"),
            (777_777, "siebenhundertsiebenundsiebzigtausendsiebenhundertsiebenundsiebzig"),
        ];
        for (number, words) in known {
            assert_eq!(write(number), words);
        }
    }
}
