// The one connection by which a window stays up to date (`/v1/live`): what it costs under load, that nothing else is asked
// for, and that it survives the server.
//
// Environment: STOA_BIN, a server's binary; STOA_WAREHOUSE and STOA_PG_PORT of the server that is tested.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { go, openPage, post, until, url } from "./harness.mjs";
import { startServer } from "./own-server.mjs";

/** What an open page may receive. */
const BYTES_PER_S = 10_000;
const PAGES = ["Home", "SQL", "Tables", "Queries", "Shapes"];
/** What opening a page may take of a browser that knows nothing yet: requests, and bytes as they are sent. */
const FIRST = { Home: [80, 260_000], SQL: [82, 420_000], Tables: [80, 260_000], Queries: [80, 260_000] };

/** Counts what a page asks for, and what comes. */
async function watched(page) {
  const seen = { requests: [], bytes: 0 };
  const client = await page.context().newCDPSession(page);
  await client.send("Network.enable");
  client.on("Network.requestWillBeSent", ({ request }) => seen.requests.push(new URL(request.url).pathname));
  client.on("Network.loadingFinished", ({ encodedDataLength }) => { seen.bytes += encodedDataLength; });
  return seen;
}

/** The server as seen through a socket that counts what comes from it, headers and all. */
async function counted() {
  const counter = { bytes: 0, url: "", close: () => {} };
  const sockets = new Set();
  const server = createServer((client) => {
    const upstream = connect(Number(new URL(url).port), "127.0.0.1");
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => { sockets.delete(socket); client.destroy(); upstream.destroy(); });
    }
    upstream.on("data", (data) => { counter.bytes += data.length; });
    client.pipe(upstream).pipe(client);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  counter.url = `http://127.0.0.1:${server.address().port}/`;
  counter.close = () => { server.close(); sockets.forEach((socket) => socket.destroy()); };
  return counter;
}

/** Statements of a few shapes with ever new literals, over HTTP and, with `stoa bench`, thousands of reports a second. */
function load() {
  const stop = new AbortController();
  const one = async (shape) => {
    for (let n = 0; !stop.signal.aborted; n += 1) await fetch(new URL("v1/sql", url), { method: "POST", body: `SELECT ${n} AS load_${shape}, '${"x".repeat(n % 300)}' AS words` });
  };
  const loads = [one(1), one(2), one(3)];
  const { STOA_BIN: bin, STOA_WAREHOUSE: warehouse, STOA_PG_PORT: port } = process.env;
  const run = (...options) => spawn(bin, ["bench", ...options, "--rows", "20000", "--log-level", "error"], { stdio: "ignore" });
  const reports = (async () => {
    const made = run("generate", "--warehouse", warehouse, "--recreate");
    await new Promise((resolve) => { made.once("exit", resolve); });
    const reporting = run("report", "--url", url.replace(/\/$/, ""), "--port", port, "--clients", "2", "--mode", "simple", "--duration", "600s");
    const ended = new Promise((resolve) => { reporting.once("exit", resolve); });
    stop.signal.addEventListener("abort", () => reporting.kill());
    if (stop.signal.aborted) reporting.kill();
    await ended;
  })();
  return async () => {
    stop.abort();
    await Promise.all([...loads, reports]);
    await post("DROP TABLE IF EXISTS ad_report");
  };
}

const perSecond = async () => (await (await fetch(new URL("v1/status", url))).json()).rate.per_second;

