import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { ConfigError, readConfig, removedSettings } from "../../../src/lib/config.ts";

test("has the production defaults of the specification", () => {
  const config = readConfig(minimal);
  expect(config).toMatchObject({
    port: 3000,
    host: "127.0.0.1",
    serverRoot: "http://127.0.0.1:3000",
    retryDelaysMs: [60_000, 300_000, 1_800_000],
    batchHourMs: 3_600_000,
    lockScheduleS: [60, 120, 240, 480, 900],
    accessTokenTtlS: 86_400,
    refreshTokenTtlS: 2_592_000,
    refreshLeewayS: 10,
    refreshMaxDays: null,
    sessionLimits: { maxHours: null, idleMinutes: null },
    securityMails: false,
    signupCodes: false,
    otpTtlS: 600,
    otpCooldownS: 60,
    deliveryTimeoutMs: 15_000,
    retentionDays: 30,
    rateLimits: true,
    egress: { allowHttp: false, allowedNetworks: [] },
    webhookCa: [],
    webhookProxy: undefined,
  });
});

test("reports all errors at once, without the values", () => {
  try {
    readConfig({ PORT: "x", MASTER_KEY: "c2VjcmV0", RETRY_DELAYS_MS: "1,2" });
    throw new Error("It was accepted.");
  } catch (error) {
    const errors = error instanceof ConfigError ? error.errors : [];
    expect(errors.map((one) => one.split(" ")[0])).toEqual([
      "PORT",
      "DATABASE_URL",
      "REDIS_URL",
      "RETRY_DELAYS_MS",
      "MASTER_KEY",
    ]);
    expect(errors.join()).not.toContain("c2VjcmV0");
  }
});

test("has a server root without a default port", () => {
  expect(readConfig({ ...minimal, PORT: "80" }).serverRoot).toBe("http://127.0.0.1");
  expect(readConfig({ ...minimal, SERVER_ROOT: "https://x.example:443/" }).serverRoot).toBe(
    "https://x.example",
  );
});

test("reads the name and the address that mails come from", () => {
  const from = (text: string) => readConfig({ ...minimal, MAIL_FROM: text }).mailFrom;
  expect(from("")).toEqual({ name: "ReviewRelay", address: "no-reply@localhost" });
  expect(from('"Reviews, Inc." <a@b.example>')).toEqual({
    name: "Reviews, Inc.",
    address: "a@b.example",
  });
  expect(from("a@b.example")).toEqual({ name: "", address: "a@b.example" });
});

test.each([
  [600, 300],
  [1, 1],
])("%d requests per minute allow bursts of %d, and of all sign-ins at once", (perMinute, burst) => {
  const rates = ["TOKEN", "IP", "SIGN_IN"].map((kind) => [
    `RATE_LIMIT_${kind}_PER_MINUTE`,
    `${perMinute}`,
  ]);
  expect(readConfig({ ...minimal, ...Object.fromEntries(rates) }).rateLimit).toEqual({
    user: { perMinute, burst },
    ip: { perMinute, burst },
    signIn: { perMinute, burst: perMinute },
  });
});

test("names removed settings that are still set, and does not read them", () => {
  const removed = {
    LOCK_SCHEDULE_S: "1",
    OTP_TTL_S: "1",
    OTP_COOLDOWN_S: "0",
    RATE_LIMIT_TOKEN_BURST: "1",
    RATE_LIMIT_IP_BURST: "1",
    RATE_LIMIT_SIGN_IN_BURST_FILE: "/nowhere",
    SECURITY_POLICY_URL: "https://a.example",
    SLOW_STATEMENT_MS: "x",
  };
  expect(removedSettings({ ...minimal, ...removed }).toSorted()).toEqual(
    Object.keys(removed).toSorted(),
  );
  expect(removedSettings({ ...minimal, OTP_TTL_S: " " })).toEqual([]);
  expect(readConfig({ ...minimal, ...removed })).toEqual(readConfig(minimal));
});

