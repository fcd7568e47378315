use super::elements::is_void;
use super::random::Random;
use super::tokens::{Kind, tokens};
use super::{Document, Link};

/// Each block translated by itself.
fn identity(html: &str) -> String {
    let document = Document::parse(html);
    let translations: Vec<(String, Vec<Link>)> = document
        .blocks()
        .iter()
        .map(|block| {
            (block.line(), (0..block.text().split_whitespace().count()).map(|word| (word, word)).collect())
        })
        .collect();
    document.render(translations.iter().map(|(text, links)| (&text[..], &links[..])))
}

/// A document of one block, translated.
fn translated(html: &str, translation: &str, links: &[Link]) -> String {
    let document = Document::parse(html);
    assert_eq!(document.blocks().len(), 1, "{html}");
    document.render([(translation, links)])
}

fn lines(html: &str) -> Vec<String> {
    Document::parse(html).blocks().iter().map(|block| block.line()).collect()
}

#[test]
fn sentences_are_whole_between_block_tags() {
    assert_eq!(
        lines("<h1>One</h1><p>A <b>big <i>dog</i></b>\n  runs.<p>Two<ul><li>three<li>four</ul>"),
        ["One", "A big dog runs.", "Two", "three", "four"]
    );
    assert_eq!(lines("<title>a &amp; b</title> <!-- c --> <script>d</script>"), ["a & b"]);
    assert_eq!(lines("<td>&nbsp;</td><td> <img> </td>"), [""; 0]);
    assert_eq!(
        lines("<p translate=no>One<h2>Two</h2><p translate=no>Three<ul><li>Four</ul>"),
        ["Two", "Four"]
    );
}

#[test]
fn a_translator_does_not_see_what_stays_as_it_is() {
    assert_eq!(lines("Call <code>f</code> now."), ["Call now."]);
    assert_eq!(lines("Call <code>f</code>."), ["Call."]);
    assert_eq!(lines("<code>f</code> is (<code>g</code> or) so"), ["is (or) so"]);
    assert_eq!(lines("a<img> b <img>c"), ["a b c"]);
    assert_eq!(lines("a <img><img> b"), ["a b"]);
    // A line break parts words.
    assert_eq!(lines("a dog<br>in the <b>snow</b><b><br></b>of"), ["a dog in the snow of"]);
    assert_eq!(lines("a <b><code>x</code></b>, b"), ["a, b"]);
}

#[test]
fn marks_have_the_byte_that_they_stand_at() {
    let html = "Ä <b>dog <i>x</i></b> <img> y</u>";
    let document = Document::parse(html);
    let block = &document.blocks()[0];
    assert_eq!(block.text(), "Ä dog x y");
    assert_eq!(block.marks(), [(3, "<b>"), (7, "<i>"), (8, "</i>"), (8, "</b>"), (8, "<img>"), (10, "</u>")]);
}

#[test]
fn the_identity_gives_back_the_source() {
    for html in [
        "",
        "plain",
        "<p>A <b>dog</b> runs.",
        "<p> A <b> big <i>dog</i> </b>\n runs . </p>\n",
        "<!DOCTYPE html>\r\n<p class=\"a>b\" id=x>One\r\n two</p>\r\n",
        "a<b> </b>dog <i> </i> x",
        "<b>D</b>og, H<sub>2</sub>O and <b>Do</b><i>gs</i>; dog<sup>1</sup>.",
        "call <code>f</code>, or <code>g</code>(<code>h</code> x).",
        "<b> <img>dog</b> runs <img>",
        "a <img><img> b<wbr>c <!-- d --> e",
        "<b>A </b><img> dog <b>a </b> <img>.",
        "A<img> <b> dog</b> (<img> <b> dog</b>",
        "<a href=x><div>One <b>two</div> three</b></a>",
        "One <b>two<br>Three</b> four<br>five",
        "<b>x<i>y</b>z</i> w</u>",
        "</i>x</b>",
        "a &amp; b &lt;c&gt; d&nbsp;e &nbsp;",
        "你好<b>世界</b>，<i>再</i>见 <code>x</code> a<b>b</b>c",
        "<table><tr><td>a<td><b>b</table>",
        "<b><i>x</i></b><b></b><u><img></u>",
        "x <b",
        "</>x<?y?>",
        "<span/>x <b/>y",
        "a<br>b <br>c<br> d<i><br></i>e<b>f<br></b>g<br><img>h",
    ] {
        assert_eq!(identity(html), html);
    }
    assert_eq!(identity("AT&T &eacute;\u{a0}x"), "AT&amp;T é&nbsp;x");
}

