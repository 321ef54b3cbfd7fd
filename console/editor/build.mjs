// Makes vendor/codemirror.js: CodeMirror 6 in one file, as the browser loads it.
//
//   node build.mjs [--check] [--modules DIR]
//
// `--check` writes nothing and fails if the file is another. DIR holds node_modules; without it, they are beside
// package.json. The versions are pinned there and in package-lock.json.

import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const argument = process.argv.indexOf("--modules");
const home = argument < 0 ? join(here, "..") : process.argv[argument + 1];
const modules = join(home, "node_modules");
const { build } = await import(pathToFileURL(createRequire(join(home, "package.json")).resolve("esbuild")).href);

/** Licences that may be in the file; all of them ask for a notice at most. */
const LICENCES = new Set(["MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0"]);
const OUT = join(here, "../vendor/codemirror.js");
const NOTICE = join(here, "../vendor/codemirror-licences.txt");

/** The console's policy allows no `<style>`; style sheets that a script makes are no such elements. */
const sheets = {
  name: "sheets",
  setup(build) {
    build.onLoad({ filter: /style-mod\.js$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const changed = text.replace("!root.head && root.adoptedStyleSheets", "root.adoptedStyleSheets");
      if (changed === text) throw new Error("style-mod is not as expected");
      return { contents: changed, loader: "js" };
    });
  },
};

const { outputFiles, metafile } = await build({
  entryPoints: [join(here, "entry.js")], bundle: true, format: "esm", minify: true, target: "es2022",
  legalComments: "none", charset: "utf8", write: false, metafile: true, nodePaths: [modules], plugins: [sheets],
  banner: { js: "/* CodeMirror 6, MIT: see codemirror-licences.txt. Made by ../editor/build.mjs. */" },
});

const names = new Set(Object.keys(metafile.inputs).flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []));
const notices = [];
for (const name of [...names].toSorted()) {
  const { version, license } = JSON.parse(await readFile(join(modules, name, "package.json"), "utf8"));
  if (!LICENCES.has(license)) throw new Error(`${name} has the licence ${license}`);
  notices.push(`${name} ${version}\n\n${(await readFile(join(modules, name, "LICENSE"), "utf8")).trim()}\n`);
}
const files = [[OUT, outputFiles[0].text], [NOTICE, notices.join(`\n${"-".repeat(80)}\n\n`)]];
for (const [path, text] of files) {
  if (!process.argv.includes("--check")) await writeFile(path, text);
  else if (text !== (await readFile(path, "utf8"))) throw new Error(`${path} is not what build.mjs makes: run it`);
}