test("takes an empty setting for an absent one", () => {
  expect(readConfig({ ...minimal, PORT: "", SMTP_URL: " " })).toMatchObject({
    port: 3000,
    smtpUrl: undefined,
  });
});

describe("a setting on either side of its bounds", () => {
  const table: [name: string, good: string[], bad: string[]][] = [
    ["PORT", ["1", "65535"], ["0", "65536", "80.5", "-1", "1e3"]],
    ["RETRY_DELAYS_MS", ["1,1,1", " 200, 400 ,800 "], ["0,1,1", "1,1", "1,1,1,1", "1,,1", "a,b,c"]],
    ["BATCH_HOUR_MS", ["1", "3600000"], ["0", "3600001"]],
    ["REFRESH_LEEWAY_S", ["0", "300"], ["-1", "301"]],
    ["REFRESH_MAX_DAYS", ["", "1", "3650"], ["0", "3651"]],
    ["SESSION_MAX_HOURS", ["", "1", "720"], ["0", "721"]],
    ["SESSION_IDLE_MINUTES", ["", "5", "1440"], ["4", "1441"]],
    ["RATE_LIMITS", ["on", "off"], ["yes"]],
    ["SECURITY_MAILS", ["on", "off"], ["yes"]],
    ["SIGNUP_CODES", ["on", "off"], ["yes"]],
    ["WEBHOOK_ALLOW_HTTP", ["0", "1"], ["true"]],
    ["WEBHOOK_ALLOWED_NETWORKS", ["127.0.0.0/8,::1/128"], ["127.0.0.1/8", "10.0.0.0/33", "local"]],
    ["TRUSTED_PROXIES", ["10.0.0.0/8"], ["10.0.0.0/8,nope"]],
    [
      "CORS_ORIGINS",
      ["https://a.example,http://localhost:5173"],
      ["*", "a.example", "https://a.example/", "https://a.example/x"],
    ],
    [
      "SECURITY_CONTACT",
      ["mailto:security@a.example", "https://a.example/report, tel:+1-201-555-0123"],
      ["security@a.example", "mailto:security", "http://a.example", "mailto:a@b.example,,"],
    ],
    [
      "SSO_RETURN_TO",
      ["https://a.example,http://localhost:5173/in?x=1", "com.example.app:/in"],
      [
        "a.example",
        "javascript:alert(1)",
        "data:,x",
        "https://u@a.example",
        "https://a.example/#x",
      ],
    ],
    [
      "SERVER_ROOT",
      ["https://reviews.example", "http://127.0.0.1:3000/"],
      ["https://reviews.example/api", "reviews.example"],
    ],
    ["DATABASE_URL", ["postgresql://db/x"], ["mysql://db/x", "db"]],
    ["SMTP_URL", ["smtps://mail.example"], ["http://mail.example"]],
    [
      "MAIL_FROM",
      ["no-reply@reviews.example", "Reviews, Inc. <no-reply@reviews.example>"],
      ["Reviews", "a@b, c@d", "Reviews <a@b", "Reviews\n<a@b>", "<a@b> <c@d>", "a@b\nBcc: c@d"],
    ],
    [
      "MASTER_KEY",
      [Buffer.alloc(32).toString("base64")],
      [Buffer.alloc(31).toString("base64"), "%%%"],
    ],
    [
      "MASTER_KEY_PREVIOUS",
      [Buffer.alloc(32).toString("base64")],
      [Buffer.alloc(33).toString("base64")],
    ],
    ["LOG_LEVEL", ["debug", "error"], ["verbose"]],
    ["DRAIN_DELAY_MS", ["0", "60000"], ["60001"]],
    // Attempts are kept for 30 days by default, and the history for longer.
    ["HISTORY_RETENTION_DAYS", ["0", "31"], ["30"]],
  ];
  for (const [name, good, bad] of table) {
    for (const value of good)
      test(`${name}=${value} is accepted`, () =>
        expect(toFieldErrors({ [name]: value })).toEqual([]));
    for (const value of bad)
      test(`${name}=${value} is refused by name`, () => {
        const errors = toFieldErrors({ [name]: value });
        expect(errors).toHaveLength(1);
        expect(errors[0]).toStartWith(name);
      });
  }
});