#[test]
fn elements_follow_their_words() {
    let html = "A <b>black dog</b> and <i>a cat</i>.";
    let links = [(4, 0), (5, 1), (3, 2), (0, 3), (1, 4), (2, 5)];
    let expected = "<i>Eine Katze</i> und ein <b>schwarzer Hund</b>.";
    assert_eq!(translated(html, "Eine Katze und ein schwarzer Hund.", &links), expected);
    // A word that was aligned wrongly.
    let links = [(0, 0), (1, 1), (2, 2), (1, 5), (3, 3), (4, 4), (5, 5)];
    let expected = "Ein <b>schwarzer Hund</b> und <i>eine Katze</i>.";
    assert_eq!(translated(html, "Ein schwarzer Hund und eine Katze.", &links), expected);
    // A word between those of an element that comes from elsewhere.
    let html = "He <b>calls up</b> you";
    assert_eq!(
        translated(html, "Er ruft dich an", &[(0, 0), (1, 1), (3, 2), (2, 3)]),
        "Er <b>ruft dich an</b>"
    );
}

#[test]
fn nested_elements_stay_in_their_parents() {
    let html = "See <b>the <a href='x'>red</a> house</b> there";
    let links = [(4, 0), (0, 1), (1, 2), (3, 3), (2, 4)];
    let expected = "Dort siehe <b>das Haus <a href='x'>rote</a></b>";
    assert_eq!(translated(html, "Dort siehe das Haus rote", &links), expected);
    // The child's word is outside the parent's run: it stays inside, empty.
    let links = [(2, 0), (0, 1), (4, 2), (1, 3), (3, 4)];
    let expected = "Rot siehe dort <b>das<a href='x'></a> Haus</b>";
    assert_eq!(translated(html, "Rot siehe dort das Haus", &links), expected);
}

#[test]
fn an_element_whose_words_vanished_stays_beside_its_neighbour() {
    assert_eq!(
        translated("A <b>very</b> big dog", "Ein großer Hund", &[(0, 0), (2, 1), (3, 2)]),
        "Ein<b></b> großer Hund"
    );
    assert_eq!(translated("<b>A</b> dog", "", &[]), "<b></b>");
}

#[test]
fn an_element_around_everything_stays_around_everything() {
    assert_eq!(translated("<p><b>A dog</b></p>", "Ein Hund da", &[(0, 1)]), "<p><b>Ein Hund da</b></p>");
    assert_eq!(translated("<a><div>A dog</div></a>", "Ein Hund", &[(0, 1)]), "<a><div>Ein Hund</div></a>");
}

#[test]
fn punctuation_is_inside_if_it_was() {
    let links = [(0, 0), (1, 1)];
    assert_eq!(translated("A <b>dog</b>.", "Ein Hund.", &links), "Ein <b>Hund</b>.");
    assert_eq!(translated("A <b>dog.</b>", "Ein Hund!", &links), "Ein <b>Hund!</b>");
    assert_eq!(translated("A “<b>dog</b>”", "Ein „Hund“", &links), "Ein „<b>Hund</b>“");
    // Both words come from the dog; the number is the dog's only where it can be seen.
    assert_eq!(translated("A dog<sup>1</sup>.", "Ein Hund1.", &[(1, 0), (1, 1)]), "Ein Hund<sup>1</sup>.");
    // The full stop came to the dog only in the translation.
    assert_eq!(
        translated("The <b>dog</b> runs.", "Es läuft Hund.", &[(0, 0), (2, 1), (1, 2)]),
        "Es läuft <b>Hund</b>."
    );
}

