//! Which language a text is in, by its script, its letters and its triples of letters.
//!
//! Short texts tell little: of a few words, the language is often one of the neighbours of the true one. So whoever can read a few
//! languages only asks for the best among these.

use super::codes::{means, short};
use whatlang::{Detector, Info, Lang};

/// Languages that are rarely written, and near to others that are written much: short texts in these are often taken for them.
const RARE: [Lang; 9] =
    [Lang::Aka, Lang::Cym, Lang::Epo, Lang::Jav, Lang::Lat, Lang::Sna, Lang::Tgl, Lang::Tuk, Lang::Zul];

/// A language that was detected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Detected {
    /// Its code, the shortest that there is.
    pub code: &'static str,
    /// How far it is ahead of the next one, from 0 to 1. It is no probability.
    pub confidence: f32,
}

/// The language of a text; none if it has no letters.
pub fn detect(text: &str) -> Option<Detected> {
    likeliest(text).map(|found| detected(found.lang(), found.confidence()))
}

/// The language of a text; a rare one only if it is certain.
fn likeliest(text: &str) -> Option<Info> {
    let found = Detector::new().detect(text)?;
    if !RARE.contains(&found.lang()) || found.is_reliable() {
        return Some(found);
    }
    Detector::with_denylist(RARE.to_vec()).detect(text)
}

/// The language of a text among some, given by any of their codes; none if it has no letters, or if none of them is written in its
/// script. Where the text looks more like a language that is not among them, nothing speaks for the best of these: its confidence is 0.
pub fn detect_among(text: &str, codes: &[&str]) -> Option<Detected> {
    let is_meant = |lang: &&Lang| codes.iter().any(|code| means(code, lang.code()));
    let known = |found: &Info| is_meant(&&found.lang());
    if let Some(found) = likeliest(text).filter(known) {
        return Some(detected(found.lang(), found.confidence()));
    }
    let among: Vec<Lang> = Lang::all().iter().filter(is_meant).copied().collect();
    let found = Detector::with_allowlist(among).detect(text).filter(known)?;
    Some(detected(found.lang(), 0.0))
}

fn detected(lang: Lang, confidence: f64) -> Detected {
    Detected { code: short(lang.code()), confidence: confidence as f32 }
}

#[cfg(test)]
mod tests {
    use super::super::codes::name;
    use super::*;

