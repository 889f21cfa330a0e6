import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { generatedFiles } from "../../../scripts/sdk.ts";
import { CATALOG, TEST_EVENT } from "../../../src/outbox/event.ts";
import { startWebhooks } from "../../support/webhooks.ts";
import { fixture } from "../../support/fixture.ts";

const ROOT = join(import.meta.dir, "../../..");
const world = fixture(startWebhooks);

test("the packages have the types and operations of the served document (else write the baseline and run scripts/sdk.ts)", async () => {
  const { text } = await world.api.call("GET", "/openapi.json", { root: true });
  for (const [path, written] of generatedFiles(JSON.parse(text)))
    expect([path, readFileSync(join(ROOT, path), "utf8") === written]).toEqual([path, true]);
});

test.each(["go/events.go", "php/src/EventName.php"])(
  "src/sdk/%s has every event of the catalog and no other",
  (path) => {
    const source = readFileSync(join(ROOT, "src/sdk", path), "utf8");
    const named = [...source.matchAll(/(?:case )?\w+ += ["'](\S+)["']/g)].map(([, name]) => name);
    const events = new Set<string>([...CATALOG.map(({ value }) => value), TEST_EVENT]);
    expect(named.toSorted()).toEqual([...events].toSorted());
  },
);
