// All tests of the page, with one server and one browser.

import { after, before, describe } from "node:test";
import { startBrowser, startServer } from "./browser.mjs";
import { attention } from "./attention.mjs";
import { encoder } from "./encoder.mjs";
import { everybody } from "./everybody.mjs";
import { figures } from "./figures.mjs";
import { hub } from "./hub.mjs";
import { inspect } from "./inspect.mjs";
import { see } from "./see.mjs";
import { steps } from "./steps.mjs";
import { tabs } from "./tabs.mjs";
import { terms } from "./terms.mjs";
import { translate } from "./translate.mjs";
import { whole } from "./whole.mjs";
import { write } from "./write.mjs";

describe("the page", () => {
  const its = {};
  before(async () => {
    its.server = await startServer();
    its.page = await startBrowser();
  });
  after(async () => {
    await its.page?.driver.quit();
    await its.server?.stop();
  });
  for (const part of [translate, attention, whole, steps, figures, everybody, inspect, encoder, hub, tabs, write, see, terms]) part(its);
});
