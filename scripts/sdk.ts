// Writes the generated files of the packages in `src/sdk` from the baseline of the OpenAPI document. Run it after a
// change of the API, when OPENAPI_BASELINE=write has written tests/golden/openapi-baseline.json:
//
//   bun run sdk
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { readPartnerApi } from "../src/docs/reference/operations.ts";
import { writePython } from "./sdk/python.ts";
import { writeTypescript } from "./sdk/typescript.ts";

const ROOT = join(import.meta.dir, "..");

/** Returns the generated files by their paths below the root of the project. */
export function generatedFiles(document: Readonly<Record<string, unknown>>): Map<string, string> {
  const api = readPartnerApi(document);
  return new Map([
    ["src/sdk/typescript/src/generated.ts", writeTypescript(api)],
    ["src/sdk/python/reviewrelay/_generated.py", writePython(api)],
  ]);
}

if (import.meta.main) {
  const baseline = readFileSync(join(ROOT, "tests/golden/openapi-baseline.json"), "utf8");
  for (const [path, text] of generatedFiles(JSON.parse(baseline)))
    writeFileSync(join(ROOT, path), text);
}
