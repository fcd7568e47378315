//! `attentive translate`: lines with several sentences, and with more than the model reads at once.

use super::*;

#[test]
fn a_long_line_is_translated_sentence_by_sentence() {
    // The model reads 64 tokens, and these are more.
    let parts = ["a dog runs on the grass.", "the old dog sleeps.", "cats hide in the trees."];
    let outcome = fed("--beam 1", format!("{}\nfish\n", parts.join(" ")).as_bytes());
    let expected = fed("--beam 1", format!("{}\nfish\n", parts.join("\n")).as_bytes());
    let expected = answered(&expected);
    assert_eq!(answered(&outcome), [expected[..3].join(" "), expected[3].to_owned()]);

    let outcome = fed("--alignments --beam 1", format!("{}\n", parts.join(" ")).as_bytes());
    let (text, links) = answered(&outcome)[0].split_once(" ||| ").unwrap();
    let sources: Vec<usize> =
        links.split(' ').map(|link| link.split_once('-').unwrap().0.parse().unwrap()).collect();
    assert_eq!(sources.len(), text.split_whitespace().count());
    // The words of the last sentence are counted on from those before.
    assert!(
        sources.iter().any(|word| (10..15).contains(word)) && sources.iter().all(|&word| word < 15),
        "{links}"
    );
}

#[test]
fn a_paragraph_is_translated_sentence_by_sentence_and_its_white_space_stays() {
    let [one, two, three, four] = SENTENCES;
    let alone = fed("", format!("{}\n", SENTENCES.join("\n")).as_bytes());
    let [a, b, c, d] = answered(&alone)[..] else { panic!("{}", alone.stdout) };
    let input = format!("\t {one}  {two}\u{a0}{three} {four} \r\n\n{two} {one}\n   \n{four}");
    let expected = format!("\t {a}  {b}\u{a0}{c} {d} \r\n\n{b} {a}\n   \n{d}");
    assert_eq!(fed("", input.as_bytes()).stdout, expected);
    assert_eq!(fed("--split sentences --batch 1 --threads 1", input.as_bytes()).stdout, expected);
    let mut argument = translate("");
    argument.arg(SENTENCES.join(" "));
    assert_eq!(finish(argument).stdout, format!("{a} {b} {c} {d}\n"));
    assert!([a, b, c, d].iter().all(|found| found.contains('A')), "{}", alone.stdout);
}

#[test]
fn the_marks_of_lists_and_headings_stay_as_they_are() {
    let [one, two, ..] = SENTENCES;
    let alone = fed("", format!("{one}\n{two}\n").as_bytes());
    let [a, b] = answered(&alone)[..] else { panic!("{}", alone.stdout) };
    let listed = fed("", format!("# {one}\n- {two} {one}\n  1) {two}\n---\n...\n").as_bytes());
    assert_eq!(listed.stdout, format!("# {a}\n- {b} {a}\n  1) {b}\n---\n...\n"));
}

