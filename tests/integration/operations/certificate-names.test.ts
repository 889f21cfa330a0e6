import { expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { checkServerIdentity } from "../../../src/lib/certificates.ts";
import { lacks, program } from "../../support/needs.ts";

test.skipIf(lacks("openssl")).each([
  // common name, subjectAltName, host, accepted
  ["x", "DNS:hook.a.test", "hook.a.test", true],
  ["x", "DNS:HOOK.a.test", "hook.a.test", true],
  ["x", "DNS:other.test,DNS:hook.a.test", "hook.a.test", true],
  ["hook.a.test", "", "hook.a.test", false],
  ["hook.a.test", "email:a@b.test", "hook.a.test", false],
  ["hook.a.test", "IP:127.0.0.1", "hook.a.test", false],
  ["hook.a.test", "DNS:other.test", "hook.a.test", false],
  ["x", "DNS:*.a.test", "hook.a.test", true],
  ["x", "DNS:*.a.test", "a.test", false],
  ["x", "DNS:*.a.test", "b.hook.a.test", false],
  ["x", "DNS:ho*.a.test", "hook.a.test", false],
  ["x", "DNS:hook.*.test", "hook.a.test", false],
  ["x", "DNS:*.test", "hook.test", false],
  ["x", "DNS:*.a.test", "my_hook.a.test", true],
  ["x", "DNS:*.a.test", "b.my_hook.a.test", false],
  ["x", "DNS:*.b.test", "my_hook.a.test", false],
  ["x", "DNS:label.a.test", "my_hook.a.test", false],
  ["x", "DNS:my_hook.a.test", "my_hook.a.test", true],
  ["x", "DNS:xn--bcher-kva.test", "xn--bcher-kva.test", true],
  ["x", "IP:127.0.0.1", "127.0.0.1", true],
  ["x", "IP:2001:db8::1", "2001:db8::1", true],
  ["x", "IP:127.0.0.2", "127.0.0.1", false],
  ["x", "DNS:127.0.0.1", "127.0.0.1", false],
  ["127.0.0.1", "", "127.0.0.1", false],
] as const)("CN %s, subjectAltName %s, for %s: %p", (...[name, names, host, accepted]) => {
  const { raw } = certificateOf(name, names);
  // The other fields of a certificate that node:tls hands over are not read.
  const error = checkServerIdentity(host, { raw });
  expect(error === undefined).toBe(accepted);
  if (!accepted) expect(error).toHaveProperty("code", "ERR_TLS_CERT_ALTNAME_INVALID");
});

const folder = mkdtempSync(join(tmpdir(), "names-"));

function certificateOf(name: string, names: string): X509Certificate {
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const to = ["-keyout", key, "-out", cert, "-subj", `/CN=${name}`];
  const kind = ["-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
  const alternatives = names === "" ? [] : ["-addext", `subjectAltName=${names}`];
  execFileSync(program("openssl"), ["req", ...kind, ...to, ...alternatives], { stdio: "ignore" });
  return new X509Certificate(readFileSync(cert));
}
