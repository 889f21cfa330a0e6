import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import type { PeerCertificate } from "node:tls";

const PEM = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/**
 * Splits a PEM file into its certificates. Throws with a reason if the file is unreadable, contains no certificate, or
 * contains an invalid one.
 */
export function readCertificates(path: string): string[] {
  const certificates = readText(path).match(PEM) ?? [];
  if (certificates.length === 0) throw new Error("names a file without a certificate in PEM form");
  const bad = certificates.findIndex((pem) => !isCertificate(pem));
  if (bad >= 0)
    throw new Error(
      `names a file whose certificate ${bad + 1} of ${certificates.length} cannot be read`,
    );
  return certificates;
}

function readText(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
    throw new Error(`names a file that cannot be read (${code})`, { cause: error });
  }
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}

/** Returns the end of the validity of a certificate; undefined without one. */
export function certificateEnd({ raw }: Partial<Pick<PeerCertificate, "raw">>): Date | undefined {
  return raw === undefined ? undefined : new Date(new X509Certificate(raw).validTo);
}

const RFC_9525 = { subject: "never", wildcards: true, partialWildcards: false } as const;

/**
 * Verifies that a server's certificate is for this host by the rules of RFC 9525: a host name must be in
 * subjectAltName, an IP address in its iPAddress, and a wildcard must be the whole leftmost label. It replaces the
 * function of node:tls. The implementation in Bun 1.4.4 also accepts the common name if the certificate has no
 * subjectAltName, and a wildcard as part of a label.
 */
export function checkServerIdentity(
  host: string,
  { raw }: Pick<PeerCertificate, "raw">,
): Error | undefined {
  const certificate = new X509Certificate(raw);
  const isNamed =
    isIP(host) === 0
      ? (certificate.checkHost(host, RFC_9525) ?? wildcardOf(certificate, host))
      : certificate.checkIP(host);
  if (isNamed !== undefined) return undefined;
  const names = certificate.subjectAltName ?? "no name in subjectAltName";
  const error = new Error(`The certificate is not for ${host}, but has ${names}`);
  return Object.assign(error, { code: "ERR_TLS_CERT_ALTNAME_INVALID" });
}

/**
 * Returns the wildcard of the certificate that matches a host whose leftmost label contains an underscore. BoringSSL
 * matches no wildcard with such a label, but hosts of receivers may have one.
 */
function wildcardOf(certificate: X509Certificate, host: string): string | undefined {
  const [first = "", ...parents] = host.split(".");
  if (!first.includes("_")) return undefined;
  const name = certificate.checkHost(["label", ...parents].join("."), RFC_9525);
  return name?.startsWith("*.") ? name : undefined;
}
