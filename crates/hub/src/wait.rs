//! `Retry-After`: how long a server asks to wait, as a number of seconds or as the date when it takes requests again.

use std::time::Duration;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// How long `retry_after` asks to wait. `date` is the header `Date` of the same answer, by which a date is understood even if the clocks
/// of both machines differ; without it, `now` counts, in seconds since 1970. A date that has passed asks for no wait.
pub(crate) fn wait(retry_after: &str, date: Option<&str>, now: u64) -> Option<Duration> {
    let seconds = match retry_after.trim().parse() {
        Ok(seconds) => seconds,
        Err(_) => {
            seconds_since_1970(retry_after)?.saturating_sub(date.and_then(seconds_since_1970).unwrap_or(now))
        }
    };
    Some(Duration::from_secs(seconds))
}

/// A date of HTTP in one of its three forms: `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` or
/// `Sun Nov  6 08:49:37 1994`.
fn seconds_since_1970(date: &str) -> Option<u64> {
    let words: Vec<&str> =
        date.split([' ', ',', '-']).filter(|word| !word.is_empty() && *word != "GMT").collect();
    let [_weekday, a, b, c, d] = words[..] else { return None };
    let (day, month, year, time) =
        if a.starts_with(|letter: char| letter.is_ascii_digit()) { (a, b, c, d) } else { (b, a, d, c) };
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let day: u64 = number(day, 31)?;
    let year = match (year.len(), number(year, 9999)?) {
        // What was written with two digits was written in the years around 2000.
        (2, year) if year >= 70 => 1900 + year,
        (2, year) => 2000 + year,
        (_, year) => year,
    };
    let mut time = time.split(':');
    let (hours, minutes, seconds) = (time.next()?, time.next()?, time.next()?);
    // There are leap seconds.
    let (hours, minutes, seconds) = (number(hours, 23)?, number(minutes, 59)?, number(seconds, 60)?);
    if day == 0 || year < 1970 || time.next().is_some() {
        return None;
    }
    Some(((days_since_1970(year, month, day) * 24 + hours) * 60 + minutes) * 60 + seconds)
}

fn number(digits: &str, most: u64) -> Option<u64> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|number| is_plain && *number <= most)
}

/// The days from the first of January 1970. Years begin in March here, so that the day of a leap year is the last one.
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    const DAYS_TO_1970: u64 = 719_468;
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let leap_days = year / 4 - year / 100 + year / 400;
    let days_of_months = (153 * month + 2) / 5;
    year * 365 + leap_days + days_of_months + day - 1 - DAYS_TO_1970
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_has_three_forms() {
        for date in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(seconds_since_1970(date), Some(784_111_777), "{date}");
        }
        assert_eq!(seconds_since_1970("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(seconds_since_1970("Thu, 29 Feb 2024 12:00:00 GMT"), Some(1_709_208_000));
        assert_eq!(seconds_since_1970("Fri, 01 Mar 2024 12:00:00 GMT"), Some(1_709_294_400));
        assert_eq!(seconds_since_1970("Tuesday, 31-Dec-30 23:59:60 GMT"), Some(1_924_992_000));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "soon",
            "-1",
            "Sun, 06 Nov 1994",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nun 1994 08:49:37 GMT",
            "Sun, 06 Nov 1969 08:49:37 GMT",
            "Sun, 06 Nov 99999999999999999999 08:49:37 GMT",
            "Sun, 06 Nov 1994 25:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37:00 GMT",
        ] {
            assert_eq!(wait(text, None, 0), None, "{text}");
        }
    }

    #[test]
    fn a_wait_is_told_in_seconds_or_by_the_clock_of_the_server() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(wait(" 120 ", None, 0), Some(Duration::from_secs(120)));
        assert_eq!(wait(date, None, 784_111_770), Some(Duration::from_secs(7)));
        assert_eq!(wait(date, Some("Sun, 06 Nov 1994 08:49:30 GMT"), 9), Some(Duration::from_secs(7)));
        assert_eq!(wait(date, Some("no date"), 784_111_770), Some(Duration::from_secs(7)));
        assert_eq!(wait(date, None, 784_111_800), Some(Duration::ZERO));
    }
}
