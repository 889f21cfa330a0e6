import { readFileSync } from "node:fs";
import { join } from "node:path";

const file: { version: string } = JSON.parse(
  readFileSync(join(import.meta.dir, "../../package.json"), "utf8"),
);

/** Of the product. */
export const VERSION = file.version;