test("reads the egress proxy, and does not repeat an invalid one", () => {
  expect(readConfig({ ...minimal, WEBHOOK_PROXY_URL: "http://a:b@proxy:3128" })).toMatchObject({
    webhookProxy: { host: "proxy", port: 3128, authorization: "Basic YTpi" },
  });
  expect(toFieldErrors({ WEBHOOK_PROXY_URL: "https://a:pass@proxy" })).toEqual([
    "WEBHOOK_PROXY_URL must be an http URL without a path, such as http://proxy.example:3128.",
  ]);
});

describe("a setting in a file", () => {
  const folder = mkdtempSync(join(tmpdir(), "settings-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const fileOf = (content: string) => {
    const path = join(folder, crypto.randomUUID());
    writeFileSync(path, content);
    return path;
  };

  test.each(["SERVER_ROOT", "SMTP_URL", "PORT", "MASTER_KEY_PREVIOUS", "REDIS_PREFIX"])(
    "%s is read from the file that %s_FILE names",
    (name) => {
      expect(toFieldErrors({ [`${name}_FILE`]: join(folder, "nowhere") })).toEqual([
        `${name} cannot be read from ${name}_FILE (ENOENT).`,
      ]);
    },
  );

  test("names `bun run setup` as the remedy for a missing master key file", () => {
    expect(toFieldErrors({ MASTER_KEY: "", MASTER_KEY_FILE: join(folder, "nowhere") })).toEqual([
      "MASTER_KEY cannot be read from MASTER_KEY_FILE (ENOENT): `bun run setup` writes it, into a folder that is there.",
    ]);
  });

  test("is read without the white space around its content", () => {
    const { MASTER_KEY, ...rest } = minimal;
    const config = readConfig({ ...rest, MASTER_KEY_FILE: fileOf(`  ${MASTER_KEY}\n`) });
    expect(config.masterKey).toEqual(readConfig(minimal).masterKey);
  });

  test("is checked by the same rules, and the error omits the value", () => {
    expect(toFieldErrors({ PORT_FILE: fileOf("70000") })).toEqual([
      "PORT must be a whole number from 1 to 65535.",
    ]);
  });

  test("counts as absent if it is empty", () => {
    expect(readConfig({ ...minimal, PORT_FILE: fileOf("\n") }).port).toBe(3000);
  });

  test("is rejected if the setting itself is present too", () => {
    expect(toFieldErrors({ PORT: "4000", PORT_FILE: fileOf("4000") })).toEqual([
      "PORT and PORT_FILE are both set: leave one of them out.",
    ]);
  });
});

describe.each(["HOST", "METRICS_HOST"])("%s", (name) => {
  test.each(["0.0.0.0", "::", "[::1]", "fe80::1%eth0", "localhost", "api_1.internal"])(
    "may be %s",
    (host) => {
      const root = { SERVER_ROOT: "https://reviews.example" };
      expect(toFieldErrors({ ...root, [name]: host })).toEqual([]);
    },
  );

  test.each(["999.1.1.1", "zz zz", "http://localhost", "localhost:3000", "::zz"])(
    "is named where it is %s, and nothing else",
    (host) => {
      expect(toFieldErrors({ [name]: host })).toEqual([
        `${name} must be an address of this machine, or a name of it.`,
      ]);
    },
  );
});

const minimal = {
  DATABASE_URL: "postgres://localhost/reviewrelay",
  REDIS_URL: "redis://localhost",
  MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
};

function toFieldErrors(env: Record<string, string>): readonly string[] {
  try {
    readConfig({ ...minimal, ...env });
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.errors;
    throw error;
  }
}
