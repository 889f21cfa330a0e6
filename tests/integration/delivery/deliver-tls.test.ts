import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type Socket } from "node:net";
import {
  createSecureContext,
  getCACertificates,
  setDefaultCACertificates,
  type TlsOptions,
} from "node:tls";
import { Connection } from "../../../dispatcher/http/connection.ts";
import { codeOf, MAX_DETAIL_CHARS } from "../../../dispatcher/http/failure.ts";
import type { HttpClientOptions } from "../../../dispatcher/http/pool.ts";
import { ConfigError, readConfig } from "../../../src/lib/config.ts";
import { parseProxyUrl } from "../../../src/lib/egress-proxy.ts";
import { checkWebhookUrl } from "../../../src/lib/egress.ts";
import type { TlsReason } from "../../../src/outbox/tls-reason.ts";
import {
  CA,
  EXPIRED,
  HOOK_TEST,
  LOOPBACK_ADDRESSES,
  MANY_NAMES,
  SELF_SIGNED,
} from "../../support/network/certificates.ts";
import {
  directDeliveries,
  giving,
  LOOPBACK,
  message,
  OK,
} from "../../support/network/direct-deliveries.ts";
import { until } from "../../support/network/receiver.ts";
import { listen, type RawAnswer } from "../../support/network/raw-receiver.ts";
import {
  LEAF_ALONE,
  ROOT,
  serverOf,
  TOO_EARLY,
  VALID_CHAIN,
  WORTHLESS,
} from "../../support/network/worthless-certificates.ts";

const given = directDeliveries({ ca: [CA], lookup: giving("127.0.0.1") });

describe("a certificate", () => {
  test.each([
    ["that expired", EXPIRED, "CERT_HAS_EXPIRED: certificate has expired"],
    ["signed by itself", SELF_SIGNED, "DEPTH_ZERO_SELF_SIGNED_CERT: "],
    ["for addresses alone", LOOPBACK_ADDRESSES, "ERR_TLS_CERT_ALTNAME_INVALID: "],
    ["for other names", MANY_NAMES, "ERR_TLS_CERT_ALTNAME_INVALID: "],
  ])("%s fails as tls with its reason, and nothing is sent", async (_, tls, detail) => {
    for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
      const receiver = await receive({ tls: { ...tls, maxVersion } });
      const deliver = start();
      // The second delivery must fail as well, although a session of the first handshake might be stored.
      for (let nth = 0; nth < 2; nth++) {
        const outcome = await deliver(message(`https://hook.test:${receiver.port}/`));
        expect(outcome).toMatchObject({ kind: "failed", errorCode: "tls" });
        if (outcome.kind === "failed") expect(outcome.detail).toStartWith(detail);
      }
      expect(receiver.requests).toEqual([]);
    }
  });

  test.each(Object.entries(WORTHLESS))("%s fails as tls, and nothing is sent", async (_, cert) => {
    const receiver = await receive({ tls: serverOf(cert) });
    const outcome = await start({ ca: [ROOT] })(message(`https://hook.test:${receiver.port}/`));
    expect(outcome).toMatchObject({ kind: "failed", errorCode: "tls" });
    expect(receiver.requests).toEqual([]);
  });

  test("with its whole chain is accepted", async () => {
    const receiver = await receive({ tls: serverOf(VALID_CHAIN) });
    const outcome = await start({ ca: [ROOT] })(message(`https://hook.test:${receiver.port}/`));
    expect(outcome).toMatchObject({ kind: "accepted" });
  });

  test("of an untrusted authority fails as tls with its reason", async () => {
    const receiver = await receive({ tls: HOOK_TEST });
    const outcome = await start({ ca: [] })(message(`https://hook.test:${receiver.port}/`));
    expect(outcome).toMatchObject({
      errorCode: "tls",
      detail: "UNABLE_TO_VERIFY_LEAF_SIGNATURE: unable to verify the first certificate",
    });
  });

  test(`with a long list of names leaves ${MAX_DETAIL_CHARS} characters of it in the detail`, async () => {
    const receiver = await receive({ tls: MANY_NAMES });
    const outcome = await start()(message(`https://hook.test:${receiver.port}/`));
    if (outcome.kind !== "failed") throw new Error("accepted");
    expect(outcome.detail).toHaveLength(MAX_DETAIL_CHARS);
    expect(outcome.detail).toContain("name-01.example");
  });

  test("for an address is accepted for a URL with that address, IPv4 or IPv6, without a server name", async () => {
    for (const address of ["127.0.0.1", "::1"]) {
      const receiver = await receive({ address, tls: LOOPBACK_ADDRESSES });
      expect(await start()(message(receiver.url))).toMatchObject({ kind: "accepted" });
      expect(receiver.serverNames).toEqual([false]);
      const host = address === "::1" ? "[::1]" : address;
      expect(receiver.requests[0]).toContain(`\r\nHost: ${host}:${receiver.port}\r\n`);
      const named = await receive({ address, tls: HOOK_TEST });
      expect(await start()(message(named.url))).toMatchObject({ errorCode: "tls" });
    }
  });

  test("cannot contain every name, and a URL with such a name fails and does not throw", async () => {
    const receiver = await receive({ tls: HOOK_TEST });
    for (const name of ["under_score.test", "-.test", "1a"])
      expect(await start()(message(`https://${name}:${receiver.port}/`))).toMatchObject({
        kind: "failed",
      });
  });

  test("for a name is requested by that server name, for any address", async () => {
    const receiver = await receive({ address: "::1", tls: HOOK_TEST });
    const deliver = start({ lookup: async () => ["127.0.0.1", "::1"] });
    expect(await deliver(message(`https://HOOK.test.:${receiver.port}/`))).toMatchObject({
      kind: "accepted",
    });
    expect(receiver.serverNames).toEqual(["hook.test"]);
    expect(receiver.requests[0]).toContain(`\r\nHost: hook.test:${receiver.port}\r\n`);
  });
});

