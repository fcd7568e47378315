// For everybody: screen readers, phones and walls, light and dark, no network but the server.

import assert from "node:assert/strict";
import { test } from "node:test";

const SIZES = { phone: 390, desk: 1280, wall: 2200 };

export function everybody(its) {
  for (const [size, width] of Object.entries(SIZES)) {
    for (const theme of ["light", "dark"]) {
      test(`it is whole and readable on a ${size}, ${theme}`, async () => {
        const { page, server } = its;
        await page.be({ width, theme });
        await page.open(server.address);
        if (size === "desk") await page.shoot(`empty-${theme}`, width);
        await page.translate("four thousand three hundred and twenty-one", "de");
        await page.until("attention is drawn", () => page.run(`return document.querySelector("#picture svg") !== null`));
        await page.shoot(`${size}-${theme}`, width);
        assert.deepEqual(await page.axe(), []);
        const tooWide = await page.run(`return document.documentElement.scrollWidth - document.documentElement.clientWidth`);
        assert.ok(tooWide <= 0, `the page is ${tooWide} pixels too wide`);
        // The other half of the page: lines, a masked triangle, a head, alternatives.
        await page.choose("view", "lines");
        await page.choose("scene", "head");
        await page.click("#translation .piece:nth-of-type(3)");
        await page.until("all is there", () => page.run(`return document.querySelector("#head-picture svg") !== null
          && document.querySelectorAll("#alternatives .next").length > 0`));
        await page.shoot(`${size}-${theme}-more`, width);
        assert.deepEqual(await page.axe(), []);
        await page.choose("view", "heatmap");
        await page.choose("kind", "decoder");
        await page.until("it is drawn", async () => (await page.text("#chosen")).startsWith("decoder"));
        assert.deepEqual(await page.axe(), []);
        assert.deepEqual(await page.complaints(), []);
      });
    }
  }

  test("light and dark can be chosen, whatever the system says", async () => {
    const { page, server } = its;
    await page.be({ theme: "light" });
    await page.open(server.address);
    const paper = () => page.run(`return getComputedStyle(document.body).backgroundColor`);
    const light = await paper();
    await page.click("#theme");
    assert.notEqual(await paper(), light);
    await page.click("#theme");
    assert.equal(await paper(), light);
  });

  test("nothing is asked of anybody but the server", async () => {
    const { page, server } = its;
    const asked = await page.run(`return performance.getEntriesByType("resource").map(({ name }) => name)`);
    assert.ok(asked.length > 10);
    assert.deepEqual(asked.filter((name) => !name.startsWith(server.address) && !name.startsWith("blob:")), []);
  });
}
