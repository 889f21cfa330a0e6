import { expect, test } from "bun:test";

import { unknownSettings } from "../../../../src/operate/doctor/names.ts";

test.each([
  ["RETENTION_DAY", "RETENTION_DAYS"],
  ["WEBHOOKS_ALLOW_HTTP", "WEBHOOK_ALLOW_HTTP"],
  ["SERVER_ROTO", "SERVER_ROOT"],
  ["DATABASE_URI", "DATABASE_URL"],
  ["MASTER_KEY_FIEL", "MASTER_KEY_FILE"],
  ["WEBHOOK_ALLOWED_NETS", "WEBHOOK_ALLOWED_NETWORKS"],
])("%s is told, with what is meant", (name, meant) => {
  expect(askedOf(name)).toEqual([[`${name} is not a setting`, `Is it ${meant}`]]);
});

test("a name with our prefix that resembles no setting is reported without a guess", () => {
  expect(askedOf("WEBHOOK_RETRY", "WEBHOOK_SECRETS")).toEqual([
    ["WEBHOOK_RETRY is not a setting", "docs/operations/settings.md lists them all."],
    ["WEBHOOK_SECRETS is not a setting", "docs/operations/settings.md lists them all."],
  ]);
});

test("a removed setting is reported as such", () => {
  expect(askedOf("OTP_TTL_S", "SLOW_STATEMENT_MS_FILE")).toEqual([
    ["OTP_TTL_S has no effect any more", "Remove it; CHANGELOG.md has the reason."],
    ["SLOW_STATEMENT_MS_FILE has no effect any more", "Remove it; CHANGELOG.md has the reason."],
  ]);
});

test("a name with two edits is reported, one with three is not", () => {
  expect(askedOf("SERVER_RO")).toHaveLength(1);
  expect(askedOf("SERVER_R")).toEqual([]);
});

test("settings and other programs' variables are not reported", () => {
  const ours = ["PORT", "DATABASE_URL_FILE", "WEBHOOK_CA_FILE", "LOG_LEVEL", "SETUP_PLANS"];
  const demo = ["WEBHOOK_SECRET", "DATA_DIR", "DISPATCHERS", "OTEL_TRACES_SAMPLER_ARG"];
  const shell = ["PATH", "HOME", "HOSTNAME", "LOGNAME", "USER", "PWD", "POST", "TERM", "MAIL"];
  const others = ["PGHOST", "PGPASSWORD", "SSH_CLIENT", "KUBERNETES_PORT", "REDIS_PORT_6379_TCP"];
  expect(askedOf(...ours, ...demo, ...shell, ...others, "npm_config_user_agent")).toEqual([]);
});

const askedOf = (...names: string[]) =>
  unknownSettings(Object.fromEntries(names.map((name) => [name, "secret"]))).map((finding) =>
    finding.kind === "advice" ? [finding.said, finding.remedy.split("?")[0]] : [finding.kind],
  );
