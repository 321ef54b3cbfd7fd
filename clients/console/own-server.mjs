// Servers that a test starts and ends itself.
//
// Environment: STOA_BIN, the binary.

import { spawn } from "node:child_process";

/** A server of its own with its warehouse in `directory`: `port` 0 takes a free one. */
export async function startServer(directory, port) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("STOA_")));
  const process_ = spawn(process.env.STOA_BIN, ["server", "--warehouse", "warehouse", "--http-port", String(port), "--pg-port", "0", "--flight-port", "0", "--hive-port", "0"], { cwd: directory, env, stdio: ["ignore", "pipe", "ignore"] });
  const line = await new Promise((resolve, reject) => {
    process_.stdout.once("data", (data) => resolve(String(data)));
    process_.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
  const ended = new Promise((resolve) => { process_.once("exit", resolve); });
  return { port: JSON.parse(line).http_port, end: async (signal) => { process_.kill(signal); await ended; } };
}
