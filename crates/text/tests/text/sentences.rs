//! The sentences of texts whose boundaries are known, and what holds for every text.

use attentive_text::sentences::{split, split_at_stops};
use std::time::{Duration, Instant};

/// Checks the texts of a language. Each is written with `|` where a sentence ends.
#[track_caller]
fn check(code: &str) {
    let mut texts = TEXTS.iter().filter(|(language, _)| *language == code).peekable();
    assert!(texts.peek().is_some());
    for (_, marked) in texts {
        let expected: Vec<&str> = marked.split('|').map(str::trim).collect();
        assert_eq!(sentences(&marked.replace('|', ""), known(code)), expected);
    }
}

fn known(code: &str) -> Option<&str> {
    Some(code).filter(|code| !code.is_empty())
}

fn sentences<'a>(text: &'a str, language: Option<&str>) -> Vec<&'a str> {
    let ranges = split(text, language);
    ranges.into_iter().map(|range| &text[range]).collect()
}

/// Texts with their language, if it is known.
const TEXTS: &[(&str, &str)] = &[
    (
        "en",
        "Mr. Smith met Dr. Jones at 5 p.m. on Friday.| They spoke of J. R. R. Tolkien.| Was it fun?| Yes!",
    ),
    ("en", "The U.S. Army left.| He lives in the U.S.| He likes it there.| So do I.| John does not."),
    (
        "en",
        "It costs 3.14 dollars, e.g. in Rome, i.e. 1,000.50 lire.| See No. 5 and Fig. 3.| No.| I will not.",
    ),
    (
        "en",
        "He said \"Go!\"| Then he left.| \"Really?\" she asked.| 'Yes.'| (See above.)| [Or below.]| Fine.",
    ),
    (
        "en",
        "Wait... what?| Well…| Nobody knows?!| What!!!| Go to example.com or www.example.org/a?b=c.d today.| Ok.",
    ),
    ("en", "Install v1.2.3.| Then open main.rs.| Mail a.b@example.com.| Done."),
    (
        "en",
        "1. First we eat.| 2. Then we sleep.| 2.1. Deep sleep is best.| A. The bed is warm.| II. Dreams follow.",
    ),
    ("en", "He works for Apple Inc. in Paris.| He worked for Apple Inc.| The firm is big.| By I. M. Pei."),
    (
        "en",
        "Apples, pears, etc. are fruit.| He has apples etc.| John has pears.| In 2020.| 15 people came.| It ended in 1999.| That was it.",
    ),
    (
        "en",
        "He moved to St. Louis.| She lives on Main St.| The shop is near.| Yahoo! is old.| It was 3 p.m.| We left.",
    ),
    ("de", "Am 3. Mai kam Dr. Müller.| Er ist 30.| Die Frau ist 25.| Im 19. Jahrhundert war das anders."),
    (
        "de",
        "Tiere, z. B. Hunde, d. h. auch Dackel usw. schlafen.| Er mag z.B. Katzen bzw. Kater u. a. Tiere.| Ja.",
    ),
    (
        "de",
        "„Ja.“| »Nein!«| Sie sagte: „Komm!“| Dann ging sie.| Es kostet 1.000,5 Euro bzw. ca. 5 Mio. Dollar.| Nr. 7 lebt.",
    ),
    (
        "de",
        "Der 1. Preis ging an Ludwig II.| Er war froh.| Siehe Abs. 3 und S. 12.| Im Jahr 2020.| Es regnet.| Am 3. 5. 2020 auch.",
    ),
    (
        "fr",
        "M. Dupont et Mme. Durand arrivent.| «Oui.»| « Non. »| Il part, p. ex. demain.| Pourquoi ?| C'est fini !| Bien.",
    ),
    (
        "fr",
        "Des fruits, c.-à-d. des pommes, etc. sont là.| Le prix est de 3,50 euros.| Voir p. 5.| « Viens ! » dit-il.| Puis il rit.",
    ),
    (
        "es",
        "El Sr. García vive en EE. UU. desde 1990.| ¿Por qué?| ¡No lo sé!| Compra frutas, p. ej. Manzanas.| Adiós.",
    ),
    ("it", "Il sig. Rossi e la dott.ssa Bianchi arrivano.| Mangia, p. es. Mele.| Perché?| Non so."),
    ("nl", "Dhr. Jansen eet bijv. Appels.| Waarom?| Hij heeft honger."),
    ("pt", "O Sr. Silva e a Sra. Costa chegaram.| Come frutas, p. ex. Maçãs.| Por quê?| Não sei."),
    (
        "ru",
        "А. С. Пушкин родился в 1799 г. в Москве.| Он писал стихи, т. е. Поэмы.| Почему?| Никто не знает.",
    ),
    ("zh", "你好。|我叫小明！|你是谁？|他说：“我走了。”|然后他走了。|价格是3.14元。|真的吗?!|是的!|好"),
    ("zh", "（见上文。）|“你来吗？”，他问。|好……吧。| 再见。"),
    ("ja", "「はい。」と彼は言った。|「いいえ！」|雨です。|『本当？』って聞いた。|３．１４です｡|終わり"),
    ("hi", "यह एक घर है।| वह कौन है?| मैं जाता हूँ॥| अच्छा।"),
    ("ar", "هل أنت هنا؟| نعم.| أنا هنا.| شكرا!"),
    ("", "Mr. Smith aß z. B. Äpfel.| M. Dupont est là.| Am 3. Mai war es so.| It is me.| John is here."),
    ("", "Ursula K. Le Guin wrote it.| Vitamin C.| It helps.| ¿Sí?| ¡No!"),
    ("", "One line\nthat goes on. | Another one.\n\n|And a paragraph without a stop\n \n|Next"),
    ("", "  Leading space. |\tA tab.\u{a0}|A no-break space.\u{3000}|End. 😀"),
    ("", "... and so on.| ?! Well.| . . . Dots.| \"Quoted.\""),
];