/** A TLS alert handshake_failure. */
const ALERT = Buffer.from([0x15, 3, 3, 0, 2, 2, 40]);

describe("the reason of a failure", () => {
  const whole = serverOf(VALID_CHAIN);
  const noAuthority = WORTHLESS["signed by a certificate that is no authority"] ?? "";
  const REASONS: readonly (readonly [TlsReason, string, TlsOptions, readonly string[]])[] = [
    ["expired", "an expired certificate", EXPIRED, [CA]],
    ["not_yet_valid", "a certificate of tomorrow", serverOf(TOO_EARLY), [ROOT]],
    ["wrong_name", "the certificate of another host", LOOPBACK_ADDRESSES, [CA]],
    ["self_signed", "a self-signed certificate", SELF_SIGNED, []],
    ["chain_incomplete", "a certificate without its intermediate", serverOf(LEAF_ALONE), [ROOT]],
    ["chain_incomplete", "a lone certificate of a private authority", HOOK_TEST, []],
    ["unknown_issuer", "a chain of an unknown root", whole, [CA]],
    ["unknown_issuer", "a chain with its unknown root", serverOf(`${VALID_CHAIN}\n${ROOT}`), [CA]],
    ["invalid_certificate", "a signer that is no authority", serverOf(noAuthority), [ROOT]],
    ["handshake", "TLS 1.1", { ...whole, minVersion: "TLSv1", maxVersion: "TLSv1.1" }, [ROOT]],
    ["handshake", "no common cipher", { ...whole, maxVersion: "TLSv1.2", ciphers: RSA }, [ROOT]],
    ["handshake", "a required client certificate", { ...whole, requestCert: true }, [ROOT]],
  ];

  test.each(REASONS)("is %s for %s, directly and through a proxy", async (reason, _, tls, ca) => {
    const receiver = await receive({ tls });
    for (const options of [{ ca }, { ca, proxy: await proxied() }])
      expect(await start(options)(message(`https://hook.test:${receiver.port}/`))).toMatchObject({
        kind: "failed",
        errorCode: "tls",
        tlsReason: reason,
      });
  });

  test.each<[string, (socket: Socket) => void]>([
    ["is closed", (socket) => void socket.end()],
    ["is reset", (socket) => void socket.resetAndDestroy()],
    ["is answered with an alert", (socket) => void socket.write(ALERT)],
    ["is answered in plain HTTP", (socket) => void socket.write(OK)],
  ])("is handshake if it %s, directly and through a proxy", async (_, answer) => {
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => answer(socket));
    });
    const port = await listen(server);
    given.atEnd(() => server.close());
    for (const options of [{}, { proxy: await proxied() }])
      expect(await start(options)(message(`https://hook.test:${port}/`))).toMatchObject({
        errorCode: "tls",
        tlsReason: "handshake",
      });
  });

  test("is absent from every other failure", async () => {
    const receiver = await receive({}, (socket) => socket.destroy());
    const outcome = await start()(message(`http://hook.test:${receiver.port}/`));
    expect(outcome).toMatchObject({ kind: "failed", errorCode: "reset" });
    expect(outcome).toHaveProperty("tlsReason", undefined);
  });
});

