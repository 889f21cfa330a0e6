import { afterAll, describe, expect, test } from "bun:test";

import { freePort } from "../../scripts/demo/stores/keep.ts";
import { PASSWORD } from "../support/api.ts";
import { fixture } from "../support/fixture.ts";
import { lacks } from "../support/needs.ts";
import { requestText, sendRaw } from "../support/network/raw-http.ts";
import { until } from "../support/network/receiver.ts";
import { startShipped } from "../support/shipped-proxy.ts";
import { startAttackedApi } from "../support/processes/attacked-api.ts";

/* Requests that Bun's server carries out without their answer (contract 2.7), and what nginx makes of them. */

const hasNginx = !lacks("nginx");
const { api, database, stop, tenants } = await startAttackedApi();
const nginx = fixture(async () => {
  const port = Number(new URL(api.root).port);
  return startShipped("nginx.conf", { port: await freePort(), apis: [port, port], platform: port });
}, hasNginx);

describe("a sign-in is carried out and not answered with 200, with", () => {
  test.each(Object.entries(FORMS))("%s", async (_, { bytes, endsHalf = false, bun }) => {
    const before = await sessions();
    const { statuses, isClosed } = await sendRaw(api.root, bytes, { endsHalf });
    expect(
      statuses,
      "Bun's server answers this in another way now: correct the list of contract 2.7, and this test.",
    ).toEqual([...bun]);
    expect(isClosed).toBe(true);
    await until("it is carried out", async () => (await sessions()) > before);
  });
});

describe.skipIf(!hasNginx)(
  "behind deploy/nginx.conf its answer is as the contract says, with",
  () => {
    test.each(Object.entries(FORMS))(
      "%s",
      async (_, { bytes, endsHalf = false, nginx: statuses }) => {
        const before = await sessions();
        const answers = endsHalf ? {} : { answers: statuses.length };
        expect((await sendRaw(nginx.root, bytes, { endsHalf, ...answers })).statuses).toEqual([
          ...statuses,
        ]);
        await until("it is carried out", async () => (await sessions()) > before);
      },
    );
  },
);

test("an empty line before a request is 400 without a body, and nothing is carried out", async () => {
  const { statuses, text } = await sendRaw(api.root, `\r\n${health}`);
  expect([statuses, text.includes("healthz")]).toEqual([[400], false]);
});

const body = JSON.stringify({ email: tenants.partners[0].owner.email, password: PASSWORD });
const LINE = "POST /api/v1/login HTTP/1.1";
const JSON_TYPE = "Content-Type: application/json\r\n";
const login = requestText(LINE, `${JSON_TYPE}Content-Length: ${body.length}\r\n`, body);
const health = requestText("GET /healthz HTTP/1.1");
const trailed = requestText(
  LINE,
  `${JSON_TYPE}Transfer-Encoding: chunked\r\nTrailer: X\r\n`,
  `${body.length.toString(16)}\r\n${body}\r\n0\r\nX: y\r\n\r\n`,
);
const longHeader = requestText("GET /healthz HTTP/1.1", `X: ${"a".repeat(20_000)}\r\n`);

interface Form {
  readonly bytes: string;
  readonly endsHalf?: boolean;
  /** The statuses that Bun answers in place of 200. */
  readonly bun: readonly number[];
  readonly nginx: readonly number[];
}

const FORMS: Readonly<Record<string, Form>> = {
  "another request behind it, before its answer": {
    bytes: login + health,
    bun: [],
    nginx: [200, 200],
  },
  "a malformed request behind it": {
    bytes: `${login}GARBAGE\r\n\r\n`,
    bun: [400],
    nginx: [200, 400],
  },
  "a request with a too long header behind it": {
    bytes: login + longHeader,
    bun: [431],
    nginx: [200, 400],
  },
  "an empty line behind it": { bytes: `${login}\r\n`, bun: [400], nginx: [200] },
  "trailer fields behind its chunks": { bytes: trailed, bun: [400], nginx: [200] },
  "the end of the client's half of the connection behind it": {
    bytes: login,
    endsHalf: true,
    bun: [],
    nginx: [],
  },
};

async function sessions(): Promise<number> {
  const [row] = await database.db.sql<{ n: number }[]>`select count(*)::int as n from tokens`;
  return row?.n ?? 0;
}

afterAll(stop);