#[test]
fn points_stand_beside_what_they_stood_beside() {
    let html = "Call <code>f()</code> now.";
    assert_eq!(
        translated(html, "Jetzt rufe auf.", &[(1, 0), (0, 1), (0, 2)]),
        "Jetzt rufe auf <code>f()</code>."
    );
    assert_eq!(
        translated("A dog<img> runs", "Rennt ein Hund", &[(2, 0), (0, 1), (1, 2)]),
        "Rennt ein Hund<img>"
    );
    assert_eq!(
        translated("A <img>dog runs", "Ein Hund rennt", &[(0, 0), (1, 1), (2, 2)]),
        "Ein <img>Hund rennt"
    );
    // The first thing stays first, the last stays last.
    assert_eq!(translated("<img> A dog <img>", "Hund ein", &[(0, 1), (1, 0)]), "<img> Hund ein <img>");
    // What had a word before it gets its space behind it where there is none.
    assert_eq!(translated("A <img> dog", "Hund", &[(1, 0)]), "<img> Hund");
    assert_eq!(
        translated(
            "a man in a<br>blue shirt",
            "ein Mann in blauem Hemd",
            &[(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (5, 4)]
        ),
        "ein Mann in<br>blauem Hemd"
    );
}

#[test]
fn no_break_spaces_stay_between_the_same_words() {
    assert_eq!(translated("10&nbsp;km far", "weit 10 km", &[(2, 0), (0, 1), (1, 2)]), "weit 10&nbsp;km");
}

#[test]
fn a_language_without_spaces_gets_its_tags_in_proportion() {
    let html = "The <b>quick</b> brown fox";
    assert_eq!(translated(html, "敏捷的棕色狐狸跳跃", &[(0, 0)]), "敏捷<b>的棕色</b>狐狸跳跃");
    assert_eq!(translated("你好<b>世界</b>", "Hello world", &[(0, 0), (0, 1)]), "Hello <b>world</b>");
    assert_eq!(translated("A <b>dog</b> runs", "Ein Hund rennt", &[]), "Ein <b>Hund</b> rennt");
}

#[test]
fn deep_nesting_is_no_burden() {
    let html = format!("{}x{}", "<b>".repeat(50_000), "</b>".repeat(50_000));
    assert_eq!(identity(&html), html);
    for bit in ["<i>x ", "x </i>"] {
        assert_eq!(identity(&bit.repeat(300)), bit.repeat(300));
        // Nothing is lost even where it takes too long to find out what is around what.
        let tags = identity(&bit.repeat(20_000)).matches("i>").count();
        assert_eq!(tags, 20_000);
    }
}

/// A document that is random but balanced. Every tag has a number of its own.
fn balanced(random: &mut Random, depth: usize, number: &mut usize) -> String {
    let mut html = String::new();
    for _ in 0..random.below(5) {
        *number += 1;
        let id = *number;
        match random.below(14) {
            0..=4 => html.push_str(["dog", " dog ", "a, b", " &lt;c&gt;", "(ä) "][random.below(5)]),
            5 => html.push(' '),
            6 => html.push_str(&format!("<img id={id}>")),
            7 => html.push_str(&format!("<code id={id}>x <b>y</b></code>")),
            8 => html.push_str(&format!("<!-- {id} --><script id={id}>if (a<b) '</b>'</script>")),
            _ if depth == 0 => html.push_str(" end."),
            _ => {
                let name = ["b", "i", "a title='>'", "span", "my-own"][random.below(5)];
                let end = name.split(' ').next().unwrap_or(name);
                let content = balanced(random, depth - 1, number);
                html.push_str(&format!("<{name} id={id}>{content}</{end}>"));
            }
        }
    }
    html
}

/// Each tag with the tag that it stands in; panics unless tags are balanced.
fn parents(html: &str) -> Vec<(String, String)> {
    let (mut open, mut parents) = (vec![(String::new(), "")], Vec::new());
    for token in tokens(html) {
        let source = &html[token.span];
        match token.kind {
            Kind::Open(tag) => {
                parents.push((source.to_owned(), open.last().unwrap().1.to_owned()));
                if !is_void(&tag.name) {
                    open.push((tag.name, source));
                }
            }
            Kind::Close(name) => assert_eq!(open.pop().unwrap().0, name, "{html}"),
            _ => {}
        }
    }
    assert_eq!(open.len(), 1, "{html}");
    parents.sort();
    parents
}

/// All characters of the text that are no white space.
fn letters(html: &str) -> String {
    let text = |kind| if let Kind::Text(text) = kind { text } else { String::new() };
    let all: String = tokens(html).into_iter().map(|token| text(token.kind)).collect();
    all.split_whitespace().collect()
}

/// The bytes of scripts, code and comments.
fn untouched(html: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = ["<script", "<code", "<!--"]
        .iter()
        .flat_map(|begin| html.match_indices(begin))
        .map(|(start, begin)| {
            let end = ["</script>", "</code>", "-->"]
                [["<script", "<code", "<!--"].iter().position(|b| b == &begin).unwrap()];
            &html[start..start + html[start..].find(end).unwrap() + end.len()]
        })
        .collect();
    parts.sort_unstable();
    parts
}

fn random_translation(random: &mut Random, source_words: usize) -> (String, Vec<Link>) {
    let words = ["Hund", "dog", "a,", "(ä)", "<c>", "läuft.", "世界", "—"];
    let spaceless = random.below(10) == 0;
    let count = random.below(8);
    let text: Vec<&str> =
        (0..count).map(|_| if spaceless { "你好世界" } else { words[random.below(words.len())] }).collect();
    let links =
        (0..random.below(12)).map(|_| (random.below(source_words + 2), random.below(count + 2))).collect();
    (text.join(" "), links)
}

/// A document whose blocks are translated at random, and their translations.
fn rendered_at_random(random: &mut Random, html: &str) -> (String, Vec<String>) {
    let document = Document::parse(html);
    let words = document.blocks().iter().map(|block| block.text().split_whitespace().count());
    let translations: Vec<(String, Vec<Link>)> =
        words.map(|words| random_translation(random, words)).collect();
    let rendered = document.render(translations.iter().map(|(text, links)| (&text[..], &links[..])));
    (rendered, translations.into_iter().map(|(text, _)| text).collect())
}

#[test]
fn whatever_the_links_are_tags_keep_their_parents_and_nothing_is_lost() {
    let mut random = Random(7);
    for _ in 0..5_000 {
        let html = balanced(&mut random, 4, &mut 0);
        let (rendered, texts) = rendered_at_random(&mut random, &html);
        assert_eq!(parents(&rendered), parents(&html), "{html}\n{rendered}");
        assert_eq!(untouched(&rendered), untouched(&html), "{html}\n{rendered}");
        if let [text] = &texts[..] {
            let all = |html: &str| {
                let mut all: Vec<char> = letters(html).chars().collect();
                all.sort_unstable();
                all
            };
            let stays: String = untouched(&html).concat();
            let escaped = text.replace('<', "&lt;");
            assert_eq!(all(&rendered), all(&format!("{stays}{escaped}")), "{html}\n{rendered}");
        }
    }
}

#[test]
fn whatever_a_document_is_no_tag_is_lost_and_the_identity_gives_it_back() {
    let bits = [
        "a",
        " ",
        "dog ",
        "\n",
        "<b>",
        "</b>",
        "<i x='>'>",
        "</i>",
        "<u>",
        "</u>",
        "<p>",
        "</p>",
        "<br>",
        "<img>",
        "<!-- c -->",
        "&lt;",
        ".",
        "(",
        "<code>",
        "</code>",
        "<li translate=no>",
        "x",
        "Y",
        "<div>",
        "</div>",
        "日本",
        "&nbsp;",
        "<wbr>",
        "<span/>",
        "</br>",
    ];
    let mut random = Random(3);
    for _ in 0..10_000 {
        let html: String = (0..random.below(14)).map(|_| bits[random.below(bits.len())]).collect();
        assert_eq!(identity(&html), html);
        let (rendered, _) = rendered_at_random(&mut random, &html);
        let tags = |html: &str| {
            let is_tag = |kind: &Kind| matches!(kind, Kind::Open(_) | Kind::Close(_) | Kind::Other);
            let mut tags: Vec<String> = tokens(html)
                .into_iter()
                .filter(|token| is_tag(&token.kind))
                .map(|token| html[token.span].to_owned())
                .collect();
            tags.sort_unstable();
            tags
        };
        assert_eq!(tags(&rendered), tags(&html), "{html}\n{rendered}");
    }
}
