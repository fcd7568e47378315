//! English numbers, British style: large before small, `and` before what is left below a hundred.
//!
//! They are read again, too, so that the right answer to what a person types is known.

const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] =
    ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

/// The words of all numbers as they begin a word, and those that stand behind a hyphen.
pub(super) fn words() -> (Vec<&'static str>, Vec<&'static str>) {
    let further = TENS[2..].iter().chain(&["hundred", "thousand", "and"]);
    (SMALL.iter().chain(further).copied().collect(), SMALL[1..10].to_vec())
}

/// A number below a million.
pub(super) fn write(number: u32) -> String {
    match (number / 1000, number % 1000) {
        (0, rest) => below_thousand(rest),
        (thousands, 0) => format!("{} thousand", below_thousand(thousands)),
        (thousands, rest @ 1..100) => {
            format!("{} thousand and {}", below_thousand(thousands), below_hundred(rest))
        }
        (thousands, rest) => format!("{} thousand {}", below_thousand(thousands), below_thousand(rest)),
    }
}

/// The number that some words say, or none where [`write`] writes no number so.
pub(super) fn read(text: &str) -> Option<u32> {
    let (mut thousands, mut number) = (0u32, 0u32);
    for word in text.split([' ', '-']) {
        let place = |words: &[&str]| words.iter().position(|known| *known == word).map(|at| at as u32);
        match word {
            "and" => {}
            // What is too large for the words is no number that `write` writes.
            "hundred" => number = number.checked_mul(100)?,
            "thousand" => (thousands, number) = (number.checked_mul(1000)?, 0),
            _ => number = number.checked_add(place(&SMALL).or_else(|| Some(10 * place(&TENS)?))?)?,
        }
    }
    let number = thousands.checked_add(number)?;
    (number < super::LIMIT && write(number) == text).then_some(number)
}

fn below_thousand(number: u32) -> String {
    match (number / 100, number % 100) {
        (0, rest) => below_hundred(rest),
        (hundreds, 0) => format!("{} hundred", SMALL[hundreds as usize]),
        (hundreds, rest) => format!("{} hundred and {}", SMALL[hundreds as usize], below_hundred(rest)),
    }
}

fn below_hundred(number: u32) -> String {
    match (number / 10, number % 10) {
        (0 | 1, _) => SMALL[number as usize].to_owned(),
        (tens, 0) => TENS[tens as usize].to_owned(),
        (tens, units) => format!("{}-{}", TENS[tens as usize], SMALL[units as usize]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_in_britain() {
        let known = [
            (0, "zero"),
            (1, "one"),
            (10, "ten"),
            (11, "eleven"),
            (12, "twelve"),
            (13, "thirteen"),
            (14, "fourteen"),
            (15, "fifteen"),
            (18, "eighteen"),
            (20, "twenty"),
            (21, "twenty-one"),
            (30, "thirty"),
            (40, "forty"),
            (44, "forty-four"),
            (50, "fifty"),
            (80, "eighty"),
            (97, "ninety-seven"),
            (100, "one hundred"),
            (101, "one hundred and one"),
            (110, "one hundred and ten"),
            (121, "one hundred and twenty-one"),
            (200, "two hundred"),
            (999, "nine hundred and ninety-nine"),
            (1000, "one thousand"),
            (1001, "one thousand and one"),
            (1013, "one thousand and thirteen"),
            (1100, "one thousand one hundred"),
            (1101, "one thousand one hundred and one"),
            (2345, "two thousand three hundred and forty-five"),
            (10_000, "ten thousand"),
            (12_080, "twelve thousand and eighty"),
            (21_000, "twenty-one thousand"),
            (100_000, "one hundred thousand"),
            (100_001, "one hundred thousand and one"),
            (101_101, "one hundred and one thousand one hundred and one"),
            (320_500, "three hundred and twenty thousand five hundred"),
            (999_999, "nine hundred and ninety-nine thousand nine hundred and ninety-nine"),
        ];
        for (number, words) in known {
            assert_eq!(write(number), words);
        }
    }
    #[test]
    fn every_number_is_read_as_it_is_written() {
        for number in (0..2000).chain((2000..super::super::LIMIT).step_by(61)) {
            assert_eq!(read(&write(number)), Some(number));
        }
    }

    #[test]
    fn what_is_not_written_so_is_not_read() {
        let wrong = [
            "",
            "twenty one",
            "one hundred twenty-one",
            "twenty-",
            "one-twenty",
            "and",
            "hundred",
            "zwanzig",
            "one thousand thousand thousand thousand",
            "one million",
        ];
        for text in wrong {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
