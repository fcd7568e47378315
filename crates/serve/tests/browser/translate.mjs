// Translating: examples, typing, searching, sampling, the list of the best, alternatives, refusals.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Key } from "selenium-webdriver";

const percent = (text) => Number(text.replace("%", "").replace("<", "").trim());

export function translate(its) {
  test("the page says what the model can do, shows an example, and a click shows another", async () => {
    const { page, server } = its;
    await page.be({});
    await page.open(server.address);
    assert.match(await page.text("#about"), /^numbers translates from English into German or French\. .*knows numbers only/);
    assert.equal(await page.text("#translation-text"), "viertausenddreihunderteinundzwanzig");
    assert.deepEqual(await page.texts("#target option"), ["German", "French"]);
    await page.click("#examples .chip:nth-of-type(2)");
    await page.until("it is translated", async () => (await page.text("#translation-text")) === "quatre-vingt-dix-sept");
    assert.equal(await page.run(`return document.getElementById("text").value`), "ninety-seven");
    await page.atRest();
    assert.equal((await page.texts("#n-best-list .text"))[0], "quatre-vingt-dix-sept");
  });

  test("the list of the best has the scores of the server", async () => {
    const { page, server } = its;
    const text = "four thousand three hundred and twenty-one";
    await page.translate(text, "de");
    const answer = await server.post("/v1/translate", { text, target: "de", n_best: 4, beam: 4 });
    const { hypotheses } = answer.translations[0];
    assert.deepEqual(await page.texts("#n-best-list .text"), hypotheses.map(({ text }) => text));
    // Two of them are the same text.
    assert.equal(new Set(hypotheses.map(({ text }) => text)).size, 3);
    assert.match(await page.text("#best-hint"), /A text that is there twice was written with other tokens\.$/);
    const scores = (await page.texts("#n-best-list .score")).map((score) => Number(score.replace("score ", "").replace("−", "-")));
    hypotheses.forEach(({ score }, i) => assert.ok(Math.abs(score - scores[i]) < 1e-4, `${score} ${scores[i]}`));
    await page.click("#best-title");
    await page.click("#n-best-list li:nth-child(2) button");
    const pieces = await page.texts("#translation .piece");
    assert.equal(pieces.length, hypotheses[1].tokens.length);
    assert.equal(await page.run(`return document.querySelectorAll("#n-best-list [aria-pressed=true]").length`), 1);
  });

  test("a piece of the translation shows what else could stand there, and takes it", async () => {
    const { page, server } = its;
    await page.translate("twenty-one", "de");
    await page.click("#translation .piece:nth-of-type(2)");
    await page.until("alternatives are there", async () => (await page.texts("#alternatives .next")).length > 1);
    const whole = await server.post("/v1/translate", { text: "twenty-one", target: "de" });
    const prefix_tokens = [whole.translations[0].hypotheses[0].tokens[0].id];
    const answer = await server.post("/v1/translate", { text: "twenty-one", target: "de", prefix_tokens, alternatives: 6 });
    // The page orders them by what it shows: how probable the next piece is.
    const chance = ({ tokens }) => tokens[1].logprob;
    const hypotheses = answer.translations[0].hypotheses.toSorted((a, b) => chance(b) - chance(a));
    assert.deepEqual(await page.texts("#alternatives .text"), hypotheses.map(({ text }) => text));
    const chances = (await page.texts("#alternatives .score")).map(percent);
    hypotheses.forEach(({ tokens }, i) => assert.ok(Math.abs(100 * Math.exp(tokens[1].logprob) - chances[i]) <= 0.06));
    await page.click("#alternatives li:nth-child(2) button");
    await page.until("it is taken", async () => (await page.texts("#n-best-list .text"))[0] === hypotheses[1].text);
    assert.equal(await page.run(`return document.getElementById("alternatives").hidden`), true);
  });

  test("choosing the piece that is there already leaves the translation and its score as they were", async () => {
    const { page } = its;
    await page.translate("nine hundred and ninety-nine", "de");
    const list = async () => [await page.texts("#n-best-list .text"), await page.texts("#n-best-list .score")];
    const before = await list();
    const piece = (await page.texts("#translation .piece"))[1];
    await page.click("#translation .piece:nth-of-type(2)");
    await page.until("alternatives are there", async () => (await page.texts("#alternatives .next")).length > 1);
    const place = (await page.texts("#alternatives .next")).indexOf(piece);
    await page.click(`#alternatives li:nth-child(${place + 1}) button`);
    assert.deepEqual(await list(), before);
  });

  test("pieces can be reached and opened with the keyboard alone", async () => {
    const { page } = its;
    await page.translate("twenty-one", "de");
    await page.press("#translation .piece", Key.ARROW_RIGHT, Key.ARROW_RIGHT);
    assert.equal(await page.text(":focus"), "zwanzig");
    await page.press(":focus", Key.ENTER);
    await page.until("alternatives are there", async () => (await page.texts("#alternatives .next")).length > 1);
    assert.equal((await page.texts("#alternatives .next"))[0], "zwanzig");
  });

  test("lines and paragraphs are kept, and every line can be looked into", async () => {
    const { page } = its;
    await page.translate("twenty-one\n\nninety-seven", "de");
    assert.equal(await page.text("#translation-text"), "einundzwanzig\n\nsiebenundneunzig");
    assert.equal((await page.all("#translation p")).length, 3);
    assert.equal(await page.text("#best-title"), "4 best translations of line 1");
    await page.click("#translation p:nth-of-type(3) .piece");
    await page.until("the third line is looked into", async () => (await page.text("#best-title")) === "4 best translations of line 3");
    await page.atRest();
    // Every part shows that line and no other.
    for (const place of ["#picture", "#ribbon"]) assert.ok((await page.texts(`${place} svg text`)).includes("seven"), place);
    assert.ok((await page.texts("#whole-token option")).some((token) => token.endsWith("sieben")));
  });

  test("nothing stale is left when the box is empty", async () => {
    const { page } = its;
    await page.translate("twenty-one", "de");
    await page.type("#text", "");
    await page.until("nothing is shown", async () => (await page.text("#translation")) === "");
    assert.equal(await page.run(`return document.querySelector("#attention .filled").hidden`), true);
    assert.equal(await page.run(`return document.getElementById("answer").hidden`), true);
    assert.equal(await page.run(`return location.hash`), "");
  });

  test("the address opens what is shown", async () => {
    const { page, server } = its;
    await page.translate("twelve\nthirteen", "fr");
    await page.click("#copy");
    await page.until("it is copied", async () => (await page.text("#copied")) === "Copied.");
    await page.click("#grid .map:nth-of-type(3)");
    await page.until("the address has the head", async () => (await page.link()).get("look") === "cross.1.3");
    const address = await page.run(`return location.href`);
    assert.ok(address.startsWith(`${server.address}/#try?`));
    await page.driver.get("about:blank");
    await page.open(address);
    assert.equal(await page.run(`return document.getElementById("text").value`), "twelve\nthirteen");
    assert.equal(await page.run(`return document.getElementById("target").value`), "fr");
    assert.equal(await page.text("#translation-text"), "douze\ntreize");
    assert.equal(await page.text("#chosen"), "cross attention, layer 1, head 3");
  });

  test("sampling draws", async () => {
    const { page } = its;
    await page.choose("search", "sample");
    await page.slide("temperature", "2");
    await page.slide("n-best", "8");
    await page.translate("nine hundred and ninety-nine", "de");
    assert.equal((await page.texts("#n-best-list .text")).length, 8);
    assert.equal(await page.text("#best-title"), "8 samples");
    await page.choose("search", "beam");
    await page.slide("n-best", "4");
  });

  test("what the server refuses is said in a sentence, and no answer is left", async () => {
    const { page } = its;
    await page.run(`const field = document.getElementById("text");
      field.removeAttribute("maxlength"); field.value = "one ".repeat(2000); field.dispatchEvent(new Event("input"))`);
    await page.until("it is said", async () => (await page.text("#trouble")).startsWith("The text is too long: it has 8000 characters"));
    assert.equal(await page.text("#translation"), "");
    // The browser says so too, and that is all that it has to complain about so far.
    const complaints = await page.complaints();
    assert.ok(complaints.length === 1 && complaints[0].includes("413"), complaints.join("\n"));
    await page.translate("one", "de");
    assert.equal(await page.run(`return document.getElementById("trouble").hidden`), true);
  });
}
