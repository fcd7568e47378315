//! What languages are called.
//!
//! Codes are those of ISO 639. People write the one of two letters where there is one; models write that, or one of three letters,
//! mostly with a script or a region: `de_DE` (mBART), `__de__` (M2M-100), `deu_Latn` (NLLB).

/// A language: its code of two letters or else of three, its other codes, and its name in English. The languages are those of the
/// multilingual models that are read here, and those that are detected.
type Language = (&'static str, &'static [&'static str], &'static str);

const LANGUAGES: [Language; 200] = [
    ("af", &["afr"], "Afrikaans"),
    ("ace", &[], "Acehnese"),
    ("acm", &[], "Mesopotamian Arabic"),
    ("acq", &[], "Taizzi-Adeni Arabic"),
    ("aeb", &[], "Tunisian Arabic"),
    ("ajp", &[], "South Levantine Arabic"),
    ("ak", &["aka"], "Akan"),
    ("am", &["amh"], "Amharic"),
    ("apc", &[], "North Levantine Arabic"),
    ("ar", &["ara", "arb"], "Arabic"),
    ("ars", &[], "Najdi Arabic"),
    ("ary", &[], "Moroccan Arabic"),
    ("arz", &[], "Egyptian Arabic"),
    ("as", &["asm"], "Assamese"),
    ("ast", &[], "Asturian"),
    ("awa", &[], "Awadhi"),
    ("ay", &["aym", "ayr"], "Aymara"),
    ("az", &["aze", "azj"], "Azerbaijani"),
    ("azb", &[], "South Azerbaijani"),
    ("ba", &["bak"], "Bashkir"),
    ("ban", &[], "Balinese"),
    ("be", &["bel"], "Belarusian"),
    ("bem", &[], "Bemba"),
    ("bg", &["bul"], "Bulgarian"),
    ("bho", &[], "Bhojpuri"),
    ("bjn", &[], "Banjar"),
    ("bm", &["bam"], "Bambara"),
    ("bn", &["ben"], "Bengali"),
    ("bo", &["bod"], "Tibetan"),
    ("br", &["bre"], "Breton"),
    ("bs", &["bos"], "Bosnian"),
    ("bug", &[], "Buginese"),
    ("ca", &["cat"], "Catalan"),
    ("ceb", &[], "Cebuano"),
    ("cjk", &[], "Chokwe"),
    ("ckb", &[], "Central Kurdish"),
    ("crh", &[], "Crimean Tatar"),
    ("cs", &["ces"], "Czech"),
    ("cy", &["cym"], "Welsh"),
    ("da", &["dan"], "Danish"),
    ("de", &["deu"], "German"),
    ("dik", &[], "Dinka"),
    ("dyu", &[], "Dyula"),
    ("dz", &["dzo"], "Dzongkha"),
    ("ee", &["ewe"], "Ewe"),
    ("el", &["ell"], "Greek"),
    ("en", &["eng"], "English"),
    ("eo", &["epo"], "Esperanto"),
    ("es", &["spa"], "Spanish"),
    ("et", &["est", "ekk"], "Estonian"),
    ("eu", &["eus"], "Basque"),
    ("fa", &["fas", "pes"], "Persian"),
    ("ff", &["ful", "fuv"], "Fulah"),
    ("fi", &["fin"], "Finnish"),
    ("fj", &["fij"], "Fijian"),
    ("fo", &["fao"], "Faroese"),
    ("fon", &[], "Fon"),
    ("fr", &["fra"], "French"),
    ("fur", &[], "Friulian"),
    ("fy", &["fry"], "Western Frisian"),
    ("ga", &["gle"], "Irish"),
    ("gd", &["gla"], "Scottish Gaelic"),
    ("gl", &["glg"], "Galician"),
    ("gn", &["grn"], "Guarani"),
    ("gu", &["guj"], "Gujarati"),
    ("ha", &["hau"], "Hausa"),
    ("he", &["heb", "iw"], "Hebrew"),
    ("hi", &["hin"], "Hindi"),
    ("hne", &[], "Chhattisgarhi"),
    ("hr", &["hrv"], "Croatian"),
    ("ht", &["hat"], "Haitian Creole"),
    ("hu", &["hun"], "Hungarian"),
    ("hy", &["hye"], "Armenian"),
    ("id", &["ind"], "Indonesian"),
    ("ig", &["ibo"], "Igbo"),
    ("ilo", &[], "Iloko"),
    ("is", &["isl"], "Icelandic"),
    ("it", &["ita"], "Italian"),
    ("ja", &["jpn"], "Japanese"),
    ("jv", &["jav"], "Javanese"),
    ("ka", &["kat"], "Georgian"),
    ("kab", &[], "Kabyle"),
    ("kac", &[], "Kachin"),
    ("kam", &[], "Kamba"),
    ("kbp", &[], "Kabiye"),
    ("kea", &[], "Cape Verdean Creole"),
    ("kg", &["kon"], "Kongo"),
    ("ki", &["kik"], "Kikuyu"),
    ("kk", &["kaz"], "Kazakh"),
    ("km", &["khm"], "Khmer"),
    ("kmb", &[], "Kimbundu"),
    ("kn", &["kan"], "Kannada"),
    ("ko", &["kor"], "Korean"),
    ("kr", &["knc"], "Kanuri"),
    ("ks", &["kas"], "Kashmiri"),
    ("ku", &["kur", "kmr"], "Kurdish"),
    ("ky", &["kir"], "Kyrgyz"),
    ("la", &["lat"], "Latin"),
    ("lb", &["ltz"], "Luxembourgish"),
    ("lg", &["lug"], "Ganda"),
    ("li", &["lim"], "Limburgish"),
    ("lij", &[], "Ligurian"),
    ("lmo", &[], "Lombard"),
    ("ln", &["lin"], "Lingala"),
    ("lo", &["lao"], "Lao"),
    ("lt", &["lit"], "Lithuanian"),
    ("ltg", &[], "Latgalian"),
    ("lua", &[], "Luba-Lulua"),
    ("luo", &[], "Luo"),
    ("lus", &[], "Mizo"),
    ("lv", &["lav", "lvs"], "Latvian"),
    ("mag", &[], "Magahi"),
    ("mai", &[], "Maithili"),
    ("mg", &["mlg", "plt"], "Malagasy"),
    ("mi", &["mri"], "Maori"),
    ("min", &[], "Minangkabau"),
    ("mk", &["mkd"], "Macedonian"),
    ("ml", &["mal"], "Malayalam"),
    ("mn", &["mon", "khk"], "Mongolian"),
    ("mni", &[], "Manipuri"),
    ("mos", &[], "Mossi"),
    ("mr", &["mar"], "Marathi"),
    ("ms", &["msa", "zsm"], "Malay"),
    ("mt", &["mlt"], "Maltese"),
    ("my", &["mya"], "Burmese"),
    ("nb", &["nob"], "Norwegian Bokmål"),
    ("ne", &["nep", "npi"], "Nepali"),
    ("nl", &["nld"], "Dutch"),
    ("nn", &["nno"], "Norwegian Nynorsk"),
    ("no", &["nor"], "Norwegian"),
    ("nso", &["ns"], "Northern Sotho"),
    ("nus", &[], "Nuer"),
    ("ny", &["nya"], "Chichewa"),
    ("oc", &["oci"], "Occitan"),
    ("om", &["orm", "gaz"], "Oromo"),
    ("or", &["ori", "ory"], "Odia"),
    ("pa", &["pan"], "Punjabi"),
    ("pag", &[], "Pangasinan"),
    ("pap", &[], "Papiamento"),
    ("pl", &["pol"], "Polish"),
    ("prs", &[], "Dari"),
    ("ps", &["pus", "pbt"], "Pashto"),
    ("pt", &["por"], "Portuguese"),
    ("qu", &["que", "quy"], "Quechua"),
    ("rn", &["run"], "Rundi"),
    ("ro", &["ron"], "Romanian"),
    ("ru", &["rus"], "Russian"),
    ("rw", &["kin"], "Kinyarwanda"),
    ("sa", &["san"], "Sanskrit"),
    ("sat", &[], "Santali"),
    ("sc", &["srd"], "Sardinian"),
    ("scn", &[], "Sicilian"),
    ("sd", &["snd"], "Sindhi"),
    ("sg", &["sag"], "Sango"),
    ("shn", &[], "Shan"),
    ("si", &["sin"], "Sinhala"),
    ("sk", &["slk"], "Slovak"),
    ("sl", &["slv"], "Slovenian"),
    ("sm", &["smo"], "Samoan"),
    ("sn", &["sna"], "Shona"),
    ("so", &["som"], "Somali"),
    ("sq", &["sqi", "als"], "Albanian"),
    ("sr", &["srp"], "Serbian"),
    ("ss", &["ssw"], "Swati"),
    ("st", &["sot"], "Southern Sotho"),
    ("su", &["sun"], "Sundanese"),
    ("sv", &["swe"], "Swedish"),
    ("sw", &["swa", "swh"], "Swahili"),
    ("szl", &[], "Silesian"),
    ("ta", &["tam"], "Tamil"),
    ("taq", &[], "Tamasheq"),
    ("te", &["tel"], "Telugu"),
    ("tg", &["tgk"], "Tajik"),
    ("th", &["tha"], "Thai"),
    ("ti", &["tir"], "Tigrinya"),
    ("tk", &["tuk"], "Turkmen"),
    ("tl", &["tgl", "fil"], "Tagalog"),
    ("tn", &["tsn"], "Tswana"),
    ("tpi", &[], "Tok Pisin"),
    ("tr", &["tur"], "Turkish"),
    ("ts", &["tso"], "Tsonga"),
    ("tt", &["tat"], "Tatar"),
    ("tum", &[], "Tumbuka"),
    ("tw", &["twi"], "Twi"),
    ("tzm", &[], "Central Atlas Tamazight"),
    ("ug", &["uig"], "Uyghur"),
    ("uk", &["ukr"], "Ukrainian"),
    ("umb", &[], "Umbundu"),
    ("ur", &["urd"], "Urdu"),
    ("uz", &["uzb", "uzn"], "Uzbek"),
    ("vec", &[], "Venetian"),
    ("vi", &["vie"], "Vietnamese"),
    ("war", &[], "Waray"),
    ("wo", &["wol"], "Wolof"),
    ("xh", &["xho"], "Xhosa"),
    ("yi", &["yid", "ydd"], "Yiddish"),
    ("yo", &["yor"], "Yoruba"),
    ("yue", &[], "Cantonese"),
    ("zh", &["zho", "chi", "cmn"], "Chinese"),
    ("zu", &["zul"], "Zulu"),
];

/// Scripts that tell two forms of a language apart, and what people call them.
const SCRIPTS: [(&str, &str); 6] = [
    ("arab", "Arabic script"),
    ("deva", "Devanagari"),
    ("hans", "simplified"),
    ("hant", "traditional"),
    ("latn", "Latin script"),
    ("tfng", "Tifinagh"),
];

fn find(code: &str) -> Option<&'static Language> {
    LANGUAGES.iter().find(|(short, others, _)| *short == code || others.contains(&code))
}

