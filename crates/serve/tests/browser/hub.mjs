// A model of the Hugging Face Hub, found in the cache that Python's tools lay out: the page calls it by its name there.

import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServerIn } from "./browser.mjs";

const MODEL = new URL("../../model/", import.meta.url).pathname;
const NAME = "ada/numbers-en-de";

/** A cache of the Hub with one model. */
function cache() {
  const home = mkdtempSync(join(tmpdir(), "attentive-cache-"));
  const repository = join(home, "models--ada--numbers-en-de");
  const commit = "a".repeat(40);
  const snapshot = join(repository, "snapshots", commit);
  for (const folder of ["blobs", "refs", `snapshots/${commit}`]) mkdirSync(join(repository, folder), { recursive: true });
  writeFileSync(join(repository, "refs", "main"), commit);
  readdirSync(MODEL, { withFileTypes: true }).filter((entry) => entry.isFile()).forEach(({ name }, i) => {
    const blob = String(i).padStart(40, "0");
    copyFileSync(join(MODEL, name), join(repository, "blobs", blob));
    symlinkSync(`../../blobs/${blob}`, join(snapshot, name));
  });
  return home;
}

export function hub(its) {
  test("a model of the Hub goes by its name there", async () => {
    const { page } = its;
    const home = cache();
    const server = await startServerIn({ HF_HUB_CACHE: home, HF_HUB_OFFLINE: "1" }, "--model", NAME, "--model", `numbers=${MODEL}`);
    try {
      const { data } = await (await fetch(`${server.address}/v1/models`)).json();
      assert.ok(data.some(({ id }) => id === NAME), JSON.stringify(data));
      await page.be({ width: 1280, theme: "light" });
      await page.driver.get(server.address);
      await page.until("the models are listed", async () => (await page.texts("#model option")).includes(NAME));
      await page.run(`const model = document.getElementById("model"); model.value = arguments[0]; model.dispatchEvent(new Event("change"))`, NAME);
      await page.until("it is told", async () => (await page.text("#about")).startsWith(NAME));
      await page.translate("twenty-one", "de");
      assert.match(await page.text("#translation"), /^einundzwanzig/);
      assert.equal((await page.link()).get("model"), NAME);
      assert.deepEqual(await page.complaints(), []);
    } finally {
      await server.stop();
      rmSync(home, { recursive: true });
    }
  });
}
