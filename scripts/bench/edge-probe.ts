// Measures another client's requests repeatedly, in a separate process, so that the attack's own load does not delay
// it.
import { bytesOf, LoadConnection } from "./http-load.ts";

/**
 * The path of this file, which is also a program: given the root and the seconds, it prints the durations in ms as
 * JSON.
 */
export const EDGE_PROBE = import.meta.path;

const PROBE_EVERY_MS = 5;

if (import.meta.main) {
  const [root = "", seconds = "0"] = process.argv.slice(2);
  const connection = await LoadConnection.open(root);
  const bytes = bytesOf({ method: "GET", path: "/healthz" });
  const times: number[] = [];
  const endsAt = performance.now() + Number(seconds) * 1000;
  while (performance.now() < endsAt) {
    const before = performance.now();
    await connection.send(bytes);
    times.push(performance.now() - before);
    await Bun.sleep(PROBE_EVERY_MS);
  }
  connection.close();
  console.log(JSON.stringify(times));
}
