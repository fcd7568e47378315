// A server with a model for every task of encoders: each has its tab, and its answers are those of the server.

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, before, test } from "node:test";
import { folder } from "./encoder.mjs";
import { startServer } from "./browser.mjs";

const MODELS = { filler: "masked", classes: "sequence", tagger: "token", ranker: "rank", answerer: "answer" };
const TEXT = "a dog and a cat";

const percent = (text) => Number(text.replace("%", "").replace("<", "").trim());

export function tabs(its) {
  let server, folders;
  before(async () => {
    folders = Object.entries(MODELS).map(([name, kind]) => [name, folder(kind)]);
    server = await startServer(...folders.flatMap(([name, path]) => ["--model", `${name}=${path}`]));
  });
  after(async () => {
    await server?.stop();
    folders?.forEach(([, path]) => rmSync(path, { recursive: true }));
  });

  /** Opens a tab, fills its fields, and returns the scores of its answer. */
  const ask = async (tab, values) => {
    const { page } = its;
    await page.click(`#tab-${tab}`);
    await page.atRest();
    for (const [field, text] of Object.entries(values)) await page.type(`#${tab}-${field}`, text);
    const [field, text] = Object.entries(values).at(-1);
    await page.until("the address has the text", async () => (await page.link()).get(field) === text && (await page.link()).get("task") === tab);
    await page.atRest();
    return { names: await page.texts(`#${tab}-result .text`), scores: (await page.texts(`#${tab}-result .score`)).map(percent) };
  };
  const near = (scores, expected) => {
    assert.equal(scores.length, expected.length);
    scores.forEach((score, i) => assert.ok(Math.abs(score - 100 * expected[i]) <= 0.06, `${scores} ${expected}`));
  };

  test("there is a tab for each task, reached with the keyboard", async () => {
    const { page } = its;
    await page.be({ width: 1280, theme: "light" });
    await page.driver.get(server.address);
    await page.until("the tabs are there", async () => (await page.all("#tasks button")).length > 0);
    assert.deepEqual(await page.texts("#tasks button"), ["Answer", "Fill masks", "Classify", "Tag words", "Compare texts", "Rank"]);
    await page.press("#tasks [aria-selected=true]", "\uE014", "\uE014", "\uE007");
    await page.until("the third tab is chosen", () => page.run(`return !document.getElementById("classify").hidden`));
    assert.match(await page.text("#about"), /^classes tells the class of a text/);
  });

  test("masks are filled", async () => {
    const { names, scores } = await ask("fill", { text: "a ___ and a cat" });
    const found = await server.post("/v1/fill-mask", { inputs: "a [MASK] and a cat", parameters: { top_k: 8 } });
    assert.deepEqual(names, found.map(({ token_str }) => token_str));
    near(scores, found.map(({ score }) => score));
  });

  test("classes have their probabilities, and the text its attention", async () => {
    const { page } = its;
    const { names, scores } = await ask("classify", { text: TEXT });
    const found = await server.post("/predict", { inputs: TEXT });
    assert.deepEqual(names, found.map(({ label }) => label));
    near(scores, found.map(({ score }) => score));
    assert.ok((await page.texts("#picture svg text")).includes("dog"));
    await page.shoot("classify", 1280);
    assert.deepEqual(await page.axe(), []);
  });

  test("entities are marked in the text", async () => {
    const { page } = its;
    await ask("tag", { text: TEXT });
    const { tagged: [{ entities }] } = await server.post("/v1/tag", { model: "tagger", text: TEXT });
    const marked = await page.run(`return [...document.querySelectorAll("#tag-result mark")].map((mark) => mark.firstChild.textContent)`);
    assert.deepEqual(marked, entities.map(({ word }) => word));
  });

  test("questions are answered, and the best answer is marked in the text", async () => {
    const { page } = its;
    const question = "a cat";
    const context = "the big red house and a small dog in london";
    const { names, scores } = await ask("answer", { question, text: context });
    const found = await server.post("/v1/answer", { inputs: { question, context }, parameters: { top_k: 5 } });
    assert.deepEqual(names, found.map(({ answer }) => answer));
    near(scores, found.map(({ score }) => score));
    assert.equal(await page.text("#answer-result mark"), found[0].answer);
  });

  test("texts are ranked", async () => {
    const texts = [TEXT, "the big red house", "ada in london"];
    const { names, scores } = await ask("rank", { query: "a dog", texts: texts.join("\n") });
    const { results } = await server.post("/v1/rerank", { query: "a dog", documents: texts });
    assert.deepEqual(names, results.map(({ index }) => texts[index]));
    near(scores, results.map(({ relevance_score }) => relevance_score));
  });

  test("another model leaves nothing of the old one, and an empty box has no answer", async () => {
    const { page } = its;
    await ask("classify", { text: TEXT });
    await page.type("#classify-text", "");
    await page.until("nothing is shown", async () => (await page.text("#classify-result")) === "");
    assert.equal(await page.run(`return document.querySelector("#attention .filled").hidden`), true);
    await page.click("#tab-tag");
    await page.atRest();
    await page.click("#tab-classify");
    assert.equal(await page.text("#classify-result"), "");
    assert.deepEqual(await page.complaints(), []);
  });
}