describe("a handshake", () => {
  /** The header of a handshake record of a given length. */
  const record = (length: number) => Buffer.from([0x16, 3, 3, length >> 8, length & 255]);
  const drip = (socket: Socket) => {
    const timer = setInterval(() => socket.write(record(16_384).subarray(0, 1)), 20);
    socket.on("close", () => clearInterval(timer));
  };

  test.each<[string, (socket: Socket) => void, number]>([
    ["never begins", () => {}, HASTY_MS],
    ["drips", drip, HASTY_MS],
    ["stops in a record", (socket) => void socket.write(record(9_000)), HASTY_MS],
    ["is a record that is too long", (socket) => void socket.write(record(65_535)), PATIENT_MS],
    ["is zeros", (socket) => void socket.write(Buffer.alloc(100_000)), PATIENT_MS],
  ])("that %s fails, sends nothing secret and is closed", async (_, answer, timeoutMs) => {
    const sockets = new Set<Socket>();
    let heard = "";
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => sockets.delete(socket));
      socket.on("data", (chunk: Buffer) => (heard += chunk.toString("latin1")));
      socket.once("data", () => answer(socket));
    });
    const port = await listen(server);
    given.atEnd(() => server.close());
    const secret = { ...message(`https://hook.test:${port}/`), body: "a secret" };
    const outcome = await start({ timeoutMs })(secret);
    expect(["tls", "timeout", "reset", "connect"]).toContain(
      outcome.kind === "failed" ? outcome.errorCode : outcome.kind,
    );
    expect(heard).not.toContain("secret");
    expect(heard.length).toBeGreaterThan(0);
    await until("the connection is closed", () => sockets.size === 0);
  });
});

describe("WEBHOOK_CA_FILE", () => {
  test("names a file of trusted certificates, which may contain other text", async () => {
    const path = fileOf("ca.pem", `Our authorities\n\n${SELF_SIGNED.cert}\n# second\n${CA}\n`);
    const ca = configOf(path).webhookCa;
    expect(ca).toEqual([SELF_SIGNED.cert, CA]);
    const deliver = start({ ca });
    for (const tls of [HOOK_TEST, SELF_SIGNED]) {
      const receiver = await receive({ tls });
      expect(await deliver(message(`https://hook.test:${receiver.port}/`))).toMatchObject({
        kind: "accepted",
      });
    }
  });

  test("is trusted in addition to the certificates of the platform", async () => {
    const own = getCACertificates("default");
    given.atEnd(() => setDefaultCACertificates(own));
    setDefaultCACertificates([...own, CA]);
    const receiver = await receive({ tls: HOOK_TEST });
    for (const ca of [[], [SELF_SIGNED.cert]])
      expect(await start({ ca })(message(`https://hook.test:${receiver.port}/`))).toMatchObject({
        kind: "accepted",
      });
  });

  test("is a configuration error if the file has no readable certificate", () => {
    expect(toFieldErrors("")).toEqual([]);
    expect(toFieldErrors(join(folder, "missing.pem"))).toEqual([
      "WEBHOOK_CA_FILE names a file that cannot be read (ENOENT).",
    ]);
    expect(toFieldErrors(folder)).toEqual([
      "WEBHOOK_CA_FILE names a file that cannot be read (EISDIR).",
    ]);
    for (const text of ["", "nonsense", HOOK_TEST.key])
      expect(toFieldErrors(fileOf("none.pem", text))).toEqual([
        "WEBHOOK_CA_FILE names a file without a certificate in PEM form.",
      ]);
    const broken = CA.replace("MII", "AAA");
    expect(toFieldErrors(fileOf("broken.pem", `${HOOK_TEST.cert}\n${broken}`))).toEqual([
      "WEBHOOK_CA_FILE names a file whose certificate 2 of 2 cannot be read.",
    ]);
  });
});