#[test]
fn english_sentences_end_where_a_reader_ends_them() {
    check("en");
}

#[test]
fn german_ordinals_abbreviations_and_quotes_end_no_sentence() {
    check("de");
}

#[test]
fn french_sentences_keep_titles_and_spaced_guillemets() {
    check("fr");
}

#[test]
fn chinese_sentences_need_no_space_between_them() {
    check("zh");
}

#[test]
fn a_japanese_quotation_stays_with_the_verb_that_says_it() {
    check("ja");
}

#[test]
fn spanish_italian_dutch_portuguese_and_russian_abbreviations_end_no_sentence() {
    ["es", "it", "nl", "pt", "ru"].into_iter().for_each(check);
}

#[test]
fn hindi_and_arabic_have_stops_of_their_own() {
    ["hi", "ar"].into_iter().for_each(check);
}

#[test]
fn a_text_of_unknown_language_has_the_abbreviations_of_all() {
    check("");
}

#[test]
fn a_text_of_white_space_has_no_sentences() {
    for text in ["", " ", "\n\n", "\u{a0}\t\u{3000}\r\n"] {
        assert!(split(text, None).is_empty(), "{text:?}");
    }
}

#[test]
fn a_sentence_that_is_too_long_can_be_cut_behind_every_stop() {
    let text = "a dog runs. the old dog sleeps...  cats (or 2.5 of them) hide!";
    let pieces: Vec<&str> = split_at_stops(text).into_iter().map(|range| &text[range]).collect();
    assert_eq!(pieces, ["a dog runs.", "the old dog sleeps...", "cats (or 2.5 of them) hide!"]);
    assert_eq!(sentences(text, Some("en")), [text]);
}

/// What holds for the sentences of every text.
#[track_caller]
fn check_properties(text: &str, language: Option<&str>) {
    let ranges = split(text, language);
    let mut end = 0;
    for range in &ranges {
        assert!(range.start < range.end && end <= range.start, "{text:?}: {ranges:?}");
        assert!(text[end..range.start].trim().is_empty(), "{text:?}: {ranges:?}");
        let sentence = &text[range.clone()];
        assert_eq!(sentence.trim(), sentence);
        assert_eq!(sentences(sentence, language), [sentence], "of {text:?}");
        end = range.end;
    }
    assert!(text[end..].trim().is_empty(), "{text:?}: {ranges:?}");
}

#[test]
fn only_white_space_lies_between_sentences_and_a_sentence_is_its_own_only_sentence() {
    for (code, marked) in TEXTS {
        for language in [None, known(code), Some("de"), Some("en")] {
            check_properties(&marked.replace('|', ""), language);
        }
    }
}

/// Texts of random pieces, so that stops, spaces, quotes and marks meet in every order.
#[test]
fn the_same_holds_for_texts_of_random_pieces() {
    const PIECES: &[&str] = &[
        ".", ".", "!", "?", "…", "。", "！", "．", "।", "؟", " ", " ", " ", "\n", "\n\n", "\u{a0}",
        "\u{3000}", "\"", "«", "»", "“", "”", "」", "(", ")", ",", ":", "-", "—", "a", "B", "The", "word",
        "Mr", "z", "B", "e.g", "I", "II", "1", "42", "2020", "と", "好", "\u{301}", "\u{fe00}", "\u{200d}",
        "😀", "é", "ß", "п", "Д", "हि",
    ];
    let mut state = 1u64;
    let mut random = |most: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % most
    };
    for _ in 0..20_000 {
        let text: String = (0..random(24)).map(|_| PIECES[random(PIECES.len())]).collect();
        for language in [None, Some("en"), Some("de")] {
            check_properties(&text, language);
        }
    }
}

#[test]
fn an_accent_stays_with_its_character() {
    assert_eq!(sentences("好。\u{fe00}好。", None), ["好。\u{fe00}", "好。"]);
    assert_eq!(sentences("One. \u{301}Two.", None), ["One. \u{301}Two."]);
}

/// A quadratic splitter would take hours for these.
#[test]
fn a_megabyte_takes_no_more_than_a_moment() {
    const SIZE: usize = 1 << 20;
    let pieces = [
        ".",
        ". ",
        "。",
        "a. ",
        "A. ",
        "z. B. ",
        "One. ",
        " ",
        "\n",
        "\"",
        ".\"",
        ". »",
        "« a. » ",
        "1. ",
        "?! ",
        "— . ",
        "a",
        "a.",
        "\u{301}",
        ".\u{301}",
        ". \u{301}",
        "Mr. A ",
        "好。",
        "…",
    ];
    for piece in pieces {
        let begin = Instant::now();
        split(&piece.repeat(SIZE / piece.len()), None);
        assert!(begin.elapsed() < Duration::from_secs(20), "{piece:?} took {:?}", begin.elapsed());
    }
}
