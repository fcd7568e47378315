// A server whose only model is an encoder: the page compares texts, and shows its attention.

import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Key } from "selenium-webdriver";
import { startServer } from "./browser.mjs";

const GOLDEN = new URL("../../../../golden/", import.meta.url).pathname;

/** A small BERT of a kind, or one of its relatives, with its tokenizer, in a folder of its own. */
export function folder(kind, family = "bert") {
  const folder = mkdtempSync(join(tmpdir(), "attentive-encoder-"));
  for (const file of ["config.json", "model.safetensors"]) copyFileSync(`${GOLDEN}${family}/${kind}/${file}`, join(folder, file));
  const { words } = JSON.parse(readFileSync(`${GOLDEN}tasks.json`, "utf8"));
  writeFileSync(join(folder, "vocab.txt"), `${words.join("\n")}\n`);
  return folder;
}

export function encoder(its) {
  test("an encoder compares texts, and shows what it attends to", async () => {
    const { page } = its;
    const model = folder("hidden");
    const server = await startServer("--model", `words=${model}`);
    try {
      await page.be({ width: 1280, theme: "light" });
      await page.driver.get(server.address);
      await page.until("it is told", async () => (await page.text("#about")).startsWith("words turns texts into vectors"));
      assert.equal(await page.run(`return document.querySelector("#translate").hidden`), true);
      assert.equal(await page.run(`return document.querySelector("#trouble").hidden`), true);
      const text = "a dog and a cat";
      await page.type("#similar-texts", `${text}\na cat and a dog`);
      await page.until("the texts are compared", async () => (await page.texts("#similar-result td")).length > 4);
      const { data } = await server.post("/v1/embeddings", { input: [text, "a cat and a dog"] });
      const [a, b] = data.map(({ embedding }) => embedding);
      const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
      const cosine = dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
      const shown = Number((await page.texts("#similar-result tbody td"))[1].replace("−", "-"));
      assert.ok(Math.abs(shown - cosine) < 0.006, `${shown} ${cosine}`);
      await page.until("it is drawn", async () => (await page.text("#chosen")).startsWith("encoder"));
      const { data: [{ details }] } = await (await fetch(`${server.address}/v1/models`)).json();
      assert.equal((await page.all("#grid .map")).length, details.encoder_layers * (details.h + 1));
      const answer = await server.post("/v1/attention", { text });
      await page.click("#grid .map:nth-of-type(2)");
      await page.until("the second head is chosen", async () => (await page.text("#chosen")).endsWith("layer 1, head 2"));
      const [matrix] = answer.attention.filter(({ layer, head }) => layer === 0 && head === 1);
      await page.press("#picture svg", Key.ARROW_DOWN, Key.ARROW_DOWN, Key.ARROW_RIGHT);
      const value = (await page.text("#read-out")).split(": ").at(-1);
      assert.equal(Number(value).toFixed(4), matrix.weights[1][1].toFixed(4));
      await page.choose("scene", "head");
      await page.until("it is followed step by step", async () => (await page.all("#head-picture svg")).length > 0);
      assert.deepEqual(await page.texts("#head-kind option"), ["encoder self"]);
      await page.shoot("encoder", 1280);
      assert.deepEqual(await page.axe(), []);
      assert.deepEqual(await page.complaints(), []);
    } finally {
      await server.stop();
      rmSync(model, { recursive: true });
    }
  });
}
