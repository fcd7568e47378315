// Writing with a language model: the next tokens, the choice of one, the model that writes on, and its attention.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Key } from "selenium-webdriver";
import { startServer } from "./browser.mjs";

const MODEL = new URL("../../../../golden/gpt2/saved", import.meta.url).pathname;
const TEXT = "A batch is packed";

export function write(its) {
  let server;
  before(async () => (server = await startServer("--model", `small=${MODEL}`)));
  after(() => server?.stop());

  const draft = () => its.page.run(`return document.getElementById("draft").value`);
  const type = async (text) => {
    await its.page.type("#draft", text);
    await its.page.until("the next tokens are those of the text", async () => {
      const { tokens } = await server.post("/v1/next", { text });
      return (await its.page.text("#draft-hint")).startsWith(`${tokens} of `);
    });
    await its.page.atRest();
  };
  const visible = ({ ends, text, piece }) => (ends ? "(end)" : text.replaceAll(" ", "␣").replaceAll("\n", "↵") || piece);

  test("the next tokens and their probabilities are those of the server", async () => {
    const { page } = its;
    await page.be({ width: 1280, theme: "light" });
    await page.driver.get(server.address);
    await page.until("the next tokens are there", async () => (await page.all("#next-list li")).length > 0);
    assert.equal(await page.run(`return document.querySelector("#translate").hidden`), true);
    await type(TEXT);
    const { next } = await server.post("/v1/next", { text: TEXT, count: 12 });
    assert.deepEqual(await page.texts("#next-list .next"), next.map(visible));
    const chances = (await page.texts("#next-list .score")).map((text) => Number(text.replace("%", "").replace("<", "").trim()));
    next.forEach(({ logprob }, i) => assert.ok(Math.abs(100 * Math.exp(logprob) - chances[i]) <= 0.06, `${logprob} ${chances[i]}`));
  });

  test("a token that is chosen goes on with the text", async () => {
    const { page } = its;
    await type(TEXT);
    const { next } = await server.post("/v1/next", { text: TEXT, count: 12 });
    await page.click("#next-list li:nth-child(2) button");
    await page.until("it is written", async () => (await draft()) === TEXT + next[1].text);
    const after = await server.post("/v1/next", { text: TEXT + next[1].text, count: 12 });
    await page.until("what follows it is shown", async () =>
      JSON.stringify(await page.texts("#next-list .next")) === JSON.stringify(after.next.map(visible)));
  });

  test("the model writes on as it comes", async () => {
    const { page } = its;
    await type(TEXT);
    await page.slide("heat", 0);
    await page.slide("more", 9);
    await page.click("#write-on");
    const { choices } = await server.post("/v1/completions", { prompt: TEXT, temperature: 0, max_tokens: 9 });
    await page.until("it is written", async () => (await draft()) === TEXT + choices[0].text);
    await page.atRest();
    assert.equal(await page.text("#write-on"), "Write on");
  });

  test("a text that is too long is refused in a sentence", async () => {
    const { page } = its;
    await page.type("#draft", "x y z ".repeat(20));
    await page.until("it is told", async () => (await page.text("#trouble")).startsWith("The text is too long: it has"));
    await page.complaints();
    await type(TEXT);
    assert.equal(await page.run(`return document.querySelector("#trouble").hidden`), true);
  });

  test("attention of every head is that of the server, and nothing is seen ahead", async () => {
    const { page } = its;
    await type(TEXT);
    await page.until("it is drawn", async () => (await page.text("#chosen")).startsWith("causal"));
    const { data: [{ details }] } = await (await fetch(`${server.address}/v1/models`)).json();
    assert.equal((await page.all("#grid .map")).length, details.decoder_layers * (details.h + 1));
    assert.ok((await page.all("#picture path[fill='url(#masked)']")).length > 0);
    const answer = await server.post("/v1/attention", { text: TEXT });
    await page.click("#grid .map:nth-of-type(3)");
    await page.until("the third head is chosen", async () => (await page.text("#chosen")).endsWith("layer 1, head 3"));
    const [matrix] = answer.attention.filter(({ layer, head }) => layer === 0 && head === 2);
    await page.press("#picture svg", Key.ARROW_DOWN, Key.ARROW_DOWN, Key.ARROW_DOWN, Key.ARROW_RIGHT);
    const value = (await page.text("#read-out")).split(": ").at(-1);
    assert.equal(Number(value).toFixed(4), matrix.weights[2][1].toFixed(4));
    await page.choose("scene", "head");
    await page.until("it is followed step by step", async () => (await page.all("#head-picture svg")).length > 0);
    await page.shoot("write", 1280);
    assert.deepEqual(await page.axe(), []);
    assert.deepEqual(await page.complaints(), []);
  });
}
