// A server with models of pictures: a picture is dropped, classified, compared, searched for things, and looked into.

import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServer } from "./browser.mjs";

const GOLDEN = new URL("../../../../golden/", import.meta.url).pathname;
const [CAT, COFFEE] = ["chelsea.png", "coffee.png"].map((name) => `${GOLDEN}image/${name}`);

const dataUrl = (path) => `data:image/png;base64,${readFileSync(path).toString("base64")}`;
const percent = (text) => Number(text.replace("%", "").replace("<", "").trim());

/** A small DETR that says how it wants its pictures, in a folder of its own. */
function detr() {
  const folder = mkdtempSync(join(tmpdir(), "attentive-detr-"));
  for (const file of ["config.json", "model.safetensors"]) copyFileSync(`${GOLDEN}detr/basic/${file}`, join(folder, file));
  const processor = { image_processor_type: "DetrImageProcessor", size: { shortest_edge: 40, longest_edge: 60 } };
  writeFileSync(join(folder, "preprocessor_config.json"), JSON.stringify(processor));
  return folder;
}

export function see(its) {
  let server, things;
  before(async () => {
    things = detr();
    const models = [`animals=${GOLDEN}vit/classes`, `dino=${GOLDEN}vit/dino`, `things=${things}`];
    server = await startServer(...models.flatMap((model) => ["--model", model]));
  });
  after(async () => {
    await server?.stop();
    rmSync(things, { recursive: true });
  });

  /** Drops a picture as a hand would. */
  const drop = async (path) => {
    await its.page.run(`
      const bytes = Uint8Array.from(atob(arguments[0]), (character) => character.charCodeAt(0));
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([bytes], arguments[1], { type: "image/png" }));
      document.getElementById("see-drop").dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer }));
    `, readFileSync(path).toString("base64"), path.split("/").at(-1));
    await its.page.atRest();
  };
  const chooseModel = async (name) => {
    await its.page.run(`const model = document.getElementById("model"); model.value = arguments[0]; model.dispatchEvent(new Event("change"))`, name);
    await its.page.until("it is told", async () => (await its.page.text("#about")).startsWith(name));
    await its.page.atRest();
  };
  const gaze = (more) => server.post("/v1/attention", { model: "animals", image: dataUrl(CAT), ...more });
  /** How bright the middle of each patch is in the canvas of a head, beside the picture. */
  const light = (head) => its.page.run(`
    const canvas = document.querySelectorAll("#gaze-heads canvas")[arguments[0]];
    const pen = canvas.getContext("2d");
    const side = canvas.width / 4;
    return Array.from({ length: 16 }, (_, i) => {
      const { data } = pen.getImageData((i % 4) * side, Math.floor(i / 4) * side, side, side);
      return data.reduce((sum, level, at) => sum + (at % 4 < 3 ? level : 0), 0);
    });
  `, head);

  test("a picture that is dropped is classified", async () => {
    const { page } = its;
    await page.be({ width: 1280, theme: "light" });
    await page.driver.get(server.address);
    await page.until("it is told", async () => /^animals tells the class of a picture/.test(await page.text("#about")));
    assert.equal(await page.run(`return document.getElementById("see-empty").hidden`), false);
    await drop(CAT);
    const { data: [{ scores }] } = await server.post("/v1/classify", { model: "animals", input: dataUrl(CAT) });
    assert.deepEqual(await page.texts("#see-result .text"), scores.map(({ label }) => label).slice(0, 8));
    (await page.texts("#see-result .score")).map(percent).forEach((score, i) => assert.ok(Math.abs(score - 100 * scores[i].score) < 0.06));
    assert.equal(await page.run(`return document.getElementById("see-empty").hidden`), true);
    assert.equal(await page.run(`return getComputedStyle(document.getElementById("whole")).display`), "none");
  });

  test("each head is bright where it looks, from the class token and from a patch", async () => {
    const { page } = its;
    assert.equal((await page.all("#gaze-heads canvas")).length, 5);
    const image = await page.run(`return document.getElementById("see-image").src`);
    assert.equal(image, (await gaze({ return_image: true })).image);
    assert.match(await page.text("#gaze-chosen"), /The class token, layer 2/);
    // The patch in the second row and the third column.
    await page.run(`
      const { left, top, width, height } = document.querySelector(".patches").getBoundingClientRect();
      const place = { clientX: left + 0.625 * width, clientY: top + 0.375 * height, bubbles: true };
      document.querySelector(".patches").dispatchEvent(new MouseEvent("click", place));
    `);
    await page.until("the patch looks", async () => /row 2, column 3, layer 2/.test(await page.text("#gaze-chosen")));
    const { attention } = await gaze({ patch: [1, 2] });
    for (const [place, head] of [[0, null], [1, 0], [4, 3]]) {
      const weights = attention.find((gaze) => gaze.head === head).weights.flat();
      const most = Math.max(...weights);
      const shown = await light(place);
      const whole = await page.run(`
        const image = document.getElementById("see-image");
        const canvas = document.createElement("canvas");
        [canvas.width, canvas.height] = [16, 16];
        const pen = canvas.getContext("2d");
        pen.drawImage(image, 0, 0);
        return Array.from({ length: 16 }, (_, i) => {
          const { data } = pen.getImageData((i % 4) * 4, Math.floor(i / 4) * 4, 4, 4);
          return data.reduce((sum, level, at) => sum + (at % 4 < 3 ? level : 0), 0);
        });
      `);
      const scale = (await page.run(`return document.querySelector("#gaze-heads canvas").width / 16`)) ** 2;
      weights.forEach((weight, i) => {
        const expected = whole[i] * (0.15 + (0.85 * weight) / most);
        assert.ok(Math.abs(shown[i] / scale - expected) < 0.02 * whole[i] + 16, `head ${head}, patch ${i}: ${shown[i] / scale} ${expected}`);
      });
    }
    await page.press(".patches", "\uE015");
    await page.until("the patch below looks", async () => /row 3, column 3, layer 2/.test(await page.text("#gaze-chosen")));
    await page.slide("gaze-layer", 1);
    await page.until("the first layer is shown", async () => /row 3, column 3, layer 1/.test(await page.text("#gaze-chosen")));
    await page.shoot("see-heads", 1280);
    assert.deepEqual(await page.axe(), []);
    await page.click("#gaze-class");
    await page.until("the class token looks", async () => /The class token, layer 1/.test(await page.text("#gaze-chosen")));
  });

  test("pictures are compared", async () => {
    const { page } = its;
    await chooseModel("dino");
    await page.keys("#see-file", COFFEE);
    await page.until("both are compared", async () => (await page.texts("#see-result tbody th")).length === 2);
    const { data } = await server.post("/v1/embeddings", { model: "dino", input: [CAT, COFFEE].map(dataUrl) });
    const [a, b] = data.map(({ embedding }) => embedding);
    const cosine = a.reduce((sum, x, i) => sum + x * b[i], 0);
    const shown = Number((await page.texts("#see-result tbody td"))[1].replace("−", "-"));
    assert.ok(Math.abs(shown - cosine) < 0.006, `${shown} ${cosine}`);
  });

  test("things have boxes, as many as are certain enough", async () => {
    const { page } = its;
    await chooseModel("things");
    const found = await server.post("/v1/detect", { model: "things", input: dataUrl(COFFEE), threshold: 0 });
    assert.ok(found.length > 0);
    await page.slide("boxes-certain", 0);
    assert.equal((await page.all("#see-overlay rect")).length, found.length);
    const best = found.toSorted((a, b) => b.score - a.score)[0];
    const box = await page.run(`const box = document.querySelector("#see-overlay rect"); return ["x", "y", "width", "height"].map((name) => box.getAttribute(name))`);
    box.map(Number).forEach((side, i) => assert.ok(Math.abs(side - best.bbox[i]) < 1e-3, `${box} ${best.bbox}`));
    await page.shoot("see-boxes", 1280);
    assert.deepEqual(await page.axe(), []);
    await page.slide("boxes-certain", 1);
    assert.equal((await page.all("#see-overlay rect")).length, 0);
    assert.equal(await page.run(`return document.getElementById("see-gaze").hidden`), true);
  });

  test("what is no picture is told in one sentence, and the page goes on", async () => {
    const { page } = its;
    await page.run(`
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File(["no picture"], "broken.png", { type: "image/png" }));
      document.getElementById("see-drop").dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer }));
    `);
    await page.until("it is told", () => page.run(`return !document.getElementById("trouble").hidden`));
    assert.match(await page.text("#trouble"), /picture/);
    await drop(CAT);
    assert.equal(await page.run(`return document.getElementById("trouble").hidden`), true);
    await page.be({ width: 390, theme: "dark" });
    await chooseModel("animals");
    await page.shoot("see-narrow", 390);
    assert.deepEqual(await page.axe(), []);
    await page.be({ width: 1280, theme: "light" });
    // The server's own refusal, and the broken picture that the browser could not draw either.
    await page.complaints();
  });
}