export const streamTests = {
  async "a page is kept up to date by one connection, and asks for nothing else"(page) {
    await until("the connection is there", () => page.evaluate(() => document.querySelector("#state").textContent === "ready"));
    for (const title of PAGES) {
      await go(page, title);
      await page.waitForTimeout(700);
      const asked = [];
      const note = (request) => asked.push(new URL(request.url()).pathname);
      page.on("request", note);
      const before = await page.locator("header").first().innerText();
      // The uptime goes on.
      await until("the page is up to date", async () => (await page.locator("header").first().innerText()) !== before);
      await page.waitForTimeout(2500);
      page.off("request", note);
      assert.deepEqual(asked, [], `${title} asks by itself`);
    }
  },

  async "something is painted before any script has run"() {
    const page = await openPage();
    // Scripts never come.
    await page.route(/\/js\/(?!theme-boot).*\.js$/, () => {});
    await page.goto(`${url}#/home`, { waitUntil: "commit" });
    await page.getByRole("heading", { name: "Stoa" }).waitFor();
    await until("it is painted", () => page.evaluate(() => performance.getEntriesByName("first-contentful-paint").length > 0));
    assert.deepEqual(await page.getByRole("navigation", { name: "Pages" }).getByRole("link").allInnerTexts(), PAGES);
    await page.context().close();
  },

  async "opening a page takes few requests and bytes, and once more nearly none"() {
    for (const [title, [requests, bytes]] of Object.entries(FIRST)) {
      const page = await openPage();
      const seen = await watched(page);
      const address = `${url}#/${title.toLowerCase()}`;
      await page.goto(address);
      await page.getByText("ready", { exact: true }).waitFor();
      if (title === "SQL") await page.locator("#sql").waitFor();
      await page.waitForLoadState("load");
      console.log(`        ${title}: ${seen.requests.length} requests, ${Math.round(seen.bytes / 1000)} KB`);
      assert.ok(seen.requests.length <= requests, `${title}: ${seen.requests.length} requests`);
      // Files that a test puts into their place come uncompressed.
      if (!process.env.CONSOLE_DIR) assert.ok(seen.bytes > 1000 && seen.bytes <= bytes, `${title}: ${seen.bytes} bytes`);
      assert.deepEqual(seen.requests.filter((path, index) => seen.requests.indexOf(path) !== index), [], "nothing is asked for twice");
      const scripts = seen.requests.filter((path) => path.startsWith("/a/") && path.endsWith(".js"));
      assert.ok(scripts.length > 30, "modules are named by their version");
      if (!process.env.CONSOLE_DIR) {
        Object.assign(seen, { requests: [], bytes: 0 });
        await page.reload();
        await page.getByText("ready", { exact: true }).waitFor();
        assert.ok(seen.bytes <= 60_000, `${title} again: ${seen.bytes} bytes`);
      }
      await page.context().close();
    }
  },

  async "an open page costs at most 10 KB/s, however busy the server is"() {
    const stop = load();
    const counter = await counted();
    const page = await openPage();
    try {
      await page.goto(`${counter.url}#/home`);
      await page.getByText("ready", { exact: true }).waitFor();
      // Thousands, of a release build; a page receives the same of hundreds.
      await until("the server is busy", async () => (await perSecond()) > 100);
      for (const title of PAGES) {
        await go(page, title);
        await page.waitForTimeout(2500);
        const [before, began] = [counter.bytes, performance.now()];
        await page.waitForTimeout(6000);
        const each = (counter.bytes - before) / ((performance.now() - began) / 1000);
        console.log(`        ${title}: ${(each / 1000).toFixed(1)} KB/s at ${Math.round(await perSecond())} statements per second`);
        assert.ok(each > 50, "it is kept up to date");
        assert.ok(each <= BYTES_PER_S, `${title}: ${each} bytes per second`);
      }
    } finally {
      await page.context().close();
      counter.close();
      await stop();
    }
  },

  async "what is typed elsewhere is here within seconds"(page) {
    await go(page, "Queries");
    await page.getByRole("button", { name: "Latest" }).click();
    const mark = `elsewhere${Date.now()}`;
    await post(`SELECT 1 AS ${mark}`);
    await page.getByRole("grid", { name: "Ended queries" }).locator("tbody tr", { hasText: mark }).waitFor({ timeout: 5000 });
    await go(page, "SQL");
    await post(`CREATE TABLE ${mark} (n bigint)`);
    await page.locator(".table-name", { hasText: mark }).waitFor();
    await post(`DROP TABLE ${mark}`);
    await until("it is gone", async () => (await page.locator(".table-name", { hasText: mark }).count()) === 0);
  },

  async "goes on by itself after the server was killed, and after it was restarted"() {
    const directory = await mkdtemp(join(tmpdir(), "stoa-stream."));
    let running = await startServer(directory, 0);
    const { port } = running;
    const page = await openPage();
    try {
      await page.goto(`http://127.0.0.1:${port}/#/home`);
      const ready = page.getByText("ready", { exact: true });
      await ready.waitFor();
      for (const signal of ["SIGTERM", "SIGKILL"]) {
        await running.end(signal);
        await page.getByText(/no connection · last answer/).waitFor();
        running = await startServer(directory, port);
        await ready.waitFor();
        const mark = `after_${signal}`;
        const made = await fetch(`http://127.0.0.1:${port}/v1/sql`, { method: "POST", body: `CREATE TABLE ${mark} (n bigint)` });
        assert.ok(made.ok);
        await go(page, "Tables");
        await page.getByRole("grid", { name: "Tables" }).locator("tbody tr", { hasText: mark.toLowerCase() }).waitFor();
        await go(page, "Home");
      }
    } finally {
      await page.context().close();
      await running.end("SIGKILL");
      await rm(directory, { recursive: true });
    }
  },
};