describe("a new connection to the same origin", () => {
  test("resumes the previous session, and connections to other origins do not", async () => {
    const receiver = await receive({ tls: HOOK_TEST }, OK_AND_CLOSE);
    const deliver = start();
    for (let nth = 0; nth < 3; nth++)
      expect(await deliver(message(`https://hook.test:${receiver.port}/`))).toMatchObject({
        kind: "accepted",
      });
    expect(receiver.resumed).toEqual([false, true, true]);
    await start()(message(`https://hook.test:${receiver.port}/`));
    expect(receiver.resumed.at(-1)).toBe(false);
  });

  test.each(["TLSv1.2", "TLSv1.3"] as const)(
    "is asked for its name again where it resumes a session of %s",
    async (maxVersion) => {
      const receiver = await receive({ tls: { ...HOOK_TEST, maxVersion } }, OK_AND_CLOSE);
      const sessions = new Map<string, Buffer>();
      const context = createSecureContext({ ca: [CA] });
      const open = (host: string) => {
        const origin = `https://${host}:${receiver.port}`;
        const checked = checkWebhookUrl(`${origin}/`, LOOPBACK);
        if (checked.kind === "refused") throw new Error(checked.reason);
        const { target } = checked;
        const route = { address: "127.0.0.1", target, context, sessions, proxy: undefined };
        const { promise, resolve } = Promise.withResolvers<string>();
        const connection = new Connection(
          route,
          {
            connectionReady: (ready) => ready.write(`POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n`),
            connectionData: () => resolve(""),
            connectionClosed: (_, error) => resolve(codeOf(error)),
          },
          () => {},
        );
        given.atEnd(() => connection.destroy());
        return promise;
      };
      expect(await open("hook.test")).toBe("");
      const session = sessions.get(`https://hook.test:${receiver.port}`);
      if (session === undefined) throw new Error("There is no session.");
      // The session is valid at this server, but its certificate does not have the name.
      const other = `https://other.test:${receiver.port}`;
      sessions.set(other, session);
      expect(await open("other.test")).toBe("ERR_TLS_CERT_ALTNAME_INVALID");
      expect(sessions.get(other)).toBe(session);
      // The same session is resumed for the name of the certificate.
      expect(await open("hook.test")).toBe("");
      expect(receiver.resumed.at(-1)).toBe(true);
      expect(receiver.requests).toHaveLength(2);
    },
  );

  test("is verified again if the receiver no longer knows the session", async () => {
    const before = await receive({ tls: HOOK_TEST }, OK_AND_CLOSE);
    const { port } = before;
    const deliver = start();
    const url = `https://hook.test:${port}/`;
    expect(await deliver(message(url))).toMatchObject({ kind: "accepted" });
    before.stop();
    const renewed = await receive({ tls: HOOK_TEST, port }, OK_AND_CLOSE);
    expect(await deliver(message(url))).toMatchObject({ kind: "accepted" });
    expect(renewed.resumed).toEqual([false]);
    renewed.stop();
    const expired = await receive({ tls: EXPIRED, port });
    expect(await deliver(message(url))).toMatchObject({ errorCode: "tls" });
    expect(expired.requests).toEqual([]);
  });
});

/** A response that closes the connection, so that the next delivery needs a new one. */
const OK_AND_CLOSE = OK.replace("\r\n", "\r\nConnection: close\r\n");

/** A cipher suite for servers with RSA keys. */
const RSA = "AES128-SHA";

/** The deadlines of handshakes that end only by one, and of the others. */
const HASTY_MS = 200;
const PATIENT_MS = 30_000;

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "deliver-tls-"));
});

afterAll(() => rmSync(folder, { recursive: true }));

const start = (options?: Partial<HttpClientOptions>) => given.start(options).deliver;

const receive = (options: Parameters<typeof given.receive>[1], answer?: RawAnswer) =>
  given.receive(answer, options);

const proxied = async () => parseProxyUrl(`http://127.0.0.1:${(await given.proxied()).port}`);

function fileOf(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

function configOf(caFile: string) {
  return readConfig({
    DATABASE_URL: "postgres://unused.invalid/test",
    REDIS_URL: "redis://unused.invalid",
    MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
    WEBHOOK_CA_FILE: caFile,
  });
}

function toFieldErrors(caFile: string): readonly string[] {
  try {
    configOf(caFile);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.errors;
    throw error;
  }
}
