// A server whose only model is an encoder: the page says so, and the rest of it works.

import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServer } from "./browser.mjs";

const GOLDEN = new URL("../../../../golden/", import.meta.url).pathname;

/** A small embedding model with its tokenizer, in a folder of its own. */
function folder() {
  const folder = mkdtempSync(join(tmpdir(), "attentive-encoder-"));
  for (const file of ["config.json", "model.safetensors"]) copyFileSync(`${GOLDEN}bert/hidden/${file}`, join(folder, file));
  const { words } = JSON.parse(readFileSync(`${GOLDEN}tasks.json`, "utf8"));
  writeFileSync(join(folder, "vocab.txt"), `${words.join("\n")}\n`);
  return folder;
}

export function encoder(its) {
  test("without a translation model it says what the models do", async () => {
    const { page } = its;
    const model = folder();
    const server = await startServer("--model", `words=${model}`);
    try {
      await page.be({ width: 1280, theme: "light" });
      await page.driver.get(server.address);
      await page.until("it is told", async () => (await page.text("#no-translator")).includes("words makes embeddings"));
      assert.match(await page.text("#no-translator"), /POST \/v1\/embeddings/);
      assert.equal(await page.run(`return document.querySelector("#question").hidden`), true);
      assert.equal(await page.run(`return document.querySelector("#trouble").hidden`), true);
      await page.shoot("encoder", 1280);
      assert.deepEqual(await page.axe(), []);
      assert.deepEqual(await page.complaints(), []);
    } finally {
      await server.stop();
      rmSync(model, { recursive: true });
    }
  });
}
