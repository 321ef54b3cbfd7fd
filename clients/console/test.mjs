// The console in a real browser: node test.mjs URL [--screenshot FILE] [--pictures DIR]
//                                node test.mjs URL --cluster | --login | --only TEXT
//
// Environment: as harness.mjs says; CONSOLE_TESTS, words that the names of the tests to be run contain, as --only; for
// pictures that are kept, also STOA_BIN, STOA_WAREHOUSE and STOA_PG_PORT of the server, which `stoa bench` then asks for reports.
// Each test gets a new page of one browser; the last line printed is the sum.

import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { accessTests } from "./access-tests.mjs";
import { chartTests } from "./chart-tests.mjs";
import { clusterTests } from "./cluster-tests.mjs";
import { editorTests } from "./editor-tests.mjs";
import { figuresTests } from "./figures-tests.mjs";
import { firstMinutesTests } from "./first-minutes-tests.mjs";
import { browser, open, openPage, post, prepare, url } from "./harness.mjs";
import { listTests } from "./list-tests.mjs";
import { loginTests } from "./login-tests.mjs";
import { pageTests } from "./page-tests.mjs";
import { takePagePictures, takePicture } from "./picture.mjs";
import { safetyTests } from "./safety-tests.mjs";
import { sqlTests } from "./sql-tests.mjs";
import { streamTests } from "./stream-tests.mjs";
import { tableTests } from "./table-tests.mjs";

const argument = (name) => (process.argv[3] === name ? process.argv[4] : undefined);
/** A part of the names of the tests to run. */
const only = argument("--only") ?? process.env.CONSOLE_TESTS ?? "";
const keep = argument("--screenshot");
const pictures = argument("--pictures");
const screenshot = keep ?? join(process.env.STOA_SCRATCH ?? tmpdir(), "console.png");

let [passed, failed] = [0, 0];

async function test(name, body) {
  const began = performance.now();
  try {
    await body();
    passed += 1;
    console.log(`ok      ${name} (${Math.round(performance.now() - began)} ms)`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n${error.stack ?? error}`);
  }
}

async function testAll(tests, opened = open) {
  for (const [name, body] of Object.entries(tests)) {
    await test(name, async () => {
      const page = await opened();
      page.setDefaultTimeout(20_000);
      try {
        await body(page);
        assert.deepEqual(page.offences, []);
      } finally {
        await page.context().close();
      }
    });
  }
}

async function testServer() {
  // First, while the server has seen nothing else.
  if (only === "") await test("makes a picture", async () => {
    const page = await open({}, "#/home");
    await takePicture({ page, file: screenshot, keep: keep !== undefined, url, post });
    await page.context().close();
  });
  if (pictures) {
    await test("makes pictures of pages", async () => {
      const page = await open({}, "#/sql");
      await takePagePictures({ page, dir: pictures, url });
      await page.context().close();
    });
  }
  await prepare();
  const all = Object.entries({
    ...pageTests, ...sqlTests, ...chartTests, ...tableTests, ...safetyTests, ...editorTests, ...accessTests, ...streamTests, ...figuresTests, ...listTests,
    ...firstMinutesTests,
  });
  await testAll(Object.fromEntries(all.filter(([name]) => name.includes(only))));
}

try {
  if (process.argv[3] === "--cluster") await testAll(clusterTests);
  else if (process.argv[3] === "--login") await testAll(loginTests, openPage);
  else await testServer();
} catch (error) {
  failed += 1;
  console.log(`FAILED  preparation\n${error.stack ?? error}`);
} finally {
  await browser.close();
}
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed === 0 ? 0 : 1);
