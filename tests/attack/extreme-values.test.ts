import { beforeAll, expect, test } from "bun:test";

import { operationsIn, type DescribedParameter } from "../hostile/description.ts";
import { addService, startWebhooks } from "../support/webhooks.ts";
import { fixture } from "../support/fixture.ts";

/* Values that pass the schema but may break the code or SQL behind it, in every query parameter of every GET route. */
const world = fixture(startWebhooks);

test("no value of a query parameter causes a 500, for any kind of user", async () => {
  let asked = 0;
  const refused: Refused = new Set();
  for (const { path, parameters } of reads())
    for (const { name, schema } of parameters)
      for (const value of EXTREMES[schema.format ?? ""] ??
        EXTREMES[schema.type ?? ""] ??
        EXTREMES["string"] ??
        [])
        for (const who of ["owner", "account", "root"] as const) {
          if (refused.has(`GET ${path} ${who}`)) continue;
          const filled = path
            .replace("/partner/webhooks/{id}", `/partner/webhooks/${id}`)
            .replaceAll(/\{\w+\}/g, "1");
          const { status, text } = await world.api.call(
            "GET",
            `${filled}?${name}=${encodeURIComponent(value.toWellFormed())}`,
            { token: world.tokens[who] },
          );
          expect([path, name, value, status < 500 || text]).toEqual([path, name, value, true]);
          if (status === 403) refused.add(`GET ${path} ${who}`);
          asked += 1;
        }
  expect(asked).toBeGreaterThan(500);
  expect(world.api.lines.filter((line) => line.includes("request.failed"))).toEqual([]);
});

test("no id in a path causes a 500, for any kind of user", async () => {
  const paths = Object.keys(description["paths"] ?? {}).filter(
    (path) => path.startsWith(BASE) && path.includes("{"),
  );
  expect(paths.length).toBeGreaterThan(20);
  const refused: Refused = new Set();
  const forms = formsOfIds();
  const tried = new Set<string>();
  for (const path of paths) {
    // One code reads all ids of a form, so that the first path of each form takes all values.
    const form = forms.get(path);
    const isFirst = form !== undefined && !tried.has(form);
    if (form !== undefined) tried.add(form);
    const values = [...(EXTREMES["integer"] ?? []), ...(EXTREMES["string"] ?? [])];
    for (const value of isFirst ? values : FEW)
      for (const who of ["owner", "account", "root"] as const) {
        const segment = value === "" ? "%20" : encodeURIComponent(value.toWellFormed());
        for (const method of ["GET", "DELETE", "PATCH", "POST"]) {
          if (refused.has(`${method} ${path} ${who}`)) continue;
          const filled = withRecords(path).replaceAll(/\{\w+\}/g, segment);
          // The code of all methods reads the id alike, so that others than GET take a few. None is that of a record.
          if (method !== "GET" && !FEW.has(value)) continue;
          const body = method === "GET" ? {} : { body: bodyOf(path) };
          const { status, text } = await world.api.call(method, filled, {
            token: world.tokens[who],
            ...body,
          });
          expect([method, path, value, status < 500 || text]).toEqual([method, path, value, true]);
          if (status === 403 || status === 405) refused.add(`${method} ${path} ${who}`);
        }
      }
  }
  expect(world.api.lines.filter((line) => line.includes("request.failed"))).toEqual([]);
});

/** Returns the schemas of the ids in the path of each GET route. */
function formsOfIds(): Map<string, string> {
  return new Map(
    operationsIn(description).flatMap(({ method, path, parameters }) => {
      const ids = parameters.filter((one) => one.in === "path").map(({ schema }) => schema);
      return method === "GET" ? [[path, JSON.stringify(ids)] as const] : [];
    }),
  );
}

/** Fills the id of a record in front of a second id, which is looked up only after the first. */
function withRecords(path: string): string {
  return path
    .slice(BASE.length)
    .replace("/partner/webhooks/{id}/deliveries/", `/partner/webhooks/${id}/deliveries/`)
    .replace("/admin/services/{id}/tokens/", `/admin/services/${service}/tokens/`);
}

/** An id is looked up only with a valid body. */
const bodyOf = (path: string) =>
  path.startsWith(`${BASE}/embed/`) ? { code: "x".repeat(32) } : {};

/**
 * The method, path and user of requests that were answered 403 or 405. These answers precede the checks of values, so the
 * user sends no further value there.
 */
type Refused = Set<string>;

const FEW: ReadonlySet<string> = new Set(["\0", "-1", "9007199254740991", "a".repeat(5_000)]);

const EXTREMES: Readonly<Record<string, readonly string[]>> = {
  "date-time": [
    "0000-01-01T00:00:00Z",
    "0000-01-01T00:00:00+23:59",
    "0001-01-01T00:00:00Z",
    "1969-12-31T23:59:59.999999999Z",
    "9999-12-31T23:59:59.999999999Z",
    "9999-12-31T23:59:59-23:59",
  ],
  integer: [
    "0",
    "-1",
    "1",
    "300",
    "86400",
    "2147483647",
    "2147483648",
    "9007199254740991",
    "999999999999999",
  ],
  string: [
    "",
    "\0",
    "\ud800",
    "%",
    "_",
    "'",
    "\\",
    "0",
    "-1",
    "null",
    "😀",
    "a".repeat(5_000),
    "01JWNB9PR0ZV8X2D3F4G5H6J7K",
    "7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
    "2147483648",
    "*",
  ],
};

let id = "";
let service = 0;

let description: Record<string, unknown>;

beforeAll(async () => {
  id = (await world.subscribe()).id;
  await world.emit(1);
  service = (await addService(world)).id;
  description = (await world.api.call("GET", "/openapi.json", { root: true })).body;
});

const BASE = "/api/v1";

/** Lists the GET routes below the base with their query parameters. */
function reads(): { path: string; parameters: readonly DescribedParameter[] }[] {
  return operationsIn(description)
    .filter(({ method, path }) => method === "GET" && path.startsWith(BASE))
    .map(({ path, parameters }) => ({
      path: path.slice(BASE.length),
      parameters: parameters.filter((one) => one.in === "query"),
    }));
}