/// The shortest code of the language that a code, in small letters, means; the code itself if the language is not known.
pub fn short(code: &str) -> &str {
    find(code).map_or(code, |(short, ..)| short)
}

/// The English name of the language that a code means, if the language is known.
pub fn name(code: &str) -> Option<&'static str> {
    find(code).map(|(.., name)| *name)
}

/// What people call a script that tells two forms of a language apart: `traditional` for `Hant`.
pub fn script_name(script: &str) -> Option<&'static str> {
    let script = script.to_lowercase();
    SCRIPTS.iter().find(|(code, _)| *code == script).map(|(_, name)| *name)
}

/// The short code of the language that somebody writes, and the script or the region, both in small letters: `("zh", "hant")` for
/// `zho_Hant`, `zh-Hant` and `__zh_Hant__`. The region is empty if there is none.
pub fn parts(written: &str) -> (String, String) {
    let written = written.trim_matches('_').to_lowercase();
    let (code, region) = written.split_once(['_', '-']).unwrap_or((&written, ""));
    (short(code).to_owned(), region.to_owned())
}

/// Whether a person who writes `asked` means the language that a model calls `own`. A script must be the same where both name one;
/// a region, of two letters, is no reason against it. Norwegian is mostly Bokmål.
pub fn means(asked: &str, own: &str) -> bool {
    let ((asked, asked_region), (own, own_region)) = (parts(asked), parts(own));
    let norwegian = |code: &str| ["nb", "no"].contains(&code);
    let is_same = asked == own || norwegian(&asked) && norwegian(&own);
    let is_script = |region: &str| region.len() == 4;
    is_same && (!is_script(&asked_region) || !is_script(&own_region) || asked_region == own_region)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_known_by_all_its_codes() {
        for code in ["de", "deu"] {
            assert_eq!((short(code), name(code)), ("de", Some("German")));
        }
        assert_eq!((short("cmn"), short("arb"), short("fuv"), short("xyz")), ("zh", "ar", "ff", "xyz"));
        assert_eq!(name("xyz"), None);
    }

    #[test]
    fn no_code_means_two_languages() {
        let codes = LANGUAGES.iter().flat_map(|(short, others, _)| others.iter().chain([short]));
        let mut seen = std::collections::HashSet::new();
        assert!(codes.into_iter().all(|code| seen.insert(*code)));
    }

    #[test]
    fn a_language_is_meant_in_every_spelling() {
        for own in ["de", "deu_Latn", "de_DE", "__de__", "deu"] {
            for asked in ["de", "DE", "deu", "de-DE", "de_AT", "deu_Latn", "__de__"] {
                assert!(means(asked, own), "{asked} {own}");
            }
            assert!(!means("da", own) && !means("", own), "{own}");
        }
        assert!(means("zh-Hant", "zho_Hant") && !means("zh-Hant", "zho_Hans") && means("zh", "zho_Hans"));
        assert!(means("zh-TW", "zh_CN") && means("no", "nob_Latn") && means("nb", "__no__"));
    }
}