#[test]
fn lists_and_scores_of_a_paragraph_are_those_of_its_sentences_joined() {
    let answers = |input: String| -> Vec<serde_json::Value> {
        let outcome = fed("--n-best 3 --json --alignments", input.as_bytes());
        answered(&outcome).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let alone = answers(format!("{}\n", SENTENCES.join("\n")));
    let whole = &answers(format!("{}\n", SENTENCES.join(" ")))[0];
    for rank in 0..3 {
        let found = &whole["hypotheses"][rank];
        let of = |line: &serde_json::Value| line["hypotheses"][rank].clone();
        let texts: Vec<String> =
            alone.iter().map(|line| of(line)["text"].as_str().unwrap().to_owned()).collect();
        assert_eq!(found["text"], texts.join(" "));
        for name in ["tokens", "token_scores"] {
            let parts = alone.iter().flat_map(|line| of(line)[name].as_array().unwrap().clone());
            assert_eq!(found[name].as_array().unwrap(), &parts.collect::<Vec<_>>());
        }
        let score: f64 = alone.iter().map(|line| of(line)["score"].as_f64().unwrap()).sum();
        assert!((found["score"].as_f64().unwrap() - score).abs() < 1e-4);

        let (mut links, mut before) = (Vec::new(), [0, 0]);
        for (line, text) in alone.iter().zip(&texts) {
            for link in of(line)["alignment"].as_str().unwrap().split_whitespace() {
                let (source, target) = link.split_once('-').unwrap();
                let [source, target] = [source, target].map(|word| word.parse::<usize>().unwrap());
                links.push(format!("{}-{}", before[0] + source, before[1] + target));
            }
            before[0] += line["source"].as_str().unwrap().split_whitespace().count();
            before[1] += text.split_whitespace().count();
        }
        assert_eq!(found["alignment"], links.join(" "));
    }
    let outcome = fed("--n-best 2 --alignments", format!("  {} \r\n", SENTENCES.join(" ")).as_bytes());
    assert!(answered(&outcome).iter().all(|line| line.split(" ||| ").all(|field| field == field.trim())));
}

#[test]
fn lines_are_read_whole_where_that_is_asked_for_or_the_model_learned_it() {
    let line = format!("{} {}\n", SENTENCES[0], SENTENCES[1]);
    let [auto, lines] = ["", "--split lines"].map(|options| fed(options, line.as_bytes()).stdout);
    assert_ne!(auto, lines);
    let of_share = |share: &str, options: &str| {
        let model = folder().join(format!("share-{share}"));
        make_model(&model);
        let config = std::fs::read_to_string(model.join("config.json")).unwrap();
        let key = format!("{{\"attentive_multi_sentence_share\": {share},");
        std::fs::write(model.join("config.json"), config.replacen('{', &key, 1)).unwrap();
        let input = file("share", line.as_bytes());
        run(&format!("translate --model {} --input {} {options}", model.display(), input.display())).stdout
    };
    assert_eq!(of_share("0.05", ""), lines);
    assert_eq!(of_share("0.05", "--split sentences"), auto);
    assert_eq!(of_share("0.049", ""), auto);

    // A prefix is of a line as a whole.
    let prefixed = |options: &str| fed(&format!("--prefix a {options}"), line.as_bytes()).stdout;
    assert_eq!(prefixed(""), prefixed("--split lines"));
    assert_ne!(prefixed(""), prefixed("--split sentences"));
    assert_eq!(fed("--alternatives 2", line.as_bytes()).stdout.lines().count(), 2);
    run("translate --model a --split words").refused(&["--split", "auto", "sentences", "lines"]);
}

#[test]
fn alternatives_of_a_line_that_is_too_long_are_refused_not_cut() {
    let long = ["a dog runs on the grass.", "the old dog sleeps.", "cats hide in the trees."].join(" ");
    let outcome = fed("--alternatives 2", format!("fish\n{long}\n").as_bytes());
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("the model can read at most 64: split it"), "{}", outcome.stderr);
}

#[test]
fn a_sentence_that_is_too_long_is_read_in_pieces_and_none_of_it_is_lost() {
    let long = ["dog runs on the grass"; 20].join(" ");
    let outcome =
        fed("--beam 1 --json", format!("a dog\n{long}\n{}\nfish\n", "grass".repeat(100)).as_bytes());
    assert_eq!((outcome.code, outcome.stdout.lines().count(), &*outcome.stderr), (Some(0), 4, ""));
    // The model reads 64 tokens at once: it writes at least as many sentences as there are pieces.
    let ends = |line: &str| line.matches("\"</s>\"").count();
    let lines: Vec<usize> = outcome.stdout.lines().map(ends).collect();
    assert!(lines[0] == 1 && lines[1] >= 2 && lines[2] >= 2 && lines[3] == 1, "{lines:?}");
}