    /// An everyday sentence in each of the languages with the most speakers, and some more.
    const SENTENCES: [(&str, &str); 24] = [
        ("en", "The train was late again this morning, so we walked to the office through the park."),
        ("zh", "今天早上火车又晚点了，所以我们穿过公园走到办公室。"),
        ("hi", "आज सुबह ट्रेन फिर देर से आई, इसलिए हम पार्क से होकर दफ़्तर तक पैदल गए।"),
        (
            "es",
            "El tren llegó tarde otra vez esta mañana, así que fuimos andando a la oficina por el parque.",
        ),
        (
            "fr",
            "Le train était encore en retard ce matin, alors nous sommes allés au bureau à pied par le parc.",
        ),
        ("ar", "تأخر القطار مرة أخرى هذا الصباح، لذلك مشينا إلى المكتب عبر الحديقة."),
        ("bn", "আজ সকালে ট্রেন আবার দেরি করেছে, তাই আমরা পার্কের মধ্য দিয়ে হেঁটে অফিসে গেলাম।"),
        ("pt", "O trem atrasou de novo esta manhã, então fomos a pé até o escritório pelo parque."),
        ("ru", "Сегодня утром поезд снова опоздал, поэтому мы пошли на работу пешком через парк."),
        ("ur", "آج صبح ٹرین پھر دیر سے آئی، اس لیے ہم پارک سے ہوتے ہوئے پیدل دفتر گئے۔"),
        ("id", "Kereta api terlambat lagi pagi ini, jadi kami berjalan kaki ke kantor melalui taman."),
        (
            "de",
            "Der Zug hatte heute Morgen wieder Verspätung, also gingen wir zu Fuß durch den Park ins Büro.",
        ),
        ("ja", "今朝も電車が遅れたので、私たちは公園を通って会社まで歩きました。"),
        ("mr", "आज सकाळी ट्रेन पुन्हा उशिरा आली, म्हणून आम्ही बागेतून चालत कार्यालयात गेलो."),
        ("te", "ఈ రోజు ఉదయం రైలు మళ్ళీ ఆలస్యమైంది, కాబట్టి మేము పార్కు గుండా నడిచి కార్యాలయానికి వెళ్ళాము."),
        ("tr", "Bu sabah tren yine geç kaldı, bu yüzden parkın içinden ofise yürüdük."),
        ("ta", "இன்று காலை ரயில் மீண்டும் தாமதமாக வந்தது, எனவே நாங்கள் பூங்கா வழியாக அலுவலகத்திற்கு நடந்தோம்."),
        ("vi", "Sáng nay tàu lại đến muộn, nên chúng tôi đi bộ qua công viên đến văn phòng."),
        ("ko", "오늘 아침에도 기차가 늦어서 우리는 공원을 지나 사무실까지 걸어갔습니다."),
        (
            "it",
            "Il treno era di nuovo in ritardo stamattina, quindi siamo andati in ufficio a piedi attraverso il parco.",
        ),
        ("pl", "Pociąg znowu spóźnił się dziś rano, więc poszliśmy do biura pieszo przez park."),
        ("uk", "Сьогодні вранці потяг знову запізнився, тому ми пішли на роботу пішки через парк."),
        ("nl", "De trein had vanochtend weer vertraging, dus liepen we door het park naar kantoor."),
        ("fa", "امروز صبح قطار دوباره دیر رسید، بنابراین از میان پارک پیاده به دفتر رفتیم."),
    ];

    #[test]
    fn the_languages_of_most_people_are_detected() {
        let wrong = |(code, text): &&(&str, &str)| detect(text).map(|found| found.code) != Some(code);
        let wrong: Vec<_> = SENTENCES.iter().filter(wrong).map(|(code, text)| (code, detect(text))).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn a_language_that_is_rarely_written_must_be_certain() {
        let javanese =
            "Aku arep lunga menyang pasar tuku sayuran karo iwak kanggo mangan bengi iki bareng kulawarga.";
        assert_eq!(detect(javanese).map(|found| found.code), Some("jv"));
        // A short text in Indonesian, which has much in common with it.
        assert_eq!(detect("Kereta api terlambat lagi pagi ini").map(|found| found.code), Some("id"));
    }

    #[test]
    fn a_few_words_are_enough_among_a_few_languages() {
        let among = ["eng_Latn", "de_DE", "__fr__", "zho_Hans"];
        for (code, text) in [
            ("en", "How are you?"),
            ("de", "Wie geht es dir?"),
            ("fr", "Comment allez-vous ?"),
            ("zh", "你好吗？"),
        ] {
            assert_eq!(detect_among(text, &among).map(|found| found.code), Some(code), "{text}");
        }
    }

    #[test]
    fn what_is_not_among_the_languages_is_told_without_confidence() {
        let (_, russian) = SENTENCES[8];
        assert_eq!(detect_among(russian, &["en", "de"]), None);
        let (_, polish) = SENTENCES[20];
        assert_eq!(detect_among(polish, &["en"]), Some(Detected { code: "en", confidence: 0.0 }));
        for text in ["", " \n", "12 + 3 = 15", "…"] {
            assert_eq!((detect(text), detect_among(text, &["en"])), (None, None), "{text:?}");
        }
    }

    #[test]
    fn every_language_that_is_detected_has_a_name() {
        for lang in Lang::all() {
            assert!(name(lang.code()).is_some(), "{lang:?}");
        }
    }
}
